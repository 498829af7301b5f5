"""A claim: what a paper says, the rule that judges it, the rule's history, and the verdict on
every network.

    @claim(
        "L4", "Larger batches help pruned networks no less",
        chapter="sparsity",
        paper="Data parallelism in sparse training is no worse than in dense training.",
        source="Lee et al. 2020, abstract",
        rule="On a network, the critical batch size at the highest sparsity is over 0.8 times the "
        "dense one's.",
        above=0.8,
        since="2026-11-26",
        history=[Change("2026-11-26", "over half the dense one's, in the median", "...")],
    )
    def critical_over_dense(curves):
        ...
        return [ratio(title, effect, own=True), ...]

A claim's function is given what its parameters name (`lib.claims.judging.PROVIDED`) and returns a
`Group` per network.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
from scipy.special import ndtri

from lib import require
from lib.analysis import scaling
from lib.analysis.scaling import ENOUGH, LEVEL, Effect
from lib.wording import brief, joined

FOR, AGAINST, UNDECIDED = "for", "against", "not decided"
SAID = {FOR: "for it", AGAINST: "against it", UNDECIDED: "not decided"}
REPRODUCED, PART, CONTRADICTED, OPEN = "reproduced", "in part", "contradicted", "open"
STAND_INS = "on stand-ins only"
# Times the threshold (of a ratio: its logarithm), at which verdicts are shown, too
STRICTER, LAXER = 4 / 3, 3 / 4
KINDS = ("above", "below", "within")


@dataclass(frozen=True)
class Group:
    """The effect on one network, of one method where the claim is about methods.

    effect, low, high: as printed, the ends at 90 %; 0 or inf (for a ratio), -inf or inf (else)
    where there is no bound. n: independent searches, or other independent repeats; 0 if nothing is
    measured. own: whether the network is one of the paper's own. error, freedom: standard error and
    its degrees of freedom on the scale of `Rule.inner`. note: what a reader should know of this
    row, as "a bound: the best rate lies at an edge". verdict, robust: filled in by `judged`.
    robust: decided alike at LAXER and STRICTER times the threshold, by ENOUGH searches.
    """

    name: str
    effect: float
    low: float
    high: float
    n: int
    own: bool = False
    error: float = math.nan
    freedom: float = math.inf
    note: str = ""
    verdict: str = ""
    robust: bool = False


def ratio(name: str, effect: Effect, own: bool = False, note: str = "") -> Group:
    """The group of a ratio whose logarithm was estimated."""
    return Group(
        name, *effect.row().values(), effect.n, own, effect.error, effect.freedom, note
    )


def difference(
    name: str, effect: Effect, own: bool = False, note: str = "", times: float = 1.0
) -> Group:
    """The group of a difference; times: 100 to print a share's difference as points."""
    ends = (times * v for v in effect.row(log=False).values())
    return Group(name, *ends, effect.n, own, times * effect.error, effect.freedom, note)


def interval(
    name: str,
    effect: float,
    low: float,
    high: float,
    n: int,
    own: bool = False,
    note: str = "",
    log: bool = False,
) -> Group:
    """The group of an interval that is known by its ends alone, taken for normal: its error is that
    of its width.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.diff(np.log([low, high]) if log else [low, high]).item()
    error = width / 2 / ndtri(0.5 + LEVEL / 2) if math.isfinite(width) else math.inf
    return Group(name, effect, low, high, int(n), own, error, note=note)


def share(name: str, met: int, of: int, own: bool = False, note: str = "") -> Group:
    """The group of a share of independent repeats, with Wilson's interval."""
    return interval(name, *scaling.share(met, of), of, own, note)


def unmeasured(name: str, note: str = "not measured") -> Group:
    """The group of a network of which nothing is on record."""
    return Group(name, math.nan, math.nan, math.nan, 0, note=note)


@dataclass(frozen=True)
class Change:
    """An earlier form of a rule: when it was given up, what it was, why, and whether the records
    were known by then.
    """

    when: str
    was: str
    why: str
    records_known: bool = True


@dataclass(frozen=True)
class Claim:
    """A claim with its rule, and, once judged, its groups and its verdict.

    key, title: of the ledger.  chapter: the page that tells of it. paper: what the paper says.
    source: where.  read: what was at hand of the paper ("text", "abstract", "summary"), of code
    ("code") or of data ("notes"). rule: what decides on each network.  kind, threshold: the
    interval has to lie above it, below it, or within it, which for a ratio is from 1/threshold to
    threshold, else from -threshold to threshold.
    scale: "ratio", "points" (of error) or "share". since: when the rule got its present form.
    history: its earlier ones. fixed: whether the number of searches was fixed before they were
    made. groups, verdict, price: filled in by `judged`; price: what would decide it, where nothing
    is decided.
    """

    key: str
    title: str
    chapter: str
    paper: str
    source: str
    rule: str
    kind: str
    threshold: float
    scale: str = "ratio"
    read: str = "abstract"
    since: str = "2026-11-26"
    history: tuple[Change, ...] = ()
    fixed: bool = False
    price: str = ""
    groups: tuple[Group, ...] = ()
    verdict: str = ""

    def inner(self, value: float) -> float:
        """A value on the scale on which errors are: the logarithm of a ratio, else itself."""
        if self.scale != "ratio" or math.isnan(value):
            return value
        return math.log(value) if value > 0 else -math.inf

    @property
    def needs(self) -> str:
        """Where an interval has to lie: "above 1.25", "within a factor of 1.25"."""
        value = (
            f"{100 * self.threshold:g} %" if self.scale == "share" else f"{self.threshold:g}"
        )
        around = "a factor of " if self.scale == "ratio" else "± "
        return f"{self.kind} {around if self.kind == 'within' else ''}{value}"

    @property
    def measured(self) -> tuple[Group, ...]:
        return tuple(g for g in self.groups if g.n)

    def decided(self, verdict: str) -> list[Group]:
        """The groups of this verdict."""
        return [g for g in self.groups if g.verdict == verdict]

    @property
    def fragile(self) -> bool:
        """Whether none of the paper's own networks decides it robustly."""
        return not any(g.robust for g in self.groups if g.own and g.verdict != UNDECIDED)

    @property
    def part(self) -> str:
        """For which networks the records speak for the claim, for which against it, where it is not
        decided.
        """
        return "; ".join(f"{word}: {joined(names)}" for word, names in self._by_verdict())

    @property
    def tally(self) -> str:
        """The same in numbers of networks."""
        return ", ".join(f"{len(names)} {word}" for word, names in self._by_verdict())

    def _by_verdict(self) -> Iterator[tuple[str, list[str]]]:
        """SAID of every verdict that there is, and the networks' names."""
        for verdict, word in SAID.items():
            if names := [g.name for g in self.decided(verdict)]:
                yield word, names


def decide(group: Group, kind: str, threshold: float) -> str:
    """FOR if the interval lies where the claim needs it, AGAINST if wholly elsewhere; UNDECIDED if
    nothing is measured, or its ends are NaN.  All on the inner scale.
    """
    if not group.n:
        return UNDECIDED
    over = group.low > threshold
    under = group.high < threshold
    fine, lacking = {
        "above": (over, under),
        "below": (under, over),
        "within": (under and group.low > -threshold, over or group.high < -threshold),
    }[kind]
    return FOR if fine else AGAINST if lacking else UNDECIDED


def judged(claim: Claim, groups: Sequence[Group]) -> Claim:
    """The claim with the verdict on every group, and the word that sums them up."""
    found, inner = [], []
    edge = claim.inner(claim.threshold)
    for group in groups:
        ends = {name: claim.inner(vars(group)[name]) for name in ("effect", "low", "high")}
        inner.append(replace(group, **ends))
        verdict, *others = (
            decide(inner[-1], claim.kind, edge * times) for times in (1, STRICTER, LAXER)
        )
        robust = set(others) == {verdict} and group.n >= ENOUGH
        found.append(replace(group, verdict=verdict, robust=robust))
    verdict = summed_up(found)
    price = what_decides(inner, claim.kind, edge) if verdict == OPEN else ""
    return replace(claim, groups=tuple(found), verdict=verdict, price=price)


def what_decides(groups: Sequence[Group], kind: str, threshold: float) -> str:
    """How many times as large an n would decide the network nearest to it: intervals narrow with
    the square root of n.  All on the inner scale.
    """
    needed = {}
    for group in groups:
        if group.n and all(map(math.isfinite, (group.effect, group.low, group.high))):
            below = kind == "within" and group.effect < 0
            room = group.effect - (-threshold if below else threshold)
            # Of a lopsided interval, the arm that faces the threshold
            reach = group.effect - group.low if room > 0 else group.high - group.effect
            needed[group.name] = (reach / room) ** 2 if room else math.inf
    if not needed:
        return "Searches of the networks named."
    nearest = min(needed, key=needed.get)
    times = needed[nearest]
    words = "Over a hundred" if times > 100 else f"About {brief(max(times, 1.1))}"
    return f"{words} times as large an n: {nearest}."


def summed_up(groups: Sequence[Group]) -> str:
    """One word for a row of the matrix: the paper's own networks first.

    reproduced: for it on all that is decided, one of the paper's own networks among them.
    contradicted: against it on every own network that is decided.  in part: both, with an own
    network among what is decided. on stand-ins only: no own network is decided; for, against, or
    for and against it.  open: nothing is decided.
    """
    every = {g.verdict for g in groups} - {UNDECIDED}
    own = {g.verdict for g in groups if g.own} - {UNDECIDED}
    if not every:
        return OPEN
    if not own:
        return f"{STAND_INS}: {joined(sorted(every, reverse=True))}"
    if every == {FOR}:
        return REPRODUCED
    return CONTRADICTED if own == {AGAINST} else PART


# --- the registry ---------------------------------------------------------------------------------


# Whose claims they are, by a key's first letter, in the order of the ledger
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
    "H": "papers on batches that grow",
    "D": "papers on local steps",
    "Q": "Naganuma et al.",
    "V": "papers on masks that move",
    "W": "papers and code on rates and decay",
    "C": "Schulman et al.",
}
# Claims and their functions by key, in the order in which they were written down
REGISTRY = SimpleNamespace(claims={}, functions={})


def place(key: str) -> tuple[int, int, str]:
    """What claims are sorted by: their paper's letter, their number, and the key.

    Raises:
        ValueError: if the key does not begin with a letter of PAPERS and a number.
    """
    parts = re.match(r"(.)(\d+)", key)
    allowed = f"a paper's letter ({', '.join(PAPERS)}) and a number, as in L1"
    require(parts and parts[1] in PAPERS, "key", key, allowed)
    return list(PAPERS).index(parts[1]), int(parts[2]), key


def claim(key: str, title: str, history: Sequence[Change] = (), **fields) -> Callable:
    """A decorator that registers a function under a claim.

    fields: of `Claim`, with the kind of its rule for the threshold, as above=1.25. Raises
    ValueError unless there is one such kind, and as `place`.
    """
    place(key)
    ((kind, threshold),) = [(kind, fields.pop(kind)) for kind in KINDS if kind in fields]
    rule = {"kind": kind, "threshold": threshold, "history": tuple(history)}
    REGISTRY.claims[key] = Claim(key, title, **rule, **fields)

    def register(function: Callable) -> Callable:
        REGISTRY.functions[key] = function
        return function

    return register
