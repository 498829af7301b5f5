"""The papers' claims and the rules by which the records judge them: what a claim box and the ledger show.

Each function returns the arguments of `lib.book.claim`.  Rules are fixed here, before more data come in: a verdict
changes when the measurements do, or when its rule is found at fault.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import bdtrc

from lib import scaling
from lib.book import named, number, span
from lib.scaling import CURVE
from lib.workloads import WORKLOADS

SUMMARISED = "Shallue et al. 2019, as summarised by others"  # only their abstract and released material were at hand
HOLDS, PART, FAILS, OPEN = "holds", "holds in part", "does not hold", "cannot be judged"


def _claim(paper: str, ours: str, verdict: str, source: str) -> dict:
    return {"paper": paper, "ours": ours, "verdict": verdict, "source": source}


def _title(name: str) -> str:
    return WORKLOADS[name].title if name in WORKLOADS else str(name)


def _each(items: list[str], none: str = "not measured") -> str:
    """What follows upon a phrase: ": this." if it is one item, a list, a line each, if there are more (`lib.book.claim`)."""
    return ":" + "".join(f"\n- {item}" for item in items) + "\n" if len(items) > 1 else f": {items[0] if items else none}."


def _by_chance(found: int, of: int, rate: float = 0.1) -> float:
    """The probability that so many or more of independent ranges of 5 to 95 % leave out a value which is the true one."""
    return float(bdtrc(found - 1, of, rate)) if found else 1.0


def _told(effects: pd.DataFrame) -> str:
    """`families.effects` in words."""
    return _each([
        f"{r.family}, {r['last']} over {r['first']}: {number(r.ratio)} ({span((r.ratio_low, r.ratio_high))}"
        f"{'' if r.inside else '; a bend lies outside the batch sizes measured'})"
        for _, r in effects.iterrows()
    ])  # fmt: skip


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
    return _claim(
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
    bad = "; ".join(f"{_title(r.workload)}, {named(r.algorithm)}, sparsity {r.sparsity:g} (off by {r.residual:.2f})"
                    for r in sparse[~good].itertuples())  # fmt: skip
    lost = (missed.max_steps / missed.predicted).dropna()
    told = f" Not counted: {len(lost)} cells that missed the goal in {span((lost.min(), lost.max()))} times the steps that the " \
           f"line fitted to the rest of their curve predicts." if len(lost) else ""  # fmt: skip
    return _claim(
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
    chance = _by_chance(int(fewer.sum()), len(costs), 0.05)
    return _claim(
        "Training is harder under sparsity: more steps to the same goal at every batch size.",
        f"Steps over the dense network's, by sparsity{_each(told)} Left out are {lost} points at which no trial of the pruned "
        f"network met the goal.",
        OPEN if not any(up + down) else FAILS if not any(up) else HOLDS if all(up) and chance > 0.05 else PART,
        "Lee et al. 2021, abstract",
    )


def no_worse(bends: pd.DataFrame) -> dict:
    """L4; bends: of `scaling.against_dense` for "critical"."""
    worse, better = int((bends.ratio_high < 1).sum()), int((bends.ratio_low > 1).sum())
    half = int((bends.ratio_low > 0.5).sum())
    return _claim(
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
    told = [f"{_title(r.workload)}, {named(r.pruning)}, {r.measured} batch sizes: {number(r.ratio)} "
            f"({span((r.ratio_low, r.ratio_high))})" for r in rows[follows].itertuples()]  # fmt: skip
    rest = "; ".join(f"{_title(r.workload)}, {named(r.pruning)} (off by {r.residual:.2f})" for r in rows[~follows].itertuples())
    alike, differ = (follows & (rows.ratio_low > 0.5) & (rows.ratio_high < 2)).sum(), (~follows | apart).sum()
    return _claim(
        "The trend between batch size and steps to result does not depend on how one prunes: no statement of theirs, who prune "
        "by connection sensitivity.",
        f"{follows.sum()} of {len(rows)} curves pruned in other ways lie off c₁/B + c₂ by less than a factor of {FOLLOWS}. The "
        f"bend of these over that after pruning by connection sensitivity, at batch sizes both have{_each(told, 'none')} Curves "
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
    return _claim(
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
    return _claim(
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
    told = [f"{_title(w)}: {number(r['median'])} times, larger in {r.larger:.0f} of {r.paths:.0f}"
            f"{'' if r.paths >= ENOUGH else ', too few to count'}" for w, r in each.iterrows()]  # fmt: skip

    def verdict(rows: pd.DataFrame) -> str:
        share = (rows.larger / rows.paths).mean()
        return OPEN if not len(rows) else HOLDS if share > 0.9 else FAILS if share < 0.1 else PART

    fewest = counted[counted.index != counted.paths.idxmin()] if len(counted) > 1 else counted
    without = f"without {_title(counted.paths.idxmin())} it would be: {verdict(fewest)}" if len(counted) > 1 else "there is one"
    return _claim(
        "A lack of smoothness, a larger local Lipschitz constant of the gradient, accounts for the difficulty of training "
        "sparse networks. (Here: whether it is larger.)",
        f"At sparsity {span((over.sparsity.min(), over.sparsity.max()))}, the constant along the fastest trials over the dense "
        f"network's, in the median{_each(told)} Workloads count alike in the verdict, whatever their number of paths; {without}.",
        verdict(counted),
        "Lee et al. 2021, abstract",
    )


def noise_scale(bends: pd.DataFrame) -> dict:
    """M1; bends: of `landscape.predicted_bends`; those outside the batch sizes measured do not count, every workload does
    alike."""
    beyond, bends = int((~bends.identified.astype(bool)).sum()), bends[bends.identified.astype(bool)]
    ratio = bends.critical / bends.predicted
    off = np.log2(ratio).abs()
    two, four = ((off <= limit).groupby(bends.workload).mean().mean() for limit in (1, 2))
    logs = np.log2(bends.critical)
    constant, own = (2 ** np.sqrt((d**2).mean()) if len(bends) else np.nan for d in (logs - logs.mean(), np.log2(ratio)))
    return _claim(
        "The gradient noise scale predicts the largest useful batch size.",
        f"{len(bends)} curves: the bend over the noise scale is {number(ratio.median())} in the median, from "
        f"{number(ratio.min())} to {number(ratio.max())}; within a factor of two for {(off <= 1).sum()}, within four for "
        f"{(off <= 2).sum()}, or for {two:.0%} and {four:.0%} where workloads count alike, as in the verdict. The same number for "
        f"all, their geometric mean, is off by a factor of {constant:.2f} (root mean square), the noise scale by {own:.2f}: to "
        f"hold, it has to be the better of the two. Not counted, since they bend outside the batch sizes measured: {beyond}.",
        OPEN if not len(bends) else HOLDS if two > 0.9 and (own < constant or len(bends) < 2) else PART if four > 0.5 else FAILS,
        "McCandlish et al. 2018, in our words",
    )


def rules(spread: pd.DataFrame, powers: pd.DataFrame) -> dict:
    """C10 of Shallue et al.; spread: of `rules.costs`, without the size at which the rules start; beyond is judged, which is
    free of the luck of tuned winners.  powers: of `rules.exponents`, of the same workloads: the best rate has to rise.
    """
    followed = spread[spread.rule.isin(["linear rule", "square-root rule"]) & ~spread.base.astype(bool)]
    worst = followed.groupby("rule").beyond.max()
    told = [
        f"{_title(name)}: " + ", ".join(f"the {rule} at {_followed(own)}" for rule, own in rows.groupby("rule", sort=False))
        for name, rows in followed.groupby("workload", sort=False)
    ]
    known = powers[powers.workload.isin(followed.workload)]
    rise, rest = (
        [f"{_title(r.workload)}: {r.power:.2f} ({span((r.low, r.high))})" for r in rows.itertuples()]
        for rows in (known, powers.drop(known.index))
    )
    elsewhere = f"Where no rule was retrained{_each(rest)} " if rest else ""
    rises = len(known) > 0 and (known.low > 0).all()
    return _claim(
        "The best effective learning rate rises with the batch size but follows neither the linear nor the square-root rule "
        "consistently.",
        f"It grows as this power of the batch size (5–95 %){_each(rise)} {elsewhere}"
        f"A rule fails where it takes more than twice the tuned steps (in brackets: retraining apart), and one such batch size is "
        f"enough for it not to be followed"
        f"{_each(told)}",
        OPEN if len(worst) < 2 else HOLDS if rises and (worst > 2).all() else PART if rises or (worst > 2).any() else FAILS,
        SUMMARISED,
    )


def _followed(own: pd.DataFrame) -> str:
    """At how many batch sizes one rule fails, and at which it misses the goal, in words."""
    lost = ", ".join(f"{b:,}" for b in own.batch_size[np.isinf(own.beyond)])
    missed = f", and misses the goal at batch size {lost}" if lost else ""
    return f"{(own.over > 2).sum()} ({(own.beyond > 2).sum()}) of {len(own)} batch sizes{missed}"


def goals_shift(pairs: pd.DataFrame, together: tuple[float, float, float]) -> dict:
    """C2; pairs: of `families.easy_over_hard`; together: `scaling.middle` of their draws."""
    low, middle, high = together
    moved = ((pairs.bend_low > 2) | (pairs.bend_high < 0.5)).sum() if len(pairs) else 0
    earlier, later = ((pairs.bend_high < 1).sum(), (pairs.bend_low > 1).sum()) if len(pairs) else (0, 0)
    return _claim(
        "Another goal error shifts the curve up or down; the transitions between its regimes stay.",
        f"{len(pairs)} curves of dense networks at the easiest and the hardest goal of their ladders: the bend at the easiest is "
        f"{number(middle)} times ({span((low, high))}) that at the hardest in the median over curves; single ranges lie below it "
        f"for {earlier} and above for {later}. To hold, the range of the median has to stay within a factor of two and reach one, "
        f"and some part of every single range has to stay within a factor of two ({moved} do not).",
        OPEN if not len(pairs) else FAILS if high < 0.5 or low > 2 else OPEN if low < 0.5 or high > 2
        else PART if moved or not low <= 1 <= high else HOLDS,
        SUMMARISED,
    )  # fmt: skip


EQUAL = (0.8, 1.25)  # ratios of steps that count as none


def momentum_extends(pairs: pd.DataFrame, bend: tuple[float, ...], steps: tuple[float, ...]) -> dict:
    """C7; pairs: of `families.over_sgd`; bend, steps: `scaling.middle` of their draws."""
    told = [
        f"{_title(r.workload)}, {named(r.algorithm)}, {r.sizes} batch sizes: {number(r.bend)} "
        f"({span((r.bend_low, r.bend_high))})"
        for r in pairs.itertuples()
    ]
    smallest = span((pairs.smallest.min(), pairs.smallest.max())) if len(pairs) else "—"
    return _claim(
        "Momentum and Nesterov momentum extend perfect scaling to larger batches than SGD; at small batches all three are equal.",
        f"Bend over that of SGD, dense networks{_each(told)} In the median over pairs {number(bend[1])} "
        f"({span(bend[::2])}). At the smallest batch of each pair ({smallest} examples) SGD takes {number(steps[1])} times the "
        f"steps ({span(steps[::2])}); to count as equal, this range has to lie within {span(EQUAL)}.",
        OPEN if not len(pairs) or bend[0] <= 1 <= bend[2] else FAILS if bend[2] < 1
        else HOLDS if EQUAL[0] <= steps[0] and steps[2] <= EQUAL[1] else PART,
        SUMMARISED,
    )  # fmt: skip


def kinds_differ(effects: pd.DataFrame) -> dict:
    """C5; effects: of `families.effects`, families that change the kind of network."""
    apart = ((effects.ratio_low > 1) | (effects.ratio_high < 1)).sum()
    alike = ((effects.ratio_low > EQUAL[0]) & (effects.ratio_high < EQUAL[1])).sum()
    chance = _by_chance(apart, len(effects))
    return _claim(
        "The kind of network changes the largest useful batch size at equal data and goal.",
        f"Bend of a convolutional network over that of a fully connected one, at batch sizes both have{_told(effects)} As many "
        f"ranges as leave out one ({apart}) would by chance with probability {chance:.2g}.",
        OPEN if not len(effects) or chance > 0.05 and alike < len(effects)
        else HOLDS if apart == len(effects) else PART if apart else FAILS,
        SUMMARISED,
    )  # fmt: skip


def small_batches_diverge(trials: pd.DataFrame) -> dict:
    """C15; trials: run to their budgets, of one search space at every batch size, compared within equal steps."""
    told, found = [], []
    for name, own in trials.groupby("workload", sort=False) if len(trials) else ():
        steps = int(own.groupby("batch_size").max_steps.max().min())
        lost = own.status.eq("infeasible") & (own.last_step <= steps)
        ends = [(b, own.batch_size == b) for b in (own.batch_size.min(), own.batch_size.max())]
        few, many = (scaling.wilson(lost[at].sum(), at.sum()) for _, at in ends)
        found.append(int(few[0] > many[1]) - int(many[0] > few[1]))
        parts = (f"{lost[at].sum()} of {at.sum()} at batch size {b:,} ({(lost & own.cause.eq('diverged'))[at].sum()} diverged)"
                 for b, at in ends)  # fmt: skip
        told.append(f"{_title(name)}, {steps:,} steps: {', '.join(parts)}")
    return _claim(
        "In a broad search space more trials fail at small batches than at large ones: with Nesterov momentum on CIFAR-10, 108 of "
        "273 at batch size 2 and 31 of 190 at 4,096, in spaces that vary with the batch size.",
        f"Trials that diverged or died within as many steps at either batch size, of one space{_each(told)} "
        f"The 95 % ranges are apart for {sum(map(abs, found))} of {len(found)}.",
        OPEN if not any(found) else HOLDS if min(found) == 1 else FAILS if max(found) < 1 else PART,
        "Shallue et al. 2019, released data",
    )


def limits_differ(bends: pd.DataFrame) -> dict:
    """C4 of Shallue et al.; bends: of `families.bends`; bends outside the batch sizes measured do not count."""
    bends = bends[bends.identified].drop_duplicates(["workload", "algorithm", "goal"]) if len(bends) else bends
    factor = bends.critical.max() / bends.critical.min() if len(bends) else np.nan
    apart = bends.critical_low.max() / bends.critical_high.min() if len(bends) else np.nan
    alike = scaling.by_chance(bends.curves) if len(bends) else np.nan
    return _claim(
        "The largest useful batch size varies a great deal between workloads.",
        f"{len(bends)} curves of dense networks that bend within the batch sizes measured: bends differ by a factor of "
        f"{number(factor)}, and by {number(apart)} between the near ends of the ranges farthest apart; as many curves of one bend, "
        f"with ranges like these, would differ by less than {number(alike)} nineteen times out of twenty.",
        OPEN if not factor > alike else HOLDS if apart >= 4 else PART,
        "Shallue et al. 2019, abstract",
    )


def no_rule_for_size(effects: pd.DataFrame) -> dict:
    """C6; effects: of `families.effects`, of which those that change width or depth count, each kind by itself.

    A range of 5 to 95 % leaves out one by chance in a tenth of the families without any effect: as many prove nothing.
    """
    kinds = [effects[effects.family.str.contains(names)] for names in ("width|fully connected", "depth")]
    signs = [set(np.sign(np.log(own.ratio[(own.ratio_low > 1) | (own.ratio_high < 1)]))) for own in kinds]
    own, clear = pd.concat(kinds), sum(((k.ratio_low > 1) | (k.ratio_high < 1)).sum() for k in kinds)
    split = [name for name, sign in zip(("width", "depth"), signs) if len(sign) == 2]
    minority = min((own.ratio_low > 1).sum(), (own.ratio_high < 1).sum())
    chance = _by_chance(clear, len(own))
    return _claim(
        "Width and depth change the largest useful batch size, but not in the same direction in all families.",
        f"Bend of the largest member over that of the smallest, at batch sizes both have{_told(own)} {clear} of {len(own)} "
        f"ranges leave one out, which as many would by chance with probability {chance:.2g}; families of one kind "
        f"contradict each other in {' and '.join(split) or 'neither width nor depth'}.",
        OPEN if len(own) < 2 or chance > 0.05 else HOLDS if split and _by_chance(minority, len(own), 0.05) <= 0.05
        else FAILS if clear == len(own) and not split else PART,
        SUMMARISED,
    )


def data_size(effects: pd.DataFrame) -> dict:
    """C8; effects: of `families.effects`, families of fractions of a data set."""
    certain = (effects.ratio_low > 0.5) & (effects.ratio_high < 2)
    outside = (effects.ratio_low > 2) | (effects.ratio_high < 0.5)
    return _claim(
        "The size of the data set hardly changes the largest useful batch size: fractions of MNIST have nearly the same curve.",
        f"Bend with all data over that with an eighth, at batch sizes both have{_told(effects)} {certain.sum()} of "
        f"{len(effects)} ranges lie within a factor of two and {outside.sum()} beyond it; the others decide nothing.",
        OPEN if not (certain | outside).any() else HOLDS if certain.all() else FAILS if not certain.any() else PART,
        SUMMARISED,
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
            f"{kind}, {r.share.iloc[0]:.0%} at batch size {r.batch_size.iloc[0]:,} and {r.share.iloc[-1]:.0%} at "
            f"{r.batch_size.iloc[-1]:,}"
            for kind, r in kinds.items()
        )
        told.append(f"{_title(name)}: {shares}")
    return _claim(
        "The region of metaparameters that reach the goal grows with the batch size at fixed steps and shrinks at fixed epochs.",
        f"Share of the trials that reach the goal{_each(told)}",
        OPEN if not found else HOLDS if all(found) else PART if any(found) else FAILS,
        SUMMARISED,
    )


GONE = 0.01  # of the validation error: what is left of a difference that counts as none


def budget_decides(ladders: dict[str, tuple[pd.DataFrame, pd.DataFrame]], enough: dict[str, tuple[bool, bool]]) -> dict:
    """C13; workload -> validation error with its range by batch_size and budget, of steps and of examples (`budgets.ladders`).

    The difference between the smallest and the largest batch is left where their ranges, each widened by what its validation
    set leaves open, do not meet, and gone where they cannot be further apart than GONE.  enough: of `budgets.enough`: what
    the largest budgets leave is judged where they are large.  Workloads with five batch sizes count; all of them must agree.
    """

    def ends(best: pd.DataFrame, column: str, pick) -> pd.DataFrame:
        """The rows of the smallest and the largest batch size, at one budget."""
        own = best[best[column] == pick(best[column])].sort_values("batch_size")
        return own.iloc[[0, -1]]

    def doubt(two: pd.DataFrame) -> float:
        return float(np.hypot(*two.unsure))

    def apart(two: pd.DataFrame) -> int:
        """-1, 1: the smallest, the largest batch has the lower error; 0: their ranges meet."""
        small, large = two.iloc[0], two.iloc[1]
        return int(large.high + doubt(two) < small.low) - int(small.high + doubt(two) < large.low)

    def left(two: pd.DataFrame) -> bool | None:
        """Whether a difference is; None if the ranges do not tell."""
        small, large = two.iloc[0], two.iloc[1]
        gone = max(small.high - large.low, large.high - small.low) + doubt(two) <= GONE
        return False if gone else True if apart(two) else None

    right, kept, told, brief = [], [], [], []
    for name, kinds in ladders.items():
        if min(best.batch_size.nunique() if len(best) else 0 for best in kinds) < 5:
            continue
        columns = list(zip(kinds, ("budget", "examples"), strict=True))
        early, late = ([ends(*kind, pick) for kind in columns] for pick in (min, max))
        right += [apart(early[0]) == 1, apart(early[1]) == -1]
        kept += [left(two) for two, large in zip(late, enough[name]) if large]
        brief += [f"{_title(name)} ({kind})" for kind, large in zip(("steps", "epochs"), enough[name]) if not large]
        shown = [
            " and ".join(span((round(100 * r.low, 1), round(100 * r.high, 1))) for r in two.itertuples())
            for two in (*early, *late)
        ]
        told.append(f"{_title(name)}: {shown[0]} (steps), {shown[1]} (epochs); largest {shown[2]}, {shown[3]}")
    clear = right + [one is False for one in kept]
    found = (
        "Validation error in per cent at the smallest and the largest batch (5–95 %), within the smallest budget of steps, that "
        f"of epochs, and the largest of either{_each(told)} Of the {len(kept)} differences at budgets that are large enough, "
        f"{kept.count(False)} are below {100 * GONE:g} point with the standard errors of both validation errors, "
        f"{kept.count(True)} are left beyond these; the others are undecided. The largest is not large enough to be judged, "
        f"since the batch that has seen least still gains: {', '.join(brief) or 'nowhere'}."
    )
    return _claim(
        "A budget of steps favours large batches, one of epochs small batches; with a large enough budget the difference goes.",
        found if told else "Fewer than five batch sizes are measured.",
        OPEN if not told else HOLDS if kept and all(clear) else PART if 2 * sum(clear) > len(clear) else FAILS,
        SUMMARISED,
    )


def no_accuracy_lost(steps: dict[str, tuple[float, float, float]], epochs: dict, settled: list[str]) -> dict:
    """C14; workload -> `budgets.slope` within the largest step budget, by which it is judged, and the largest of epochs.

    settled: of `budgets.slopes`.  Elsewhere the smallest batch has not had its steps, which favours the claim, so that only
    a loss counts there.
    """
    steps, beside = ({w: s for w, s in found.items() if np.isfinite(s[0])} for found in (steps, epochs))
    known, early = ({w: s for w, s in steps.items() if (w in settled) == done} for done in (True, False))
    told, short, less = (
        [f"{_title(w)}: {100 * s[0]:+.2f} ({100 * s[1]:+.2f} to {100 * s[2]:+.2f})" for w, s in found.items()]
        for found in (known, early, beside)
    )
    worse, early_loss = ([w for w, s in found.items() if s[1] > 0] for found in (known, early))
    sharp = [w for w, s in known.items() if s[2] < 0.002]  # a fifth of a point per doubling: two points over ten
    return _claim(
        "There is no evidence that larger batch sizes degrade out-of-sample performance.",
        f"Points of test error per doubling of the batch, at the largest step budget (95 %), where the smallest batch gains no "
        f"more from the last doubling of its steps{_each(told, 'no workload')} To hold, all ranges must end below 0.2. Where it "
        f"still gains, which favours the claim, only a loss would count{_each(short, 'none')} Not judged: "
        f"the largest budget of epochs, in which larger batches take fewer steps{_each(less)}",
        FAILS
        if worse and len(worse) == len(known)
        else PART
        if worse or early_loss
        else HOLDS
        if len(sharp) == len(known) > 0
        else OPEN,
        "Shallue et al. 2019, abstract",
    )


def smoothing_helps(rates: dict[tuple[str, float], tuple[float, float, float]]) -> dict:
    """C9; rates: (workload, smoothing) -> change per doubling of the test error that smoothing saves (`budgets.helped`)."""
    known = {k: r for k, r in rates.items() if np.isfinite(r[0])}
    told = [
        f"{_title(w)}, {share:g}: {100 * r[0]:+.2f} ({100 * r[1]:+.2f} to {100 * r[2]:+.2f})"
        for (w, share), r in known.items()
    ]
    up, down = (sum(test) for test in ([r[1] > 0 for r in known.values()], [r[2] < 0 for r in known.values()]))
    return _claim(
        "Label smoothing helps more at large batch sizes.",
        f"Points of test error that smoothing saves, per doubling of the batch (95 %){_each(told)} The range lies "
        f"above zero for {up} of {len(known)} and below for {down}.",
        OPEN if not up + down else HOLDS if up == len(known) else FAILS if not up else PART,
        SUMMARISED,
    )


def bell_shaped(portraits: pd.DataFrame) -> dict:
    """T1; portraits: of `portraits.shapes`, with feedback.

    A bell has its one peak at zero and is not flatter than a semicircle, as a uniform distribution is, by its excess kurtosis
    (-1) and its height at zero over a normal one's (the root of 2 / pi).  Spikes, higher than Laplace's (the root of pi), are
    told, not judged.  `lib.models` has no recurrent network, for which the claim would also have to hold: in part, at most.
    """
    centred = portraits["mean"].abs() < 0.1 * portraits["std"]
    even = (portraits.positive - 0.5).abs() < 0.1
    single = portraits.rise < 0.02
    round_ = (portraits["kurtosis"] > -1) & (portraits.peak > (2 / np.pi) ** 0.5)
    bell, spikes = (centred & even & single & round_).mean(), (portraits.peak > np.pi**0.5).sum()
    heights = "; ".join(f"{_title(w)} {span((h.min(), h.max()))}" for w, h in portraits.groupby("workload").peak)
    return _claim(
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
    return _claim(
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
    return _claim(
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
        f"at density {density:g}, " + ", ".join(f"{_title(r.workload)} {r.gap:.2f} ± {r.error:.2f}" for r in own.itertuples())
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
    return _claim(
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
    return _claim(
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
    return _claim(
        "A larger density narrows the gap to dense messages: no statement of theirs, but a comparison named in the authors' "
        "plotting code.",
        f"Top-k, which sends just its k: from density to density the mean gap falls by more than two standard errors in {falls} of "
        f"{len(fall)} steps up, and rises by as much in {rises}. Gaussian-k's falls in {int((steps <= 0).sum())} of {len(steps)}, "
        f"but what it sends is another multiple of its k at each, so that this is not the effect of density alone.",
        OPEN if not falls + rises else FAILS if not falls else HOLDS if falls == len(fall) else PART,
        "plotting code of Shi et al. 2019",
    )
