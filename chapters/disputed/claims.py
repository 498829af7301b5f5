"""The disputed claims, and the rules that judge them.

Of Charles et al. (2025) the text was at hand, of nanochat the code, of Schulman et al. (2025)
summaries, of the others abstracts.
"""

from dataclasses import replace

import numpy as np

from chapters.disputed import local_steps, lora, rates
from chapters.disputed.lora_experiments import FULL, RANKS
from lib.claims.claim import Change, claim, ratio
from lib.claims.names import curve_title

FIRST, SECOND = "2026-11-27", "2026-11-28"
HERE = {"chapter": "disputed", "since": FIRST}
FIXED = {**HERE, "fixed": True}  # the number of searches, too

# --- local steps ----------------------------------------------------------------------------------

BELOW_ONE = Change(
    SECOND,
    "the same, under 1 times",
    "a bound of one has no stricter and no laxer one, by which a verdict could be called fragile",
)


@claim(
    "D1",
    "One replica with an outer step beats its inner method",
    paper="With a single replica, DiLoCo reaches a lower loss than data parallelism at every size "
    "of the model.",
    source="Charles et al. 2025, in our words",
    read="text",
    rule="With one replica and rounds of 5 or of 30 steps, DiLoCo takes under 0.8 times the steps "
    "of Adam that is looked at as often, to 5 % error; a search that misses it counts as its last "
    "step, which is a bound.",
    below=0.8,
    history=[BELOW_ONE],
    **FIXED,
)
def one_replica():
    return local_steps.groups(local_steps.ALONE)


@claim(
    "D2",
    "Sparse changes train better than whole ones",
    paper="Changes of which 1 to 3 % are sent, with error feedback, outperform DiLoCo's whole "
    "ones.",
    source="Sarfi et al. 2025, abstract",
    rule="With eight replicas and rounds of 30 steps at batch size 64, the sparse form with 1 % or "
    "3 % takes under 0.8 times the steps of DiLoCo, to 5 % error; a search that misses it counts "
    "as its last step, which is a bound.",
    below=0.8,
    history=[BELOW_ONE],
    **FIXED,
)
def sparse_changes():
    parts = [(*local_steps.PART, share) for share in (0.01, 0.03)]
    return local_steps.groups([(part, local_steps.WHOLE) for part in parts])


# --- learning rate and weight decay ---------------------------------------------------------------

EDGE = "a bound from below: winners lie at an end of the range of rates"
PER_DOUBLING = 1.05  # 1.25, what counts as an effect, over a batch 32 times as large
TIMESCALE = {**HERE, "source": "Bergsma et al. 2025, abstract, in our words"}
GROWS = (
    "At a fixed model and amount of data the best weight decay grows in proportion to the batch"
)


@claim(
    "W1",
    "Muon’s learning rate goes with the square root of the batch",
    paper="Muon’s learning rate is multiplied by the square root of the factor by which the batch "
    "grows (a choice in code whose comment calls it not studied carefully).",
    source="nanochat (Karpathy 2025), base_train.py, in our words",
    read="code",
    rule="On a network, the growth of Muon’s best rate with every doubling of the batch, over √2, "
    "is within a factor of 1.05 of one.",
    within=PER_DOUBLING,
    **HERE,
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
    paper=f"{GROWS}; the timescale that rate, decay and batch make together depends on the data "
    "for each parameter. (Tested: the timescale, to within a factor of two. W2b has the first "
    "half.)",
    rule="From batches of 16 to 256, the timescale of the best trials with decay changes by less "
    "than a factor of two.",
    within=2.0,
    history=[
        Change(
            FIRST, "the same, of three searches", "three did not decide it, so more were added"
        )
    ],
    **TIMESCALE,
)
def timescale():
    return [
        ratio(name, effects["moves"], note=note)
        for name, effects, note in rates.by_method()
        if effects["moves"]
    ]


@claim(
    "W2b",
    "The best weight decay grows in proportion to the batch",
    paper=f"{GROWS}.",
    rule="From batches of 16 to 256, the growth of the best decay with every doubling of the "
    "batch, over 2, is within a factor of 1.05 of one.  Rate and decay are tuned together.",
    within=PER_DOUBLING,
    history=[Change(SECOND, "not judged, only shown", "the page's table decides it")],
    **{**TIMESCALE, "since": SECOND},
)
def decay_growth():
    scale, found = np.log(2), []
    for name, effects, note in rates.by_method():
        if power := effects["decay"]:
            value, error = (power.value - 1) * scale, power.error * scale
            found.append(ratio(name, replace(power, value=value, error=error), note=note))
    return found


# --- adapters -------------------------------------------------------------------------------------

LORA = {**FIXED, "source": "Schulman et al. 2025", "read": "summary"}


@claim(
    "C1",
    "LoRA tolerates large batches less",
    paper="LoRA is less tolerant of large batch sizes than training in full. (Here: its critical "
    "batch size.)",
    rule="At each rank the critical batch size is under 0.8 times that of the same matrices "
    "trained in full, to 2.5 nats, from the batch sizes from 1 to 256 that both have; three "
    "searches.",
    below=0.8,
    **LORA,
)
def tolerance():
    return lora.groups(*((rank, FULL) for rank in RANKS))


@claim(
    "C2",
    "A higher rank tolerates no larger batches",
    paper="Raising the rank does not mitigate that large batches hurt LoRA. (Here: critical batch "
    "sizes.)",
    rule="At ranks 16 and 64 the critical batch size is within a factor of 1.25 of that at rank 1, "
    "to 2.5 nats, from the batch sizes from 1 to 256 that both have; three searches.",
    within=1.25,
    **LORA,
)
def by_rank():
    return lora.groups(*((rank, RANKS[0]) for rank in (16, 64)))
