"""Claims on learning rates and weight decay against the batch size, and the rules that judge them.

Of the paper the abstract was at hand, not the text; of nanochat the code.
"""

from dataclasses import replace

import numpy as np

from chapters.decay_and_batch import experiments, rates
from lib.claims.claim import Change, claim, ratio
from lib.claims.names import curve_title
from lib.wording import named

EDGE = "a bound from below: winners lie at an end of the range of rates"
NO_GAIN = "whether decay lowers the loss here is not decided"
PER_DOUBLING = 1.05  # 1.25, what counts as an effect, over a batch 32 times as large


@claim(
    "W1",
    "Muon’s learning rate goes with the square root of the batch",
    chapter="decay_and_batch",
    paper="Muon’s learning rate is multiplied by the square root of the factor by which the batch "
    "grows (a choice in code whose comment calls it not studied carefully).",
    source="nanochat (Karpathy 2025), base_train.py, in our words",
    read="code",
    rule="On a network, the growth of Muon’s best rate with every doubling of the batch, over √2, "
    "is within a factor of 1.05 of one.",
    within=PER_DOUBLING,
    since="2026-11-27",
)
def muon_rate():
    rows, found = rates.growths(), []
    for row in rows[rows.algorithm == "muon"].itertuples():
        moved = replace(row.effect, value=row.effect.value - np.log(2) / 2)
        name = curve_title((row.workload, "muon"))
        found.append(ratio(name, moved, note=EDGE * moved.above))
    return found


@claim(
    "W2",
    "The timescale of weight decay stays where it is",
    chapter="decay_and_batch",
    paper="At a fixed model and amount of data the best weight decay grows in proportion to the "
    "batch; the timescale that rate, decay and batch make together depends on the data for each "
    "parameter. (Tested: the timescale, to within a factor of two. W2b has the first half.)",
    source="Bergsma et al. 2025, abstract, in our words",
    rule="From batches of 16 to 256, the timescale of the best trials with decay changes by less "
    "than a factor of two.",
    within=2.0,
    since="2026-11-27",
    history=[
        Change(
            "2026-11-27",
            "the same, of three searches",
            "three did not decide it, so more were added",
        )
    ],
)
def timescale():
    return [
        ratio(title, effects["moves"], note=note)
        for title, effects, note in _by_method()
        if effects["moves"]
    ]


def _by_method():
    """Of each method on record: its title, `rates.effects`, and whether decay is shown to gain."""
    trials = experiments.DECAYED.results()
    by_method = rates.good(trials).groupby("algorithm") if len(trials) else ()
    for name, own in by_method:
        effects = rates.effects(own)
        gain = effects["gain"]
        note = NO_GAIN if gain and gain.low <= 0 else ""
        yield f"MLP on digits, {named(name)}", effects, note


@claim(
    "W2b",
    "The best weight decay grows in proportion to the batch",
    chapter="decay_and_batch",
    paper="At a fixed model and amount of data the best weight decay grows in proportion to the "
    "batch.",
    source="Bergsma et al. 2025, abstract, in our words",
    rule="From batches of 16 to 256, the growth of the best decay with every doubling of the batch, "
    "over 2, is within a factor of 1.05 of one.  Rate and decay are tuned together.",
    within=PER_DOUBLING,
    since="2026-11-28",
    history=[Change("2026-11-28", "not judged, only shown", "the page's table decides it")],
)
def decay_growth():
    scale, found = np.log(2), []
    for title, effects, note in _by_method():
        power = effects["decay"]
        if power:
            value, error = (power.value - 1) * scale, power.error * scale
            growth = replace(power, value=value, error=error)
            found.append(ratio(title, growth, note=note))
    return found
