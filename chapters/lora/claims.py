"""Claims on low-rank adapters, and the rules that judge them.  The page says what was predicted
before the records.
"""

from chapters.lora import findings
from chapters.lora.experiments import FULL, RANKS
from lib.claims.claim import claim, ratio, unmeasured

SOURCE = "Schulman et al. 2025, as summarised by others"


def groups(pairs):
    """Of each pair of ranks, the critical batch size of the first over that of the second; []
    without records.
    """
    found = findings.measured()
    known = findings.curves(found)
    effects = {pair: findings.critical_ratio(known, *pair) for pair in pairs}
    words = {pair: " over ".join(findings.NAMES[rank] for rank in pair) for pair in pairs}
    return [
        ratio(words[pair], effect) if effect else unmeasured(words[pair])
        for pair, effect in effects.items()
        if len(found)
    ]


@claim(
    "C1",
    "LoRA tolerates large batches less",
    chapter="lora",
    paper="LoRA is less tolerant of large batch sizes than training in full. (Here: its critical "
    "batch size.)",
    source=SOURCE,
    read="summary",
    rule="At each rank the critical batch size is under 0.8 times that of the same matrices trained "
    "in full, to 2.5 nats, from the batch sizes from 1 to 256 that both have; three searches.",
    below=0.8,
    since="2026-11-27",
    fixed=True,
)
def tolerance():
    return groups([(rank, FULL) for rank in RANKS])


@claim(
    "C2",
    "A higher rank tolerates no larger batches",
    chapter="lora",
    paper="Raising the rank does not mitigate that large batches hurt LoRA. (Here: critical batch "
    "sizes.)",
    source=SOURCE,
    read="summary",
    rule="At ranks 16 and 64 the critical batch size is within a factor of 1.25 of that at rank 1, "
    "to 2.5 nats, from the batch sizes from 1 to 256 that both have; three searches.",
    within=1.25,
    since="2026-11-27",
    fixed=True,
)
def by_rank():
    return groups([(rank, RANKS[0]) for rank in (16, 64)])
