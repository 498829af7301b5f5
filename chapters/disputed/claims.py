"""The disputed claims, and the rules that judge them.

Of Charles et al. (2025) the text was at hand, of nanochat the code, of Schulman et al. (2025)
summaries, of the others abstracts.
"""

from dataclasses import replace

import numpy as np

from chapters.disputed import local_steps, lora, masks, norms, ramps, rates
from chapters.disputed.lora_experiments import FULL, RANKS
from chapters.disputed.ramps_experiments import WHOLE
from lib.claims.claim import Change, claim, interval, ratio
from lib.claims.names import curve_title

FIRST, SECOND = "2026-11-27", "2026-11-28"
HERE = {"chapter": "disputed", "since": FIRST}
FIXED = {**HERE, "fixed": True}  # the number of searches, too

# --- batches that grow ----------------------------------------------------------------------------

RAMPS = {**FIXED, "source": "Meterez et al. 2025, abstract", "since": SECOND}
RAMPED = [
    Change(
        FIRST,
        "at the hardest goal that all searches of both meet",
        "on the digits that is a goal met before the first cut, where schedules do not differ yet",
    ),
    Change(
        FIRST,
        "the same, decided however many searches miss the goal",
        "where most miss it, the ratio is that of last steps, which the plan sets",
    ),
    Change(
        FIRST,
        "the same, on two networks of images alone",
        "a language model was added; its goal was fixed before its records, after a pilot",
    ),
]
BOTH_MISS = Change(
    SECOND,
    "the same, with searches of both that miss the goal",
    "both count as their last steps there, whose ratio the plan sets",
)


@claim(
    "H1",
    "A batch ramp costs no more examples",
    paper="Where a schedule would halve the rate, dividing it by √2 and doubling the batch reaches "
    "the same loss at equal arithmetic.",
    rule="Begun at the critical batch size, or at a quarter of it, Seesaw takes under 1.25 times "
    "the examples of halving the rate to 4 % error, on text to 2.2 nats.  A search that misses it "
    "counts as its last step, and a replicate in which both do is left out; nothing is decided "
    "where over half do.",
    below=1.25,
    history=[*RAMPED, BOTH_MISS],
    **RAMPS,
)
def examples():
    return ramps.groups("examples")


@claim(
    "H2",
    "A batch ramp saves serial steps",
    paper="The ramp takes about 36 % less time, begun at the critical batch size.",
    rule="Begun at the critical batch size, Seesaw takes under 0.8 times the serial steps of "
    "halving the rate to 4 % error, on text to 2.2 nats.  A search that misses it counts as its "
    "last step, and a replicate in which both do is left out; nothing is decided where over half "
    "do.",
    below=0.8,
    history=[
        *RAMPED,
        Change(
            SECOND,
            "the same, begun at a quarter of the critical batch size, too",
            "the paper begins at the critical batch size",
        ),
        BOTH_MISS,
    ],
    **RAMPS,
)
def serial_steps():
    return ramps.groups("steps", (WHOLE,))


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


# --- noise in norms -------------------------------------------------------------------------------

NORMS = {**FIXED, "source": "Naganuma et al. 2026, abstract, in our words"}


@claim(
    "Q1",
    "The noise scale in a method’s own norm goes with its critical batch size",
    paper="The Euclidean noise scale mismatches methods with other norms; theirs is the scale to "
    "set batches by. (Here: whether it goes with critical batch sizes over methods and networks.)",
    rule="Over all methods and networks, the logarithm of the critical batch size over the noise "
    "scale in the method’s own norm has under 0.8 times the standard deviation that it has with "
    "the Euclidean one.",
    below=0.8,
    **NORMS,
)
def spread():
    missed = norms.misses(norms.compared())
    found = norms.spread(missed)
    name = f"{len(missed)} curves of {len(missed.index.unique('workload'))} networks"
    return [interval(name, *found, len(missed), log=True)] if found else []


@claim(
    "Q2",
    "The noise scale in their own norm is the critical batch size of Adam and Muon",
    paper="Batches set by the noise scale in the norm of sign and spectral methods save steps "
    "without loss. (Here: whether that scale is the critical batch size of Adam and Muon.)",
    rule="On a network, the critical batch size is within a factor of two of the noise scale in "
    "the method’s own norm, in the geometric mean along the fastest trials.",
    within=2.0,
    **NORMS,
)
def level():
    rows = norms.compared()
    own = rows[(rows.norm == norms.OWN) & rows.algorithm.isin(norms.OTHERS)]
    return [
        ratio(curve_title((row.workload, row.algorithm)), row.over) for row in own.itertuples()
    ]


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


# --- masks that move ------------------------------------------------------------------------------


@claim(
    "V1",
    "Average density decides, whether it falls or not",
    paper="The average number of parameters over training predicts the loss, of sparse and dense "
    "training alike. (Here: steps at equal average density.)",
    source="Jin et al. 2025, abstract, in our words",
    rule="Gradual pruning takes within a factor of 1.25 of the steps of a mask that stays, both "
    "with 10 % of the weights on average, in the mean over batch sizes; three searches.",
    within=1.25,
    **FIXED,
)
def average_density():
    return masks.groups((masks.NAMES["thinned"], "thinned", masks.STAYS))


@claim(
    "V2",
    "Rewiring a sparse network saves steps",
    paper="Changing which weights are there needs less arithmetic for an accuracy than earlier "
    "techniques. (Here: fewer steps than a mask that stays.)",
    source="Evci et al. 2020, abstract, in our words",
    rule="A mask that stays takes over 1.25 times the steps of one that is rewired, both with 10 % "
    "of the weights, in the mean over batch sizes; three searches.",
    above=1.25,
    **FIXED,
)
def rewiring():
    return masks.groups(
        *((masks.NAMES[mask], masks.STAYS, mask) for mask in ("steps", "examples"))
    )


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
