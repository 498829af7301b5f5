"""The claims of Shi et al. (2019) and the rules by which the records judge them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.claims.verdicts import FAILS, HOLDS, OPEN, PART, claim, title
from lib.wording import number, span


def bell_shaped(portraits: pd.DataFrame) -> dict:
    """T1; portraits: of `portraits.shapes`, with feedback.

    A bell has its one peak at zero and is not flatter than a semicircle, as a uniform distribution is, by its excess kurtosis
    (-1) and its height at zero over a normal one's (the root of 2 / pi).  Spikes, higher than Laplace's (the root of pi), are
    told, not judged.  No recurrent network is measured, for which the claim would also have to hold: in part, at most.
    """
    centred = portraits["mean"].abs() < 0.1 * portraits["std"]
    even = (portraits.positive - 0.5).abs() < 0.1
    single = portraits.rise < 0.02
    round_ = (portraits["kurtosis"] > -1) & (portraits.peak > (2 / np.pi) ** 0.5)
    bell, spikes = (centred & even & single & round_).mean(), (portraits.peak > np.pi**0.5).sum()
    heights = "; ".join(f"{title(w)} {span((h.min(), h.max()))}" for w, h in portraits.groupby("workload").peak)
    return claim(
        "The vector that Top-k compresses is bell-shaped around zero, for fully connected, convolutional and recurrent networks.",
        f"{len(portraits)} portraits: the mean is within a tenth of the standard deviation of zero in {centred.mean():.0%}; "
        f"between 40 and 60 % of the entries are positive in {even.mean():.0%}; the histogram has one peak in "
        f"{single.mean():.0%} and is rounder than a semicircle's in {round_.mean():.0%}; all of this is so in {bell:.0%}. The "
        f"density at zero, a normal distribution's being 1, is {heights or 'not measured'}: in {spikes} a spike higher than "
        f"Laplace's. No recurrent network was measured, so the claim holds in part at most." if len(portraits) else "Not measured.",
        OPEN if not len(portraits) else FAILS if bell < 0.5 else PART,
        "Shi et al. 2019, abstract",
    )


def bounds(left: pd.DataFrame, shapes: pd.DataFrame) -> dict:
    """T3; left: value (measured share that Top-k leaves) at density x, a row per portrait and density.

    shapes: the portraits, of `portraits.shapes`: how far they meet the condition, which is told and not judged.
    """
    tighter = (1 - left.x) ** 2
    inside = (left.value <= tighter + 1e-6).mean()
    classical = (left.value <= 1 - left.x + 1e-6).mean()
    return claim(
        "What Top-k leaves of the vector's energy is at most (1 − k/d)², a tighter bound than 1 − k/d.",
        f"{left.value.count():,} pairs of a portrait and a density: {inside:.1%} within (1 − k/d)², {classical:.1%} within "
        f"1 − k/d; (1 − k/d)² exceeds what is left by {number((tighter - left.value).median())} in the median. Of the "
        f"{len(shapes)} portraits the sorted squared profile lies below the straight line in {(shapes.above == 0).sum()} and is "
        f"convex throughout in {(shapes.convex == 1).sum()}." if len(left) else "Not measured.",
        OPEN if not len(left) else HOLDS if inside == 1 else PART if inside > 0.9 else FAILS,
        "Shi et al. 2019, abstract",
    )


COMPARED = 0.001  # the density of the authors' runs


def loses_little(
    means: pd.DataFrame, name: str, published: str, points: float, warmed: pd.DataFrame | None = None, every: bool = False
) -> dict:
    """T4, T5; means: of `rivals.means`, test error over that of the rival; every workload has to lose little.

    Judged at the density of the authors' runs, others being told, or at every density.  warmed: of `rivals.gaps`, pairs in
    which the density was warmed up, as in those runs: too few to be judged, but where they lose little the claim cannot fail.
    """
    judged = means if every else means[means.density == COMPARED]
    others = means.drop(judged.index)
    sure, more = judged.gap + 2 * judged.error <= points, judged.gap > points
    warm = means[:0] if warmed is None else warmed[warmed.density == COMPARED].rename(columns={"noise": "error"})
    refuted = FAILS if not len(warm) or (warm.gap > points).all() else PART
    none = not sure.any() and not (judged.gap - 2 * judged.error > points).any()
    verdict = OPEN if judged.seeds.sum() < 3 or none else HOLDS if sure.all() else refuted if more.mean() > 0.5 else PART
    warm_told = (
        f" All this is without a warm-up of the density; pairs with it, as in the authors' runs, {len(warm)}: {_lost(warm)}"
        f"{'; but for them the claim would not hold' if verdict == PART and more.mean() > 0.5 else ''}."
    )
    told = (
        f"{judged.seeds.sum()} pairs of runs. Points of test error that {name} loses, mean over seeds ± one standard error: "
        f"{_lost(judged)}; at worst in a single pair {number(judged.worst.max())}. Two standard errors above the mean, "
        f"{sure.sum()} of {len(judged)} still lose at most {points:g} point; the mean itself is above that for {more.sum()}."
    )
    return claim(
        published,
        f"{'' if every else f'At density {COMPARED:g}, that of the authors, '}{told if len(judged) else 'no such pair of runs.'}"
        + f" Not judged: {_lost(others)}." * bool(len(others))
        + warm_told * bool(len(warm)),
        verdict,
        "our question, after Shi et al. 2019" if every else "Shi et al. 2019, abstract",
    )


def _lost(means: pd.DataFrame) -> str:
    """`rivals.means` in words."""
    return "; ".join(
        f"at density {density:g}, " + ", ".join(f"{title(r.workload)} {r.gap:.2f} ± {r.error:.2f}" for r in own.itertuples())
        for density, own in means.groupby("density")
    )


def far_behind(bare: pd.DataFrame, fed: pd.DataFrame) -> dict:
    """T4, second half; bare, fed: of `rivals.gaps`, Rand-k without and with feedback against dense messages.

    A winner at the edge of its search loses more than a tuned one would, so that the claim cannot hold by such winners.
    """
    bare, fed = bare[bare.density == COMPARED], fed[fed.density == COMPARED]
    behind = (bare.gap >= 10).mean() if len(bare) else 0
    clear = (bare.gap > 2 * bare.noise).mean() if len(bare) else 0
    (top, low), (fed_top, fed_low) = [(int(own.highest.sum()), int((own.edge > own.highest).sum())) for own in (bare, fed)]
    return claim(
        "Rand-k, with the same classical bound as Top-k, trains far worse.",
        f"{len(bare)} pairs of runs at density {COMPARED:g}, that of the authors' comparison: Rand-k without feedback, as in "
        f"theirs, loses {number(bare.gap.mean())} points of test error on average, ten or more in {behind:.0%}; with feedback "
        f"{number(fed.gap.mean())}. The best learning rate is the highest of those tried in {top} and the lowest in {low} of "
        f"{len(bare)} searches (with feedback in {fed_top} and {fed_low} of {len(fed)}). Tuned better, it may lose less, and "
        f"as long as half of the winners lie at an edge the claim holds in part at most.",
        OPEN if len(bare) < 3 else HOLDS if behind > 0.9 and bare.edge.mean() < 0.5 else PART if clear > 0.9 else FAILS,
        "Shi et al. 2019, abstract; runs named in the authors' plotting code",
    )


def faster_operator(times: pd.DataFrame) -> dict:
    """T6; times: d, library, own (the times of PyTorch's exact Top-k and of ours over Gaussian-k's, `message_cost`)."""
    large = times[times.d >= 2**24]
    told = [
        f"{who} takes {span((ratio.min(), ratio.max()))} times as long as Gaussian-k"
        + (f", {number(ratio[large.index].median())} times from 2²⁴ entries on" if len(large) else "")
        for who, ratio in (("PyTorch's exact Top-k", times.library), ("ours, as exact,", times.own))
    ]
    return claim(
        "Gaussian-k selects in a fraction of the time of exact Top-k on a graphics processor.",
        f"On one CPU core, over {len(times)} vector lengths, {'; '.join(told)}. No graphics processor was at hand.",
        OPEN,
        "Shi et al. 2019, abstract",
    )


def denser_is_nearer(gaps: pd.DataFrame, exact: pd.DataFrame) -> dict:
    """T9; gaps, exact: of `rivals.gaps`, of Gaussian-k and of Top-k at several densities.

    Top-k is judged, which sends just k.  A step from density to density counts if the mean over seeds moves by more than two
    of its standard errors.
    """
    by = exact.groupby(["workload", "density"])
    mean, error = by.gap.mean().unstack(), np.maximum(by.noise.mean(), by.gap.sem().fillna(0)).unstack()
    fall, doubt = -mean.diff(axis=1).stack().dropna(), np.sqrt((error**2 + error.shift(axis=1) ** 2).stack().dropna())
    falls, rises = int((fall > 2 * doubt).sum()), int((fall < -2 * doubt).sum())
    steps = gaps.groupby(["workload", "replicate", "density"]).gap.mean().unstack().diff(axis=1).stack().dropna()
    return claim(
        "A larger density narrows the gap to dense messages: no statement of theirs, but a comparison named in the authors' "
        "plotting code.",
        f"Top-k, which sends just its k: from density to density the mean gap falls by more than two standard errors in {falls} of "
        f"{len(fall)} steps up, and rises by as much in {rises}. Gaussian-k's falls in {int((steps <= 0).sum())} of {len(steps)}, "
        f"but what it sends is another multiple of its k at each, so that this is not the effect of density alone.",
        OPEN if not falls + rises else FAILS if not falls else HOLDS if falls == len(fall) else PART,
        "plotting code of Shi et al. 2019",
    )
