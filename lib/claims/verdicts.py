"""What a verdict is, and the words that all claims share."""

from __future__ import annotations

import pandas as pd
from scipy.special import bdtrc

from lib.wording import number, span
from lib.workloads.catalogue import WORKLOADS

SUMMARISED = "Shallue et al. 2019, as summarised by others"  # only their abstract and released material were at hand
HOLDS, PART, FAILS, OPEN = "holds", "holds in part", "does not hold", "cannot be judged"


def claim(paper: str, ours: str, verdict: str, source: str) -> dict:
    return {"paper": paper, "ours": ours, "verdict": verdict, "source": source}


def title(name: str) -> str:
    return WORKLOADS[name].title if name in WORKLOADS else str(name)


def each(items: list[str], none: str = "not measured") -> str:
    """What follows upon a phrase: ": this." if it is one item, a list, a line each, if there are more (`lib.page.boxes.claim`)."""
    return ":" + "".join(f"\n- {item}" for item in items) + "\n" if len(items) > 1 else f": {items[0] if items else none}."


def by_chance(found: int, of: int, rate: float = 0.1) -> float:
    """The probability that so many or more of independent ranges of 5 to 95 % leave out a value which is the true one."""
    return float(bdtrc(found - 1, of, rate)) if found else 1.0


def told(effects: pd.DataFrame) -> str:
    """`families.effects` in words."""
    return each([
        f"{r.family}, {r['last']} over {r['first']}: {number(r.ratio)} ({span((r.ratio_low, r.ratio_high))}"
        f"{'' if r.inside else '; a bend lies outside the batch sizes measured'})"
        for _, r in effects.iterrows()
    ])  # fmt: skip
