"""Whether a curve shows three regimes, from steps that fall as fast as batches grow to a floor."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from lib import forms
from lib.analysis import ranges, scaling
from lib.analysis.scaling import Curve, Effect
from lib.claims.claim import Group, difference
from lib.claims.names import curve_title, is_lee2021, marked

LEAST = 5  # batch sizes that a curve needs to be judged
FOURFOLD = 4  # ratio of batch sizes in the first and in the last stretch of a curve
PERFECT, FLOOR = 0.75, 0.25  # elasticities between which returns diminish
STRAIGHT = 0.5  # elasticity of a simulated curve without regimes
TRIED = "c₁/B + c₂ with its C", "steps as 1/√B", "steps that do not fall"


def judged(curves: Mapping[tuple, Curve], searches: pd.DataFrame) -> list[Group]:
    """The `margin` of every curve of LEAST batch sizes or more, `marked`.

    Args:
        curves: by key.
        searches: from which they were made.
    """
    long = {key: curve for key, curve in curves.items() if len(curve.sizes) >= LEAST}
    groups = itertools.starmap(margin, long.items())
    return marked(long, groups, ranges.whole_curves(searches))


def margin(key: tuple, curve: Curve) -> Group:
    """The group of how far a curve's elasticities clear PERFECT and FLOOR: the lesser margin.

    Both have to clear them, so the interval's ends are also the lesser ones.
    """
    first, last = scaling.estimate(elasticities, curve)
    steep = replace(first, value=first.value - PERFECT)
    flat = replace(last, value=FLOOR - last.value, below=last.above, above=last.below)
    nearer = min(steep, flat, key=lambda effect: effect.value)
    words = "{:.2f} ({:.2f} to {:.2f})"
    ends = (words.format(*effect.row(log=False).values()) for effect in (first, last))
    note = "exponent {} at first, {} at last".format(*ends).replace("-", "−")
    shares = power(curve, first, last)
    group = difference(curve_title(key), nearer, is_lee2021(key[0]), note, power=shares)
    low = min(steep.low, flat.low)
    high = min(steep.high, flat.high)
    return replace(group, low=low, high=high)


def power(curve: Curve, first: Effect, last: Effect) -> tuple[tuple[float, float], ...]:
    """How often the rule says yes and no, with these batch sizes and this scatter, to curves that
    are c1/B + c2 with this one's C (or C in the middle of the sizes, if they do not contain it),
    that are straight on logarithms, and that do not fall.
    """
    random = np.random.default_rng(0)
    ends = np.log(curve.sizes[[0, -1]])
    [bend] = forms.fit(curve.sizes, curve.means).bend
    bend = bend if ends[0] < bend < ends[1] else ends.mean()
    line = np.log1p(np.exp(bend) / curve.sizes)[None]
    made = [elasticities((curve.sizes, line))[0], np.full(2, STRAIGHT), np.zeros(2)]
    shares = []
    for truth in made:
        margins = zip((first, last), (truth[0] - PERFECT, FLOOR - truth[1]))
        low, high = np.min([scaling.drawn(*margin, random) for margin in margins], axis=0)
        shares.append((float(np.mean(low > 0)), float(np.mean(high < 0))))
    return tuple(shares)


def elasticities(curve: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """-d ln K / d ln B over the first and over the last fourfold of the batch sizes, [k, 2].

    curve: sizes [m] and ln K* [k, m].
    """
    sizes, logs = curve
    start = np.flatnonzero(sizes <= FOURFOLD * sizes[0])[-1]
    end = np.flatnonzero(sizes >= sizes[-1] / FOURFOLD)[0]
    places = np.log(sizes)
    first = (logs[:, 0] - logs[:, start]) / (places[start] - places[0])
    last = (logs[:, end] - logs[:, -1]) / (places[-1] - places[end])
    return np.stack([first, last], 1)
