"""What a judged claim is, and how a rule decides it: an interval against a threshold, group by group."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from lib.wording import brief, joined, number, percent

HOLDS, PART, FAILS, OPEN = "holds", "holds in part", "does not hold", "undecided"
SUMMARISED = "Shallue et al. 2019, as summarised by others"  # only their abstract and released material were at hand
LEAST, MOST = 1.1, 100  # times the searches on record: outside, a number of them is no advice
# No effect at all, and the least effect that matters: what rules of this ledger ask for that do not ask for any (S7b, S14).
NO_EFFECT = {"ratio": 1.0, "points": 0.0}
MATTERS = {"ratio": 1.25, "points": 0.2}


@dataclass(frozen=True)
class Group:
    """An effect with its 5 and 95 % ends; n: of what it is the effect, 0 and NaN if not measured."""

    name: str
    effect: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Claim:
    """A judged claim: what `boxes.claim` and the ledger show, and what a figure of all claims draws.

    effect, low, high: of the measured group that speaks least for the claim, of those that make the verdict; where it holds
    in part, of one that does not hold.  n: over all groups.  threshold: the claim needs the interval above it, or below it
    if not above.  scale: "ratio", "points" (of error) or "share".  part: for which
    groups it holds, if in part.  price: what would decide it, if it is undecided.  ours: the finding, a sentence or two.
    """

    key: str
    chapter: str
    paper: str
    rule: str
    effect: float
    low: float
    high: float
    n: int
    threshold: float
    above: bool
    scale: str
    verdict: str
    part: str
    price: str
    ours: str
    source: str
    groups: tuple[Group, ...]

    @property
    def needs(self) -> str:
        """Where the interval has to lie for the claim to hold: "above 1.25", "below 50 %"."""
        least = percent(max(self.threshold, 0)) if self.scale == "share" else number(self.threshold)
        return f"{'above' if self.above else 'below'} {least}"


def decide(low: float, high: float, threshold: float, above: bool = True, scale: str = "") -> str:
    """HOLDS if the interval lies on the claim's side of the threshold, FAILS if on the other, OPEN if on both or unknown.

    A claim of any effect at all, whose threshold is NO_EFFECT on its scale, also FAILS where the interval ends short of one
    that MATTERS: were the effect none, no interval would ever lie on one side.
    """
    if low > threshold:
        return HOLDS if above else FAILS
    any_effect = above and threshold == NO_EFFECT.get(scale)
    if high < (MATTERS[scale] if any_effect else threshold):
        return FAILS if above else HOLDS
    return OPEN


def together(verdicts: list[str]) -> str:
    """One verdict of all groups': in part if some hold, and not all; one that fails refutes a claim that holds nowhere."""
    if HOLDS in verdicts:
        return HOLDS if set(verdicts) == {HOLDS} else PART
    return FAILS if FAILS in verdicts else OPEN


@dataclass(frozen=True)
class Rule:
    """What is fixed before the records are read; fields as in `Claim`.

    says: what decides, in a sentence.  finds: the words, with fields of `Claim` and group (the name of the one shown) in
    braces.  lacks: what would decide the claim; times and cost in braces: how much more of what is measured, and of computing time.
    """

    key: str
    chapter: str
    paper: str
    says: str
    threshold: float
    above: bool
    scale: str
    finds: str
    lacks: str
    source: str

    def judge(self, evidence: pd.DataFrame, hours: float | dict[str, float] = math.nan) -> Claim:
        """evidence: a row per group, of `lib.analysis.evidence`.  hours: core-hours that its cells took, or each group's."""
        groups = tuple(Group(**row) for row in evidence.to_dict("records"))
        verdicts = [decide(g.low, g.high, self.threshold, self.above, self.scale) for g in groups]
        verdict = together(verdicts)
        shown, n = self._shown(groups, verdicts, verdict), sum(g.n for g in groups)
        words = {name: self._word(getattr(shown, name)) for name in ("effect", "low", "high")}
        return Claim(
            **{name: getattr(self, name) for name in ("key", "chapter", "paper", "threshold", "above", "scale", "source")},
            rule=self.says, effect=shown.effect, low=shown.low, high=shown.high, n=n, groups=groups, verdict=verdict,
            part=_part(groups, verdicts) if verdict == PART else "", price=self._price(groups, hours) if verdict == OPEN else "",
            ours=self.finds.format(group=shown.name, n=number(n), **words) if shown.n else "Not measured.",
        )  # fmt: skip

    def _word(self, value: float) -> str:
        return f"{value:.0%}".replace("%", "\u00a0%") if self.scale == "share" and math.isfinite(value) else brief(value)

    def _shown(self, groups: tuple[Group, ...], verdicts: list[str], verdict: str) -> Group:
        """The measured group that speaks least for the claim, among those that make the verdict."""
        for wanted in {PART: (FAILS, OPEN)}.get(verdict, (verdict,)):
            own = [g for g, v in zip(groups, verdicts, strict=True) if v == wanted and g.n]
            if own:
                return min(own, key=lambda g: g.low) if self.above else max(own, key=lambda g: g.high)
        return next((g for g in groups if g.n), Group("", math.nan, math.nan, math.nan, 0))

    def _price(self, groups: tuple[Group, ...], hours: float | dict[str, float]) -> str:
        """What decides the group that is nearest to it: an interval narrows with the square root of what is measured, until its
        near end meets the threshold."""
        measured = [g for g in groups if g.n]
        nearest = min(measured, key=self._times, default=None)
        times = self._times(nearest) if nearest else math.inf
        own = hours.get(nearest.name if nearest else "", math.nan) if isinstance(hours, dict) else hours
        capped, over = min(max(times, LEAST), MOST), "over " * (times > MOST)
        hours = (capped - 1) * own
        cost = f"{brief(60 * hours)} more core-minutes" if hours < 1 else f"{brief(hours)} more core-hours"
        told = {"times": over + brief(capped), "cost": over + cost}
        whose = f", for {nearest.name}" if len(measured) > 1 and "{" in self.lacks else ""
        return f"It would take {self.lacks.format(**told)}{whose}."

    def _times(self, group: Group) -> float:
        scaled = [math.log(x) if x > 0 else -math.inf for x in (group.effect, group.low, group.high, self.threshold)]
        effect, low, high, threshold = (
            scaled if self.scale == "ratio" else (group.effect, group.low, group.high, self.threshold)
        )
        reach, room = (effect - low, effect - threshold) if effect > threshold else (high - effect, threshold - effect)
        return (reach / room) ** 2 if room > 0 else math.inf


def _part(groups: tuple[Group, ...], verdicts: list[str]) -> str:
    """Which groups hold, which do not, which are undecided."""
    found = {v: joined([g.name for g, own in zip(groups, verdicts, strict=True) if own == v]) for v in verdicts}
    words = {HOLDS: "for {}", FAILS: "not for {}", OPEN: "undecided for {}"}
    return ", ".join(words[v].format(found[v]) for v in words if v in found)
