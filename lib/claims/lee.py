"""The claims of Lee et al. (2020, 2021) and the rules by which the records judge them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import CURVE
from lib.claims.verdicts import FAILS, HOLDS, OPEN, PART, SUMMARISED, by_chance, claim, each, title
from lib.wording import named, number, span
from lib.workloads.catalogue import WORKLOADS


def regimes(summary: pd.DataFrame, expected: pd.DataFrame) -> dict:
    """L1; summary: of `scaling.summaries`; expected: of `scaling.expected_regimes`.

    Searches scatter by more than the definitions tolerate, so that even exact curves seldom pass: it holds if as many pass
    as should, and more than if no curve had a floor.
    """
    shown, random = int(scaling.all_three(summary).sum()), np.random.default_rng(0).random((2000, len(summary)))
    least, most = (int(np.quantile((random < p).sum(1), q)) for p, q in ((expected.trend.to_numpy(), 0.05),
                                                                        (expected.power.to_numpy(), 0.95)))  # fmt: skip
    digits = summary.workload.isin([w for w in WORKLOADS if WORKLOADS[w].dataset == "digits"])
    small = int((scaling.all_three(summary) & digits).sum())
    return claim(
        "Across workloads there is one general trend: perfect scaling, then diminishing returns, then maximal data parallelism.",
        f"{shown} of {len(summary)} curves show all three regimes by the operational definitions: perfect scaling over "
        f"more than one batch size, an end to it, and a floor of at least two; {small} of them on digits, which have "
        f"{int(digits.sum())} of the curves. {summary.leaves_perfect.sum()} leave perfect "
        f"scaling, {summary.reaches_plateau.sum()} reach a floor. Searches scatter: if every curve were exactly c₁/B + c₂, "
        f"{expected.trend.sum():.1f} would pass on average, {least} or more in 95 % of cases; if each were a power law, without "
        f"a floor, {expected.power.sum():.1f}, at most {most} in 95 %.",
        OPEN if not len(summary) or least <= shown <= most else HOLDS if least <= shown else PART if shown > most else FAILS,
        f"Lee et al. 2021, abstract; {SUMMARISED}",
    )


FOLLOWS = 1.5  # the residual of a curve that follows c1/B + c2, beyond what the scatter of searches explains (95 %)


def irrespective(points: pd.DataFrame, summary: pd.DataFrame, missed: pd.DataFrame) -> dict:
    """L2; points: `off`, |log2| of measured over the common line; sparse curves are judged.

    missed: of `scaling.missed`; a line cannot be held against steps that are not known, so that these are told.
    """
    sparse = summary[summary.sparsity > 0]
    good = (sparse.residual < FOLLOWS) & sparse.leaves_perfect
    bad = "; ".join(f"{title(r.workload)}, {named(r.algorithm)}, sparsity {r.sparsity:g} (off by {r.residual:.2f})"
                    for r in sparse[~good].itertuples())  # fmt: skip
    lost = (missed.max_steps / missed.predicted).dropna()
    told = f" Not counted: {len(lost)} cells that missed the goal in {span((lost.min(), lost.max()))} times the steps that the " \
           f"line fitted to the rest of their curve predicts." if len(lost) else ""  # fmt: skip
    return claim(
        "The trend holds irrespective of the sparsity level.",
        f"{good.sum()} of {len(sparse)} curves of sparse networks leave perfect scaling and lie off c₁/B + c₂ by less than a "
        f"factor of {FOLLOWS} (root mean square){f', all but {bad}' if bad else ''}; curves of few batch sizes do so by "
        f"construction. Points of all curves deviate from the common line by a factor of "
        f"{2 ** points.off.median():.2f} in the median.{told}",
        OPEN if not len(sparse) else HOLDS if good.mean() > 0.9 else PART if good.mean() > 0.5 else FAILS,
        "Lee et al. 2021, abstract of an earlier version",
    )


def harder(costs: pd.DataFrame, lost: int) -> dict:
    """L3; costs: of `scaling.steps_over_dense`; lost: of `scaling.unmet`, points which would speak for the claim.

    Judged at every sparsity by the median over its points, and by single points if more lie below one than by chance.
    """
    pooled = {level: scaling.middle(own.draws) for level, own in costs.groupby("sparsity")}
    fewer = costs.ratio_high < 1
    told = [
        f"{level:g}: {number(pooled[level][1])} in the median ({span(pooled[level][::2])}), "
        f"{span((own.ratio.min(), own.ratio.max()))} at single points; ranges above one for {(own.ratio_low > 1).sum()} of "
        f"{len(own)}, below for {fewer[own.index].sum()}"
        for level, own in costs.groupby("sparsity")
    ]
    up, down = [low > 1 for low, _, _ in pooled.values()], [high < 1 for *_, high in pooled.values()]
    chance = by_chance(int(fewer.sum()), len(costs), 0.05)
    return claim(
        "Training is harder under sparsity: more steps to the same goal at every batch size.",
        f"Steps over the dense network's, by sparsity{each(told)} Left out are {lost} points at which no trial of the pruned "
        f"network met the goal.",
        OPEN if not any(up + down) else FAILS if not any(up) else HOLDS if all(up) and chance > 0.05 else PART,
        "Lee et al. 2021, abstract",
    )


def no_worse(bends: pd.DataFrame) -> dict:
    """L4; bends: of `scaling.against_dense` for "critical"."""
    worse, better = int((bends.ratio_high < 1).sum()), int((bends.ratio_low > 1).sum())
    half = int((bends.ratio_low > 0.5).sum())
    return claim(
        "Data parallelism in sparse training is no worse than in dense training.",
        f"{len(bends)} sparse curves against their dense ones, by the ratio of their bends c₁/c₂: its 5–95 % range lies above 1 "
        f"for {better}, below 1 for {worse}, and above one half (not much worse, if at all) for {half}; the others decide nothing.",
        OPEN if not worse + half else FAILS if worse > len(bends) / 2 else HOLDS if half == len(bends) and not worse else PART,
        "Lee et al. 2021, abstract of an earlier version; Lee et al. 2020, abstract",
    )


def whatever_the_method(summary: pd.DataFrame, bends: pd.DataFrame) -> dict:
    """L2 for other ways to prune; summary: of sparse curves, several methods each; bends: of
    `scaling.against_sensitivity` for "critical".  A curve differs if it does not follow c1/B + c2 or bends elsewhere, and is
    alike if it follows it and the whole range of its bend is within a factor of two.
    """
    known, keys = summary.set_index(CURVE), list(bends[CURVE].itertuples(index=False, name=None))
    rows = bends.assign(residual=[float(known.residual[k]) for k in keys], measured=[known.sizes[k] for k in keys])
    apart = (rows.ratio_low > 1) | (rows.ratio_high < 1)
    follows = rows.residual < FOLLOWS
    told = [f"{title(r.workload)}, {named(r.pruning)}, {r.measured} batch sizes: {number(r.ratio)} "
            f"({span((r.ratio_low, r.ratio_high))})" for r in rows[follows].itertuples()]  # fmt: skip
    rest = "; ".join(f"{title(r.workload)}, {named(r.pruning)} (off by {r.residual:.2f})" for r in rows[~follows].itertuples())
    alike, differ = (follows & (rows.ratio_low > 0.5) & (rows.ratio_high < 2)).sum(), (~follows | apart).sum()
    return claim(
        "The trend between batch size and steps to result does not depend on how one prunes: no statement of theirs, who prune "
        "by connection sensitivity.",
        f"{follows.sum()} of {len(rows)} curves pruned in other ways lie off c₁/B + c₂ by less than a factor of {FOLLOWS}. The "
        f"bend of these over that after pruning by connection sensitivity, at batch sizes both have{each(told, 'none')} Curves "
        f"that do not follow it have no bend to compare: {rest or 'none'}. {alike} bend alike, with a range within a factor of "
        f"two; {differ} differ; the others decide nothing.",
        OPEN if not alike + differ else FAILS if differ > len(rows) / 2
        else HOLDS if alike == len(rows) else PART,
        "our question, after Lee et al. 2021",
    )  # fmt: skip


def later_with_momentum(ends: pd.DataFrame, bends: pd.DataFrame, end: tuple, bend: tuple) -> dict:
    """L5; ends, bends: of `scaling.against_dense` for "perfect_end" and "critical", momentum and Nesterov only, at the
    highest sparsity of each, where the effect should be largest; end, bend: `scaling.pooled` over the pairs.

    The bend decides, since it uses every point of a curve, and on a curve c1/B + c2 scaling leaves the perfect by a given
    share at a given share of the bend.  "Much larger" is a factor of two.
    """
    n = len(bends)
    apart = [(int((rows.ratio_low > 1).sum()), int((rows.ratio_high < 1).sum())) for rows in (ends, bends)]
    return claim(
        "With momentum-based algorithms, perfect scaling can break at a much larger batch size for sparse networks than for dense "
        "ones.",
        f"{n} pairs with momentum or Nesterov, at the highest sparsity of each. The fitted bend is {number(bend[1])} times the "
        f"dense one's in the median over pairs (5–95 %: {span(bend[::2])}); single ranges lie above 1 for {apart[1][0]} and below "
        f"for {apart[1][1]}. The end of perfect scaling, which can only be one of the batch sizes measured, is {number(end[1])} "
        f"times ({span(end[::2])}), above for {apart[0][0]} and below for {apart[0][1]}. Judged is the median over pairs, taken as "
        f"independent, and much larger is twice: it is ruled out for {int((bends.ratio_high < 2).sum())} of the single pairs, and "
        f"if all erred together the upper end would be {number(bends.ratio_high.median())}.",
        OPEN if not n else HOLDS if bend[0] > 1 and bend[1] >= 2 else PART if bend[0] > 1 else FAILS if bend[2] < 2 else OPEN,
        "Lee et al. 2020, abstract",
    )


def theory(rms: pd.DataFrame, r2: float) -> dict:
    """L6; rms: of `forms.left_out_factors`.  All curves have to agree with the form, and those of plain SGD by themselves,
    for which alone it is derived.
    """
    own, told, verdicts = "c1/B + c2", [], []
    data = ", ".join(sorted({WORKLOADS[w].dataset if w in WORKLOADS else str(w) for w in rms.workload}))
    for name, rows in (("all", rms), ("plain SGD's", rms[rms.algorithm == "sgd"])):
        typical = rows.groupby("form").factor.median()
        if not len(typical):
            continue
        others = typical.drop(own)
        told.append(f"over {name} {(rows.form == own).sum()} curves to a factor of {typical[own]:.2f} in the median, the best of "
                    f"the other forms to {others.min():.2f}, pure perfect scaling to {typical['c1/B']:.2f}")  # fmt: skip
        verdicts.append(HOLDS if typical[own] < 1.05 * others.min()
                        else PART if typical[own] < typical[["c1/B", "c1/B^p"]].min() else FAILS)  # fmt: skip
    return claim(
        "Convergence theory of stochastic gradient methods accounts for the relation between batch size and steps to result. "
        "(Here: the form c₁/B + c₂, as derived here, which other models share, not the values of its constants.)",
        f"c₁/B + c₂ predicts left-out batch sizes of curves with at least {scaling.LONG} ({data}), "
        f"{'; '.join(told) or 'not measured'}. Median R² {r2:.2f}. The shape is "
        f"judged here; L7 and the chapter on smoothness look at what its constants are made of.",
        OPEN if not verdicts else max(verdicts, key=(HOLDS, PART, FAILS).index),
        "Lee et al. 2021, abstract",
    )


ENOUGH = 3  # paths of a workload, for its verdict not to hang on one


def rougher(over: pd.DataFrame) -> dict:
    """L7; over: of `landscape.over_dense`, the highest sparsity of each workload.  Workloads with enough paths count alike."""
    each = over.groupby("workload").lipschitz.agg(["median", lambda ratio: (ratio > 1).sum(), "count"])
    each.columns = ["median", "larger", "paths"]
    counted = each[each.paths >= ENOUGH]
    told = [f"{title(w)}: {number(r['median'])} times, larger in {r.larger:.0f} of {r.paths:.0f}"
            f"{'' if r.paths >= ENOUGH else ', too few to count'}" for w, r in each.iterrows()]  # fmt: skip

    def verdict(rows: pd.DataFrame) -> str:
        share = (rows.larger / rows.paths).mean()
        return OPEN if not len(rows) else HOLDS if share > 0.9 else FAILS if share < 0.1 else PART

    fewest = counted[counted.index != counted.paths.idxmin()] if len(counted) > 1 else counted
    without = f"without {title(counted.paths.idxmin())} it would be: {verdict(fewest)}" if len(counted) > 1 else "there is one"
    return claim(
        "A lack of smoothness, a larger local Lipschitz constant of the gradient, accounts for the difficulty of training "
        "sparse networks. (Here: whether it is larger.)",
        f"At sparsity {span((over.sparsity.min(), over.sparsity.max()))}, the constant along the fastest trials over the dense "
        f"network's, in the median{each(told)} Workloads count alike in the verdict, whatever their number of paths; {without}.",
        verdict(counted),
        "Lee et al. 2021, abstract",
    )
