"""Claims on low-rank adapters, and the rules that judge them."""

from chapters.lora import findings
from chapters.lora.experiments import FULL, RANKS
from lib.analysis.scaling import critical_ratio
from lib.claims.claim import claim, ratio, unmeasured

SOURCE = "Schulman et al. 2025"


def groups(pairs):
    """Critical batch sizes of each rank over those of another; [] without records."""
    known, found = findings.curves(findings.measured()), []
    for pair in pairs if known else ():
        effect = findings.over(known, critical_ratio, *pair)
        name = " over ".join(findings.NAMES[rank] for rank in pair)
        found.append(ratio(name, effect) if effect else unmeasured(name))
    return found


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
