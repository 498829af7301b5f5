"""What Shi et al. (2019) say of the vector that Top-k compresses, and what they prove of Top-k."""

import functools

import numpy as np
import pandas as pd

from chapters.gradients import energy_bounds
from lib.claims.claim import Change, Group, claim
from lib.claims.names import SHI2019, title
from lib.probes import portraits

ABSTRACT = "Shi et al. 2019, abstract"
TODAY = "2026-11-29"
DEPENDENT = "vectors of one run are no independent repeats"  # so networks are judged
MADE_UP = 20  # vectors by which the power of a rule is known
LENGTH = 20_000
NORMAL, EQUAL, FLAT = "normal vectors", "entries of equal size", "entries of −1 to 1, uniformly"


@functools.cache
def fed():
    """Vectors of Top-k with feedback at the authors' density, as `portraits.results` has them."""
    wanted = (0.001, "top-k", True)
    planned = (p for p in portraits.PORTRAITS if (p.density, p.compressor, p.feedback) == wanted)
    return portraits.results(tuple(planned))


def made_up(kind, seed):
    """A vector u [LENGTH] of this kind."""
    random = np.random.default_rng(seed)
    if kind == EQUAL:
        return random.choice([-1.0, 1.0], LENGTH)
    return random.standard_normal(LENGTH) if kind == NORMAL else random.uniform(-1, 1, LENGTH)


def power(of, kinds):
    """How often all of a made-up vector's violations, as `of` its table gives them, are below one."""
    shares = []
    for kind in kinds:
        tables = (portraits.describe(made_up(kind, seed)) for seed in range(MADE_UP))
        keys = dict.fromkeys(portraits.KEY, 0)
        shares.append(float(np.mean([(of(table.assign(**keys)) < 1).all() for table in tables])))
    return tuple(shares)


def vectors(violations, trials):
    """A group per network: the middle vector's violation, from the least to the most.

    violations: over what is allowed, by workload.
    """
    groups = []
    for name, own in violations.groupby(level="workload", sort=False):
        ends = map(float, (own.median(), own.min(), own.max()))
        note = f"one run, {len(own)} vectors, {(own < 1).sum()} of them below 1"
        own_network = name.startswith(SHI2019)
        groups.append(Group(title(name), *ends, 1, own_network, note=note, power=trials))
    return groups


def bell_violations(taken):
    """How far each vector is from a bell around zero, over what is allowed: the largest of five.

    A mean a tenth of a deviation off zero; 60 or 40 % positive entries; a histogram that rises by
    2 % again beyond its peak; a semicircle's excess kurtosis, -1; a semicircle's height at zero, the
    root of 2 / pi times that of a normal distribution.
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
    """The most that Top-k leaves of each vector over (1 − k/d)², at any density."""
    rows = taken[(taken.measure == "left") & (taken.x < 1)]
    over = rows.value / energy_bounds.tighter(rows.x)
    return over.groupby([rows[name] for name in portraits.KEY], sort=False).max()


@claim(
    "T1",
    "What Top-k compresses is bell-shaped around zero",
    chapter="gradients",
    paper="The vector that Top-k compresses is bell-shaped around zero, for fully connected, convolutional and recurrent networks.",
    source=ABSTRACT,
    rule="On a network, all vectors of a run with Top-k and feedback have one peak, a mean within a tenth of a deviation of zero, "
    "40 to 60 % positive entries, and a kurtosis and a height at zero above a semicircle's. Shown is the worst of these over what "
    "is allowed: of the middle vector, and from the least to the most. A bell is no normal curve: its tails are another question.",
    below=1.0,
    tried=(NORMAL, FLAT, EQUAL),
    since=TODAY,
    history=[
        Change(
            "2026-11-28",
            "the same conditions, with those on the mean and on the positive entries unsaid",
            "the rule could not be followed from its text; what is tested did not change",
        ),
        Change(
            "2026-11-26",
            "over half of the vectors of each kind of network, each vector counted",
            DEPENDENT,
        ),
        Change(
            TODAY,
            "most vectors of a run, on over half of the networks",
            "four networks are decided only if all agree, and how far a vector lies off was lost",
        ),
    ],
)
def bells():
    return vectors(bell_violations(fed()), power(bell_violations, (NORMAL, FLAT, EQUAL)))


@claim(
    "T3",
    "Top-k leaves less than (1 − k/d)²",
    chapter="gradients",
    paper="What Top-k leaves of the vector's energy is at most (1 − k/d)², a tighter bound than 1 − k/d.",
    source=ABSTRACT,
    rule="On a network, Top-k leaves less of every vector of a run with Top-k and feedback, at all recorded densities. Shown is the "
    "most that it leaves over the bound: of the middle vector, and from the least to the most.",
    below=1.0,
    tried=(NORMAL, "entries of equal size", "entries of equal size"),
    since=TODAY,
    history=[
        Change(
            "2026-11-28",
            "convex in all of a hundred bins, wherever it ends",
            "there, noise lets only one normal vector in ten pass; "
            "every vector on record passes in twenty bins",
        ),
        Change(
            "2026-11-26",
            "what is left stays below (1 − k/d)² for every vector and density",
            f"nearly any vector passes, "
            f"and its range over vectors and densities is no interval; {DEPENDENT}",
        ),
        Change(
            TODAY,
            "on over half of the networks, most vectors have a squared profile that is convex in fifty bins",
            "what it said followed from the number of bins; the paper's claim is the bound itself",
        ),
    ],
)
def bounds():
    return vectors(bound_violations(fed()), power(bound_violations, (NORMAL, EQUAL, EQUAL)))
