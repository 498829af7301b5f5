"""The papers' claims and the rules by which the records judge them: what a claim box and the ledger show.

Each function returns the arguments of `lib.book.claim`.  Rules are fixed here, before more data come in: a verdict
changes only when the measurements do.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from lib.book import number, span
from lib.workloads import WORKLOADS

HOLDS, PART, FAILS, OPEN = "holds", "holds in part", "does not hold", "cannot be judged"


def _claim(paper: str, ours: str, verdict: str, source: str) -> dict:
    return {"paper": paper, "ours": ours, "verdict": verdict, "source": source}


def _title(name: str) -> str:
    return WORKLOADS[name].title if name in WORKLOADS else str(name)


def _told(effects: pd.DataFrame) -> str:
    """`families.effects` in words."""
    return "; ".join(
        f"{r.family}, {r['last']} over {r['first']}: {number(r.ratio)} ({span((r.ratio_low, r.ratio_high))})"
        for _, r in effects.iterrows()
    ) or "not measured"  # fmt: skip


def regimes(summary: pd.DataFrame) -> dict:
    """L1; summary: of `scaling.summaries`."""
    bent = (summary.perfect_end > summary.start) & summary.leaves_perfect
    flat = bent & summary.reaches_plateau
    share = flat.mean()
    return _claim(
        "Across workloads there is one general trend: perfect scaling, then diminishing returns, then maximal data parallelism.",
        f"{flat.sum()} of {len(summary)} curves show all three regimes within the batch sizes measured by the operational "
        f"definitions; {summary.leaves_perfect.sum()} leave perfect scaling, {summary.reaches_plateau.sum()} reach a floor.",
        OPEN if not len(summary) else HOLDS if share > 0.9 else PART if share > 0.1 else FAILS,
        "Lee et al. 2021, abstract; Shallue et al. 2019",
    )


def irrespective(points: pd.DataFrame, summary: pd.DataFrame) -> dict:
    """L2; points: `off`, |log2| of measured over the common line."""
    good = ((summary.r2 > 0.9) & summary.leaves_perfect).mean()
    return _claim(
        "The trend holds irrespective of the sparsity level.",
        f"{((summary.r2 > 0.9) & summary.leaves_perfect).sum()} of {len(summary)} curves leave perfect scaling and follow "
        f"c₁/B + c₂ with R² above 0.9; points deviate from the common line by a factor of {2 ** points.off.median():.2f} in "
        f"the median.",
        OPEN if not len(summary) else HOLDS if good > 0.9 else PART if good > 0.5 else FAILS,
        "Lee et al. 2021, abstract",
    )


def harder(cost: pd.Series, sparsity: float) -> dict:
    """L3; cost: steps at `sparsity` over the dense network's, a value per pair of cells."""
    share = (cost > 1).mean()
    return _claim(
        "Training is harder under sparsity: more steps to the same goal at every batch size.",
        f"At sparsity {sparsity:g}, {span((cost.min(), cost.max()))} times the dense network's steps, {number(cost.median())} "
        f"in the median; more at {(cost > 1).sum()} of {len(cost)} pairs of cells.",
        OPEN if not len(cost) else HOLDS if share == 1 else PART if share > 0.5 else FAILS,
        "Lee et al. 2021, abstract",
    )


def no_worse(bends: pd.DataFrame) -> dict:
    """L4; bends: of `scaling.against_dense` for "critical"."""
    worse, better = int((bends.ratio_high < 1).sum()), int((bends.ratio_low > 1).sum())
    half = int((bends.ratio_low > 0.5).sum())
    return _claim(
        "Data parallelism in sparse training is no worse than in dense training.",
        f"{len(bends)} sparse curves against their dense ones, by the ratio of their bends c₁/c₂: its 5–95 % range lies above 1 "
        f"for {better}, below 1 for {worse}, and above one half (not much worse, if at all) for {half}.",
        OPEN if not len(bends) else FAILS if worse > len(bends) / 2 else HOLDS if half == len(bends) else PART,
        "Lee et al. 2021, abstract; Lee et al. 2020",
    )


def whatever_the_method(summary: pd.DataFrame, bends: pd.DataFrame) -> dict:
    """L2 for other ways to prune; summary: of sparse curves, several methods each; bends: of
    `scaling.against_sensitivity` for "critical".
    """
    told = "; ".join(f"{_title(r.workload)}, {r.pruning}: {number(r.ratio)} ({span((r.ratio_low, r.ratio_high))})"
                     for r in bends.itertuples())  # fmt: skip
    apart, follow = int(((bends.ratio_low > 1) | (bends.ratio_high < 1)).sum()), int((summary.r2 > 0.9).sum())
    return _claim(
        "The trend between batch size and steps to result holds irrespective of sparsity (shown for pruning by connection "
        "sensitivity; whether it depends on the method is our question).",
        f"{follow} of {len(summary)} curves follow c₁/B + c₂ with R² above 0.9. Bend over that after pruning by connection "
        f"sensitivity, at batch sizes both have: {told or 'not measured'}; the range leaves one out for {apart} of {len(bends)}.",
        OPEN if not len(bends) else HOLDS if follow == len(summary) and not apart else PART if follow else FAILS,
        "Lee et al. 2021, abstract",
    )


def later_with_momentum(ends: pd.DataFrame, bends: pd.DataFrame, end: tuple, bend: tuple) -> dict:
    """L5; ends, bends: of `scaling.against_dense` for "perfect_end" and "critical", momentum and Nesterov only, at the
    highest sparsity of each, where the effect should be largest; end, bend: their geometric means (`scaling.pooled`).

    The bend decides, since it uses every point of a curve, and on a curve c1/B + c2 scaling leaves the perfect by a given
    share at a given share of the bend.  "Much larger" is a factor of two.
    """
    n = len(bends)
    apart = [(int((rows.ratio_low > 1).sum()), int((rows.ratio_high < 1).sum())) for rows in (ends, bends)]
    return _claim(
        "With momentum-based algorithms, perfect scaling breaks at a much larger batch size for sparse networks than for dense "
        "ones.",
        f"{n} pairs with momentum or Nesterov, at the highest sparsity of each. The fitted bend is {number(bend[1])} times the "
        f"dense one's in the geometric mean (5–95 %: {span(bend[::2])}); single ranges lie above 1 for {apart[1][0]} and below "
        f"for {apart[1][1]}. The end of perfect scaling, which can only be one of the batch sizes measured, is {number(end[1])} "
        f"times ({span(end[::2])}), above for {apart[0][0]} and below for {apart[0][1]}.",
        OPEN if not n else HOLDS if bend[0] > 1 and bend[1] >= 2 else PART if bend[0] > 1 else FAILS if bend[2] < 2 else OPEN,
        "Lee et al. 2020 and 2021, abstracts",
    )


def theory(factors: pd.Series, r2: float, curves: int) -> dict:
    """L6; factors: by form, the typical factor by which left-out batch sizes are missed (`scaling.left_out_factors`)."""
    own, others = factors["c1/B + c2"], factors.drop("c1/B + c2")
    return _claim(
        "Convergence theory of stochastic gradient methods accounts for the relation between batch size and steps to result.",
        f"c₁/B + c₂ predicts left-out batch sizes to a factor of {own:.2f} (median over {curves} curves), the best of the "
        f"other forms to {others.min():.2f}, pure perfect scaling to {factors['c1/B']:.2f}; median R² {r2:.2f}.",
        OPEN if np.isnan(own) else HOLDS if own < 1.05 * others.min()
        else PART if own < factors[["c1/B", "c1/B^p"]].min() else FAILS,
        "Lee et al. 2021, abstract",
    )  # fmt: skip


def rougher(over: pd.DataFrame) -> dict:
    """L7; over: of `landscape.over_dense`, the highest sparsity of each workload.  Every workload counts alike."""
    each = over.groupby("workload").lipschitz.agg(["median", lambda ratio: (ratio > 1).sum(), "count"])
    each.columns = ["median", "larger", "paths"]
    share = (each.larger / each.paths).mean()
    told = "; ".join(f"{_title(w)}: {number(r['median'])} times, larger in {r.larger:.0f} of {r.paths:.0f}"
                     for w, r in each.iterrows())  # fmt: skip
    return _claim(
        "A lack of smoothness, a larger local Lipschitz constant of the gradient, accounts for the difficulty of training "
        "sparse networks.",
        f"At sparsity {span((over.sparsity.min(), over.sparsity.max()))}, the constant along the fastest trials over the dense "
        f"network's, in the median. {told}.",
        OPEN if not len(over) else HOLDS if share > 0.9 else FAILS if share < 0.1 else PART,
        "Lee et al. 2021, abstract",
    )


def noise_scale(bends: pd.DataFrame) -> dict:
    """M1; bends: of `landscape.predicted_bends`.  Every workload counts alike."""
    ratio = bends.critical / bends.predicted
    off = np.log2(ratio).abs()
    two, four = ((off <= limit).groupby(bends.workload).mean().mean() for limit in (1, 2))
    return _claim(
        "The gradient noise scale predicts the largest useful batch size.",
        f"{len(bends)} curves: the bend over the noise scale is {number(ratio.median())} in the median, from "
        f"{number(ratio.min())} to {number(ratio.max())}; within a factor of two for {(off <= 1).sum()}, within four for "
        f"{(off <= 2).sum()}.",
        OPEN if not len(bends) else HOLDS if two > 0.9 else PART if four > 0.5 else FAILS,
        "McCandlish et al. 2018, abstract",
    )


def rules(spread: pd.DataFrame) -> dict:
    """C10 of Shallue et al.; spread: rule, batch_size, over (steps over the tuned ones, inf where the goal was missed)."""
    followed = spread[spread.rule.isin(["linear rule", "square-root rule"])]
    worst = followed.groupby("rule").over.max()
    lost = np.isinf(followed.over).groupby(followed.rule).sum()
    told = "; ".join(
        f"the {rule} costs more than twice the tuned steps at {(own.over > 2).sum()} of {len(own)} batch sizes and misses the "
        f"goal at {lost[rule]}"
        for rule, own in followed.groupby("rule")
    )
    return _claim(
        "The best effective learning rate rises with the batch size but follows neither the linear nor the square-root rule "
        "consistently.",
        told[:1].upper() + told[1:] + ".",
        OPEN if len(worst) < 2 else HOLDS if (worst > 2).all() else PART if (worst > 2).any() else FAILS,
        "Shallue et al. 2019",
    )


def goals_shift(pairs: pd.DataFrame, together: tuple[float, float, float]) -> dict:
    """C2; pairs: of `families.easy_over_hard`; together: `scaling.geometric_mean` of their draws."""
    low, middle, high = together
    moved = ((pairs.bend_low > 2) | (pairs.bend_high < 0.5)).sum() if len(pairs) else 0
    earlier = (pairs.bend_high < 1).sum() if len(pairs) else 0
    return _claim(
        "Another goal error shifts the curve up or down; the transitions between its regimes stay.",
        f"{len(pairs)} curves of dense networks at the easiest and the hardest goal of their ladders: the bend at the easiest is "
        f"{number(middle)} times ({span((low, high))}) that at the hardest in the geometric mean, below it for {earlier} single "
        f"ranges. To hold, the mean has to stay within a factor of two, and so does some part of every range ({moved} do not).",
        OPEN if not len(pairs) else FAILS if high < 0.5 or low > 2 else OPEN if low < 0.5 or high > 2 else PART if moved else HOLDS,
        "Shallue et al. 2019",
    )


EQUAL = (0.8, 1.25)  # ratios of steps that count as none


def momentum_extends(pairs: pd.DataFrame, together: tuple[float, float, float]) -> dict:
    """C7; pairs: of `families.over_sgd`; together: `scaling.geometric_mean` of their draws."""
    low, middle, high = together
    equal = ((pairs.steps_low <= EQUAL[1]) & (pairs.steps_high >= EQUAL[0])).sum() if len(pairs) else 0
    told = "; ".join(
        f"{_title(r.workload)}, {r.algorithm}, {r.sizes} batch sizes: {number(r.bend)} ({span((r.bend_low, r.bend_high))})"
        for r in pairs.itertuples()
    )
    least = span((pairs.steps.min(), pairs.steps.max())) if len(pairs) else "—"
    return _claim(
        "Momentum and Nesterov momentum extend perfect scaling to larger batches than SGD; at small batches all three are equal.",
        f"Bend over that of SGD, dense networks: {told or 'not measured'}. Geometric mean {number(middle)} "
        f"({span((low, high))}). At the smallest batch SGD takes {least} times the steps; {equal} of {len(pairs)} ranges reach "
        f"{span(EQUAL)}.",
        OPEN if not len(pairs) or low <= 1 <= high else FAILS if high < 1 else HOLDS if equal == len(pairs) else PART,
        "Shallue et al. 2019",
    )


def kinds_differ(effects: pd.DataFrame) -> dict:
    """C5; effects: of `families.effects`, families that change the kind of network."""
    apart = ((effects.ratio_low > 1) | (effects.ratio_high < 1)).sum()
    alike = ((effects.ratio_low > EQUAL[0]) & (effects.ratio_high < EQUAL[1])).sum()
    return _claim(
        "The kind of network changes the largest useful batch size at equal data and goal.",
        f"Bend of a convolutional network over that of a fully connected one, at batch sizes both have: {_told(effects)}.",
        OPEN if not apart + alike else HOLDS if apart == len(effects) else PART if apart else FAILS,
        "Shallue et al. 2019",
    )


def small_batches_diverge(trials: pd.DataFrame) -> dict:
    """C15; trials: run to their budgets, of one search space at every batch size."""
    told, found = [], []
    for name, own in trials.groupby("workload", sort=False) if len(trials) else ():
        sizes = own.batch_size.min(), own.batch_size.max()
        lost = [own[own.batch_size == b].status.eq("infeasible") for b in sizes]
        few, many = (stats.binomtest(int(x.sum()), len(x)).proportion_ci(method="wilson") for x in lost)
        found.append(int(few.low > many.high) - int(many.low > few.high))
        ends = (f"{x.sum()} of {len(x)} at batch size {b:,}" for x, b in zip(lost, sizes))
        told.append(f"{_title(name)}: {', '.join(ends)}")
    return _claim(
        "In a broad search space more trials fail at small batches than at large ones: with Nesterov momentum on CIFAR-10, 108 of "
        "273 at batch size 2 and 31 of 190 at 4,096.",
        f"Trials that diverged or died within their budgets. {'; '.join(told) or 'Not measured'}. The 95 % ranges are apart for "
        f"{sum(map(abs, found))} of {len(found)}.",
        OPEN if not any(found) else HOLDS if min(found) == 1 else FAILS if max(found) < 1 else PART,
        "Shallue et al. 2019, released data",
    )


def limits_differ(bends: pd.DataFrame) -> dict:
    """C4 of Shallue et al.; bends: of `families.bends`."""
    factor = bends.critical.max() / bends.critical.min() if len(bends) else np.nan
    apart = bends.critical_low.max() / bends.critical_high.min() if len(bends) else np.nan
    return _claim(
        "The largest useful batch size varies a great deal between workloads.",
        f"{len(bends)} curves of dense networks: bends differ by a factor of {number(factor)}, and by {number(apart)} between the "
        f"near ends of the ranges farthest apart.",
        OPEN if len(bends) < 2 else HOLDS if apart >= 4 else PART if apart > 1 else FAILS,
        "Shallue et al. 2019, abstract",
    )


def no_rule_for_size(effects: pd.DataFrame) -> dict:
    """C6; effects: of `families.effects`, of which those that change width or depth count."""
    own = effects[effects.family.str.contains("width|depth|fully connected")]
    above, below = int((own.ratio_low > 1).sum()), int((own.ratio_high < 1).sum())
    return _claim(
        "Width and depth change the largest useful batch size, but not in the same direction in all families.",
        f"Bend of the largest member over that of the smallest, at batch sizes both have: {_told(own)}.",
        OPEN if len(own) < 2 or not above + below else FAILS if max(above, below) == len(own) else HOLDS if above and below
        else PART,
        "Shallue et al. 2019",
    )  # fmt: skip


def data_size(effects: pd.DataFrame) -> dict:
    """C8; effects: of `families.effects`, families of fractions of a data set."""
    within = ((effects.ratio_low < 2) & (effects.ratio_high > 0.5)).mean()
    certain = ((effects.ratio_low > 0.5) & (effects.ratio_high < 2)).mean()
    return _claim(
        "The size of the data set hardly changes the largest useful batch size: fractions of MNIST have nearly the same curve.",
        f"Bend with all data over that with an eighth, at batch sizes both have: {_told(effects)}.",
        OPEN if not len(effects) else HOLDS if certain == 1 else PART if within == 1 else FAILS,
        "Shallue et al. 2019",
    )


def region(share: pd.DataFrame) -> dict:
    """C12; share: of `budgets.shares`.  Workloads with five batch sizes count; all of them must agree."""
    told, found = [], []
    for name, own in share.groupby("workload", sort=False) if len(share) else ():
        kinds = {kind: rows.sort_values("batch_size") for kind, rows in own.groupby("kind")}
        if len(kinds) < 2 or min(map(len, kinds.values())) < 5:
            continue
        grow, shrink = kinds["fixed steps"], kinds["fixed epochs"]
        found.append(grow.low.iloc[-1] > grow.high.iloc[0])
        found.append(shrink.high.iloc[-1] < shrink.low.iloc[0])
        shares = "; ".join(
            f"{kind}, {r.share.iloc[0]:.0%} of the trials at batch size {r.batch_size.iloc[0]:,} and {r.share.iloc[-1]:.0%} at "
            f"{r.batch_size.iloc[-1]:,}"
            for kind, r in kinds.items()
        )
        told.append(f"{_title(name)}: {shares}.")
    return _claim(
        "The region of metaparameters that reach the goal grows with the batch size at fixed steps and shrinks at fixed epochs.",
        " ".join(told) or "Not measured.",
        OPEN if not found else HOLDS if all(found) else PART if any(found) else FAILS,
        "Shallue et al. 2019",
    )


def budget_decides(by_steps: pd.DataFrame, by_epochs: pd.DataFrame) -> dict:
    """C13; both: validation error by batch_size and budget (steps, or examples), of `budgets.chosen`."""

    def trend(best: pd.DataFrame, column: str, pick) -> tuple[float, float]:
        """Errors at the smallest and the largest batch size, at one budget."""
        own = best[best[column] == pick(best[column])].sort_values("batch_size").validation
        return own.iloc[0], own.iloc[-1]

    if min(best.batch_size.nunique() if len(best) else 0 for best in (by_steps, by_epochs)) < 5:
        found, verdict = "Fewer than five batch sizes are measured.", OPEN
    else:
        steps, epochs = trend(by_steps, "budget", min), trend(by_epochs, "examples", min)
        late, ends = trend(by_steps, "budget", max), trend(by_epochs, "examples", max)
        smaller = abs(late[1] - late[0]) < abs(steps[1] - steps[0]) and abs(ends[1] - ends[0]) < abs(
            epochs[1] - epochs[0]
        )
        found = (
            f"Validation error at the smallest and the largest batch: {steps[0]:.1%} and {steps[1]:.1%} within the smallest step "
            f"budget, {epochs[0]:.1%} and {epochs[1]:.1%} within the smallest epoch budget; {late[0]:.1%} and {late[1]:.1%}, "
            f"{ends[0]:.1%} and {ends[1]:.1%} within the largest."
        )
        right = sum(map(bool, (steps[1] < steps[0], epochs[1] > epochs[0], smaller)))
        verdict = HOLDS if right == 3 else PART if right == 2 else FAILS
    return _claim(
        "A budget of steps favours large batches, one of epochs small batches; with a large enough budget the difference goes.",
        found, verdict, "Shallue et al. 2019",
    )  # fmt: skip


def no_accuracy_lost(steps: dict[str, tuple[float, float, float]], epochs: dict | None = None) -> dict:
    """C14; workload -> `budgets.slope` within the largest step budget, by which it is judged, and the largest of epochs."""
    known, beside = ({w: s for w, s in found.items() if np.isfinite(s[0])} for found in (steps, epochs or {}))
    told, less = (
        "; ".join(f"{_title(w)}: {100 * s[0]:+.2f} ({100 * s[1]:+.2f} to {100 * s[2]:+.2f})" for w, s in found.items())
        for found in (known, beside)
    )
    worse = [w for w, s in known.items() if s[1] > 0]
    sharp = [w for w, s in known.items() if s[2] < 0.002]  # a fifth of a point per doubling: two points over ten
    return _claim(
        "There is no evidence that larger batch sizes degrade out-of-sample performance.",
        f"Points of test error per doubling of the batch, at the largest step budget (95 %): {told or 'not measured'}. To hold, "
        f"all ranges must end below 0.2. Beside them, not judged, the largest budget of epochs, in which larger batches take "
        f"fewer steps: {less or 'not measured'}.",
        FAILS
        if worse and len(worse) == len(known)
        else PART
        if worse
        else HOLDS
        if len(sharp) == len(known) > 0
        else OPEN,
        "Shallue et al. 2019, abstract",
    )


def smoothing_helps(rates: dict[tuple[str, float], tuple[float, float, float]]) -> dict:
    """C9; rates: (workload, smoothing) -> change per doubling of the test error that smoothing saves (`budgets.helped`)."""
    known = {k: r for k, r in rates.items() if np.isfinite(r[0])}
    told = "; ".join(
        f"{_title(w)}, {share:g}: {100 * r[0]:+.2f} ({100 * r[1]:+.2f} to {100 * r[2]:+.2f})"
        for (w, share), r in known.items()
    )
    up, down = (sum(test) for test in ([r[1] > 0 for r in known.values()], [r[2] < 0 for r in known.values()]))
    return _claim(
        "Label smoothing helps more at large batch sizes.",
        f"Points of test error that smoothing saves, per doubling of the batch (95 %): {told or 'not measured'}. The range lies "
        f"above zero for {up} of {len(known)} and below for {down}.",
        OPEN if not up + down else HOLDS if up == len(known) else FAILS if down == len(known) else PART,
        "Shallue et al. 2019",
    )


def bell_shaped(portraits: pd.DataFrame) -> dict:
    """T1; portraits: a row per portrait with feedback: mean, std, skew, kurtosis, positive, above (`lib.portraits`)."""
    centred = (portraits["mean"].abs() < 0.1 * portraits["std"]).mean()
    even = ((portraits.positive - 0.5).abs() < 0.1).mean()
    falling = (portraits.above == 0).mean()
    return _claim(
        "The vector that Top-k compresses is bell-shaped around zero, for fully connected, convolutional and recurrent networks.",
        f"{len(portraits)} portraits: the mean is within a tenth of the standard deviation of zero in {centred:.0%}; between "
        f"40 and 60 % of the entries are positive in {even:.0%}; the sorted squared profile lies below the straight line "
        f"everywhere in {falling:.0%}. No recurrent network was measured.",
        OPEN if not len(portraits) else HOLDS if min(centred, even, falling) > 0.95
        else FAILS if min(centred, falling) < 0.5 else PART,
        "Shi et al. 2019, abstract",
    )  # fmt: skip


def bounds(left: pd.DataFrame) -> dict:
    """T3; left: value (measured share that Top-k leaves) at density x, a row per portrait and density."""
    tighter = (1 - left.x) ** 2
    inside = (left.value <= tighter + 1e-6).mean()
    classical = (left.value <= 1 - left.x + 1e-6).mean()
    return _claim(
        "What Top-k leaves of the vector's energy is at most (1 − k/d)², a tighter bound than 1 − k/d.",
        f"{left.value.count()} pairs of a portrait and a density: {inside:.1%} within (1 − k/d)², {classical:.1%} within "
        f"1 − k/d; (1 − k/d)² exceeds what is left by {number((tighter - left.value).median())} in the median.",
        OPEN if not len(left) else HOLDS if inside == 1 else PART if inside > 0.9 else FAILS,
        "Shi et al. 2019, abstract",
    )


def loses_little(gaps: pd.DataFrame, name: str, published: str, points: float) -> dict:
    """T4, T5; gaps: gap (test error over that of the rival, in points), noise (its standard error), density, workload."""
    mean, worst = gaps.gap.mean(), gaps.gap.max()
    small = (gaps.gap - 2 * gaps.noise <= points).mean() if len(gaps) else 0
    return _claim(
        published,
        f"{len(gaps)} pairs of runs (workload, density, seed): {name} loses {number(mean)} points of test error on average, at "
        f"worst {number(worst)}; at most {points:g} point within two standard errors in {small:.0%}.",
        OPEN if len(gaps) < 3 else HOLDS if small > 0.9 else PART if small > 0.5 else FAILS,
        "Shi et al. 2019, abstract",
    )


def far_behind(bare: pd.DataFrame, fed: pd.DataFrame) -> dict:
    """T4, second half; bare, fed: as for `loses_little`, Rand-k without and with feedback against dense messages."""
    behind = (bare.gap >= 10).mean() if len(bare) else 0
    clear = (bare.gap > 2 * bare.noise).mean() if len(bare) else 0
    with_feedback = f"; with feedback {number(fed.gap.mean())} points" if len(fed) else ""
    return _claim(
        "Rand-k, with the same classical bound as Top-k, trains far worse.",
        f"{len(bare)} pairs of runs: Rand-k without feedback, as in the authors' comparison, loses {number(bare.gap.mean())} "
        f"points of test error on average, ten or more in {behind:.0%}{with_feedback}.",
        OPEN if len(bare) < 3 else HOLDS if behind > 0.9 else PART if clear > 0.9 else FAILS,
        "Shi et al. 2019, abstract; runs named in the authors' plotting code",
    )


def faster_operator(times: pd.DataFrame, at_least: int = 2**24) -> dict:
    """T6; times: d, library, own (the times of PyTorch's exact Top-k and of ours over Gaussian-k's, `message_cost`)."""
    large = times[times.d >= at_least]
    told = [
        f"{who} takes {span((ratio.min(), ratio.max()))} times as long as Gaussian-k"
        + (f", {number(ratio[large.index].median())} times from 2²⁴ entries on" if len(large) else "")
        for who, ratio in (("PyTorch's exact Top-k", times.library), ("ours, as exact,", times.own))
    ]
    return _claim(
        "Gaussian-k selects in a fraction of the time of exact Top-k on a graphics processor.",
        f"On one CPU core, over {len(times)} vector lengths, {'; '.join(told)}. No graphics processor was at hand.",
        OPEN,
        "Shi et al. 2019, abstract",
    )


def denser_is_nearer(gaps: pd.DataFrame) -> dict:
    """T9; gaps: as for `loses_little`, of one method at several densities."""
    by = gaps.groupby(["workload", "replicate", "density"]).gap.mean().unstack()
    falls = (by.diff(axis=1).iloc[:, 1:] <= 0).to_numpy()
    return _claim(
        "A larger density narrows the gap to dense messages.",
        f"Gaussian-k: the gap falls from density to density in {int(falls.sum())} of {falls.size} steps up.",
        OPEN if not falls.size else HOLDS if falls.mean() > 0.9 else PART if falls.mean() > 0.5 else FAILS,
        "Shi et al. 2019, runs named in the authors' plotting code",
    )
