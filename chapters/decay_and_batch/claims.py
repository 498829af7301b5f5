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
    trials, found = experiments.DECAYED.results(), []
    if trials.empty:
        return found
    for name, own in rates.good(trials).groupby("algorithm"):
        effects = rates.effects(own)
        moves, gain = effects["moves"], effects["gain"]
        note = NO_GAIN if gain and gain.low <= 0 else ""
        title = f"MLP on digits, {named(name)}"
        if moves:
            found.append(ratio(title, moves, note=note))
    return found


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
    trials, found = experiments.DECAYED.results(), []
    if trials.empty:
        return found
    for name, own in rates.good(trials).groupby("algorithm"):
        effects = rates.effects(own)
        power, gain = effects["decay"], effects["gain"]
        if power:
            scale = np.log(2)
            value, error = (power.value - 1) * scale, power.error * scale
            note = NO_GAIN if gain and gain.low <= 0 else ""
            title = f"MLP on digits, {named(name)}"
            found.append(ratio(title, replace(power, value=value, error=error), note=note))
    return found
