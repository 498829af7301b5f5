"""What Shi et al. (2019) say about the vector that Top-k compresses, what they prove about Top-k,
and what they say about the time that selection takes.
"""

import functools

import numpy as np
import pandas as pd

from chapters.gradients import energy_bounds, message_costs
from lib.claims.claim import Group, claim, interval, unmeasured
from lib.claims.names import SHI2019, title
from lib.probes import portraits, timings

ABSTRACT = "Shi et al. 2019, abstract"
SEEDS = range(20)  # of made-up vectors, by which the power of a rule is known
LENGTH = 20_000
NORMAL, EQUAL, FLAT = "normal vectors", "entries of equal size", "entries of −1 to 1, uniformly"
MADE_UP = {
    NORMAL: lambda random: random.standard_normal(LENGTH),
    EQUAL: lambda random: random.choice([-1.0, 1.0], LENGTH),
    FLAT: lambda random: random.uniform(-1, 1, LENGTH),
}


@functools.cache
def fed_back():
    """Vectors of Top-k with feedback at the authors' density, from `portraits.results`."""
    way = (0.001, "top-k", True)
    runs = [p for p in portraits.PORTRAITS if (p.density, p.compressor, p.feedback) == way]
    return portraits.results(tuple(runs))


def groups(violations, kinds):
    """A group per network: the median violation of its vectors, with the least and the largest.

    violations: function of a table of vectors that returns each one's value over the allowed one.
    kinds: of MADE_UP; their shares without and with a violation are the rule's power.
    """

    def passes(kind, seed):
        vector = portraits.describe(MADE_UP[kind](np.random.default_rng(seed)))
        return (violations(vector.assign(**dict.fromkeys(portraits.KEY, 0))) < 1).all()

    yes = [float(np.mean([passes(kind, seed) for seed in SEEDS])) for kind in kinds]
    power = tuple((share, 1 - share) for share in yes)
    networks = []
    for name, worst in violations(fed_back()).groupby(level="workload", sort=False):
        ends = map(float, (worst.median(), worst.min(), worst.max()))
        note = f"one run, {len(worst)} vectors, {(worst < 1).sum()} of them below 1"
        theirs = name.startswith(SHI2019)
        networks.append(Group(title(name), *ends, 1, theirs, note=note, power=power))
    return networks


def bell_violations(taken):
    """How far each vector departs from a bell around zero, over what is allowed: the worst of five.

    Allowed: a mean within a tenth of a standard deviation of zero; 40 to 60 % positive entries; a
    histogram that rises by at most 2 % beyond its peak; excess kurtosis above a semicircle's, -1; a
    height at zero above a semicircle's, sqrt(2 / pi) times a normal distribution's.
    """
    shapes = portraits.shapes(taken)
    parts = [
        shapes["mean"].abs() / shapes["std"] / 0.1,
        (shapes.positive - 0.5).abs() / 0.1,
        shapes.rise / 0.02,
        -shapes["kurtosis"],
        (2 / np.pi) ** 0.5 / shapes.peak,
    ]
    worst = pd.concat(parts, axis=1).max(axis=1)
    return worst.set_axis(pd.MultiIndex.from_frame(shapes[portraits.KEY]))


def bound_violations(taken):
    """The largest share of each vector that Top-k leaves, over (1 − k/d)², at any density."""
    rows = taken[(taken.measure == "left") & (taken.x < 1)]
    violations = rows.value / energy_bounds.tighter(rows.x)
    return violations.groupby([rows[name] for name in portraits.KEY], sort=False).max()


@claim(
    "T1",
    "What Top-k compresses is bell-shaped around zero",
    paper="The vector that Top-k compresses is bell-shaped around zero, for fully connected, convolutional and recurrent networks.",
    source=ABSTRACT,
    ends="least to most",
    rule="On a network, all vectors of a run with Top-k and feedback have one peak, a mean within a tenth of a deviation of zero, "
    "40 to 60 % positive entries, and a kurtosis and a height at zero above a semicircle's. Shown is the worst of these over what "
    "is allowed: of the middle vector, and from the least to the most. A bell is no normal curve: its tails are another question.",
    below=1.0,
    tried=(NORMAL, FLAT, EQUAL),
)
def bells():
    return groups(bell_violations, (NORMAL, FLAT, EQUAL))


@claim(
    "T3",
    "Top-k leaves less than (1 − k/d)²",
    paper="What Top-k leaves of the vector's energy is at most (1 − k/d)², a tighter bound than 1 − k/d.",
    source=ABSTRACT,
    ends="least to most",
    rule="On a network, Top-k leaves less of every vector of a run with Top-k and feedback, at all recorded densities. Shown is "
    "the most that it leaves over the bound: of the middle vector, and from the least to the most.",
    below=1.0,
    tried=(NORMAL, EQUAL),
)
def bounds():
    return groups(bound_violations, (NORMAL, EQUAL))


@claim(
    "T6",
    "Gaussian-k selects much faster on an H100",
    paper="Gaussian-k selects in a fraction of the time of exact Top-k on a GPU. (Theirs: a V100 of 2019. Here: under half.)",
    source=ABSTRACT,
    ends="range",
    rule="On a GPU, PyTorch's exact Top-k takes over twice the time of Gaussian-k on normal vectors of 16 million entries or "
    "more: the median over lengths. Its interval is the range over repeats.",
    above=2.0,
)
def exact_over_gaussian():
    timed = timings.results(message_costs.CARD)
    if not len(timed):
        return [unmeasured("a GPU")]
    long = timed[timed.d >= 2**24].set_index("d")
    exact, gaussian = (long[long.compressor == name] for name in ("torch.topk", "gaussian-k"))
    middle = (exact.seconds / gaussian.seconds).astype(float).median()
    ends = (exact.low / gaussian.high).min(), (exact.high / gaussian.low).max()
    head = timed.attrs["provenance"][0]
    name = f"{head['device']}, PyTorch {head['torch'].partition('+')[0]}"
    note = f"one GPU, {len(exact)} lengths, {message_costs.CARD.repeats} repeats each"
    return [interval(name, (middle, *ends), 1, note=note, log=True)]
