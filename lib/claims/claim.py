"""A claim: what a paper says, the rule that judges it, the rule's power, and the verdict on every
network.  A finding: what a paper says and what was measured, without a rule.

The earlier forms of rules are in `chapters/claims/history.yaml`.

    @claim(
        "L4", "Larger batches help pruned networks no less",
        paper="Data parallelism in sparse training is no worse than in dense training.",
        source="Lee et al. 2020, abstract",
        rule="On a network, the critical batch size at the highest sparsity is over 0.8 times the "
        "dense one's.",
        above=0.8,
    )
    def critical_over_dense(curves):
        ...
        return [ratio(title, effect, theirs=True), ...]

A claim's function is called with what its parameters name (`lib.claims.judging.PROVIDED`) and
returns a `Group` per network.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from lib import require
from lib.analysis import scaling
from lib.analysis.scaling import LEVEL, Effect

# Verdicts on a network
YES, NO, UNCLEAR = "yes", "no", "unclear"
SHOWN = "no verdict"  # the rule could not decide there, so only the measurement is shown
# Further ones on several networks
MOSTLY, MIXED, UNTESTED = "mostly", "mixed", "not tested"
KINDS = ("above", "below", "within")
# A rule must say yes at least so often if the claim is true, and at most so often if it is false
POWER, FALSE = 0.5, 0.1


@dataclass(frozen=True)
class Group:
    """The effect on one network, of one method where the claim is about methods.

    Attributes:
        name: of the network and method.
        effect, low, high: as printed, with the ends of the 90 % interval or of `Finding.ends`; 0 or
            inf (for a ratio), -inf or inf (else) if there is no bound.
        n: independent searches, or other independent repeats; 0 if nothing is measured.
        theirs: whether the network is one of the paper's.
        error, freedom: standard error and its degrees of freedom on the scale of `Finding.inner`.
        note: what a reader should know about this row: "a bound: the best rate lies at an edge".
        decides: False if the row cannot bear a verdict, for the reason in its note.
        power: how often the rule says yes and how often no on data of this size and scatter in each
            of the claim's `worlds`: one in which it is true, two in which it is false; () if
            unknown.
        verdict: filled in by `judged`, and so is power unless the claim simulates it.
    """

    name: str
    effect: float
    low: float
    high: float
    n: int
    theirs: bool = False
    error: float = math.nan
    freedom: float = math.inf
    note: str = ""
    decides: bool = True
    power: tuple[tuple[float, float], ...] = ()
    verdict: str = ""

    @property
    def clear(self) -> bool:
        return self.verdict in (YES, NO)

    @property
    def repeated(self) -> bool:
        """Whether there are enough searches to estimate their scatter."""
        return self.n >= scaling.ENOUGH


def ratio(name: str, effect: Effect, theirs: bool = False, note: str = "", **more) -> Group:
    """The group of a ratio whose logarithm was estimated; more: further fields."""
    row = effect.row().values()
    return Group(name, *row, effect.n, theirs, effect.error, effect.freedom, note, **more)


def difference(
    name: str, effect: Effect, theirs: bool = False, note: str = "", times: float = 1.0, **more
) -> Group:
    """The group of a difference; times: 100 to print a share's difference as points."""
    ends = (times * v for v in effect.row(log=False).values())
    error = times * effect.error
    return Group(name, *ends, effect.n, theirs, error, effect.freedom, note, **more)


def interval(
    name: str,
    ends: tuple[float, float, float],
    n: int,
    theirs: bool = False,
    note: str = "",
    log: bool = False,
    **more,
) -> Group:
    """The group of an effect and the ends of its interval; its error follows from the width, as if
    normal.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.diff(np.log(ends[1:]) if log else ends[1:]).item()
    error = width / 2 / ndtri(0.5 + LEVEL / 2) if math.isfinite(width) else math.inf
    return Group(name, *ends, int(n), theirs, error, note=note, **more)


def share(name: str, met: int, of: int, note: str = "") -> Group:
    """The group of a share of independent repeats, with Wilson's interval."""
    return interval(name, scaling.share(met, of), of, note=note)


def unmeasured(name: str, note: str = "not measured") -> Group:
    """The group of a network with nothing on record."""
    return Group(name, math.nan, math.nan, math.nan, 0, note=note)


# --- findings and claims --------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """What a paper says, and what was measured about it, without a rule.

    Attributes:
        key, title: as in the registry.
        chapter: the page about it.
        paper: what the paper says; source: where.
        shown: what the groups' effects are.
        ends: what low and high are.
        scale: "ratio", "points" (of error, or "... a doubling"), "share" or "number".
        read: what was available of the paper ("text", "abstract", or others' "summary", with the
            released code of its "figures"), of code ("code") or of data ("notes").
        groups: filled in by `lib.claims.judging`.
    """

    key: str
    title: str
    chapter: str
    paper: str
    source: str
    shown: str = ""
    ends: str = "90 %"
    scale: str = "ratio"
    read: str = "abstract"
    groups: tuple[Group, ...] = ()

    @property
    def measured(self) -> tuple[Group, ...]:
        return tuple(g for g in self.groups if g.n)

    def inner(self, value: float) -> float:
        """A value on the scale of errors: the logarithm of a ratio, else the value itself."""
        if self.scale != "ratio" or math.isnan(value):
            return value
        return math.log(value) if value > 0 else -math.inf


@dataclass(frozen=True)
class Claim(Finding):
    """A claim of the ledger, and, once judged, its groups with their verdicts.

    Attributes:
        rule: what decides on each network.
        kind, threshold: the interval must lie above the threshold, below it, or within it: for a
            ratio from 1/threshold to threshold, else from -threshold to threshold.
        truth: an effect as large as the paper's, with which power is computed; None: twice the
            threshold, on logarithms.
        either: whether effects are distances from none, in either direction, so that no effect is
            the opposite.
        tried: the simulated data used for `Group.power` instead, in words, in its order.
    """

    rule: str = ""
    kind: str = "above"
    threshold: float = math.nan
    truth: float | None = None
    either: bool = False
    tried: tuple[str, ...] = ()

    @property
    def needs(self) -> str:
        """Where an interval must lie: "above 1.25", "within a factor of 1.25"."""
        value = (
            f"{100 * self.threshold:g} %" if self.scale == "share" else f"{self.threshold:g}"
        )
        around = "a factor of " if self.scale == "ratio" else "± "
        return f"{self.kind} {around if self.kind == 'within' else ''}{value}"

    @property
    def theirs(self) -> str:
        """The verdict on the paper's networks together."""
        return summed_up(g for g in self.groups if g.theirs)

    @property
    def ours(self) -> str:
        """The verdict on all other networks together."""
        return summed_up(g for g in self.groups if not g.theirs)

    @property
    def verdict(self) -> str:
        """The verdict on the paper's networks if it is clear, else that on ours, if any."""
        clear = self.theirs not in (UNTESTED, UNCLEAR)
        return self.theirs if clear or self.ours == UNTESTED else self.ours

    def tally(self, theirs: bool | None = None) -> str:
        """Numbers of networks: "3 yes, 1 no, 2 unclear"; theirs: only the paper's, or others."""
        groups = [g for g in self.measured if theirs in (None, g.theirs)]
        counts = Counter(g.verdict for g in groups)
        words = [f"{counts[v]} {v}" for v in (YES, NO, UNCLEAR, SHOWN) if counts[v]]
        return ", ".join(words)

    @property
    def made_up(self) -> tuple[str, ...]:
        """The simulated data with which its power is computed, in words."""
        if self.tried:
            return self.tried
        effects = [math.exp(v) if self.scale == "ratio" else v for v in self.worlds]
        return tuple(f"effect {effect:.3g}".replace("-", "−") for effect in effects)

    @property
    def worlds(self) -> tuple[float, ...]:
        """Effects, on the inner scale, with which a rule is tried: one at which the claim is true,
        and two at which it is false.

        If the rule demands an effect: `truth` (or twice the threshold), none, and the opposite, or
        half the threshold where there is no opposite; else none, then two and four times the
        threshold, or for "within" plus and minus two times.
        """
        edge = self.inner(self.threshold)
        if self.kind == "within":
            return 0.0, 2 * edge, -2 * edge
        asks = edge > 0 if self.kind == "above" else edge < 0
        truth = 2 * edge if self.truth is None else self.inner(self.truth)
        false = edge / 2 if self.either else -truth
        return (truth, 0.0, false) if asks else (0.0, 2 * edge, 4 * edge)


def decide(
    low: float | np.ndarray, high: float | np.ndarray, kind: str, threshold: float, either: bool
) -> np.ndarray:
    """YES where an interval lies where the claim needs it, NO where it lies entirely elsewhere;
    else UNCLEAR, also if an end is NaN.  All on the inner scale.

    An effect that is clearly in the claim's direction, but short of a threshold of ours, does not
    refute a paper: it is UNCLEAR, unless effects are distances (`Claim.either`).
    """
    higher, lower = low > threshold, high < threshold
    holds, fails = {
        "above": (higher, lower & (either | (low <= 0))),
        "below": (lower, higher & (either | (high >= 0))),
        "within": (lower & (low > -threshold), higher | (high < -threshold)),
    }[kind]
    return np.select([holds, fails], [YES, NO], UNCLEAR)


def power_of(group: Group, claim: Claim) -> tuple[tuple[float, float], ...]:
    """How often the rule says yes and no in each of the claim's `worlds`, on estimates with this
    group's scatter; () if its error is unknown.
    """
    if not (group.n and 0 < group.error < math.inf):
        return ()
    random = np.random.default_rng(0)
    estimate = Effect(0.0, group.error, group.freedom, group.n)
    shares = []
    for effect in claim.worlds:
        low, high = scaling.drawn(estimate, effect, random)
        if claim.either:
            low, high = np.maximum(low, -high), np.maximum(high, -low)
        verdicts = decide(low, high, claim.kind, claim.inner(claim.threshold), claim.either)
        shares.append((float((verdicts == YES).mean()), float((verdicts == NO).mean())))
    return tuple(shares)


def able(power: Sequence[tuple[float, float]]) -> bool:
    """Whether a rule with this power may give a verdict."""
    yes = [share for share, _ in power]
    return not yes or (yes[0] >= POWER and max(yes[1:]) <= FALSE)


def judged(claim: Claim, groups: Iterable[Group]) -> Claim:
    """The claim with the power and verdict of every group."""
    decided = []
    edge = claim.inner(claim.threshold)
    for group in groups:
        power = group.power or power_of(group, claim)
        verdict = SHOWN
        if group.decides and able(power):
            low = claim.inner(group.low)
            high = claim.inner(group.high)
            verdict = str(decide(low, high, claim.kind, edge, claim.either))
        decided.append(replace(group, power=power, verdict=verdict))
    return replace(claim, groups=tuple(decided))


def summed_up(groups: Iterable[Group]) -> str:
    """One verdict on several networks, from those on which the rule can decide.

    yes: on all; mostly: on none against it, or on three times as many for it; no: on none for it;
    mixed: else.  unclear: no more than half are clear, or none can decide; not tested: nothing is
    measured.
    """
    measured = [g.verdict for g in groups if g.n]
    if not measured:
        return UNTESTED
    counts = Counter(measured)
    yes, no, unclear = counts[YES], counts[NO], counts[UNCLEAR]
    if yes + no <= unclear:
        return UNCLEAR
    if not yes:
        return NO
    if yes >= 3 * no:
        return YES if no + unclear == 0 else MOSTLY
    return MIXED


# --- the registry ---------------------------------------------------------------------------------


# The authors of claims, by a key's first letter, in the order of the ledger
PAPERS = {
    "L": "Lee et al.",
    "M": "McCandlish et al.",
    "S": "Shallue et al.",
    "T": "Shi et al.",
    "O": "papers on training methods",
    "G": "papers on language models",
    "A": "Dai et al.",
    "B": "papers on training without backpropagation",
    "I": "papers on parts of a network",
    "P": "Guille-Escuret et al.",
    "F": "papers on training where the data lie",
    "N": "Vepakomma et al.",
    "U": "Sun et al.",
    "R": "Ingrosso and Goldt",
    "D": "papers on local steps",
    "W": "papers and code on rates and decay",
    "C": "Schulman et al.",
}
# Claims and findings, each with its function, by key, in the order of registration
REGISTRY: dict[str, tuple[Finding, Callable]] = {}


def place(key: str) -> tuple[int, int, str]:
    """The sort key of claims: their paper's letter, their number, and the key.

    Raises:
        ValueError: if the key does not begin with a letter of PAPERS and a number.
    """
    parts = re.match(r"(.)(\d+)", key)
    allowed = f"a paper's letter ({', '.join(PAPERS)}) and a number, as in L1"
    require(parts and parts[1] in PAPERS, "key", key, allowed)
    return list(PAPERS).index(parts[1]), int(parts[2]), key


def claim(key: str, title: str, **fields) -> Callable:
    """A decorator that registers a function under a claim.

    Args:
        key, title, **fields: of `Claim`, with the threshold named by the rule's kind, as in
            above=1.25.

    Raises:
        ValueError: unless there is exactly one such kind, and as `place`.
    """
    ((kind, threshold),) = [(kind, fields.pop(kind)) for kind in KINDS if kind in fields]
    return finding(key, title, Claim, kind=kind, threshold=threshold, **fields)


def finding(key: str, title: str, entry: type = Finding, **fields) -> Callable:
    """A decorator that registers a function of a chapter's claims.py under a finding of that
    chapter with these fields; entry: its class.

    Raises:
        ValueError: as `place`.
    """
    place(key)

    def register(function: Callable) -> Callable:
        chapter = function.__module__.split(".")[1]
        REGISTRY[key] = entry(key, title, chapter, **fields), function
        return function

    return register
