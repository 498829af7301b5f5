"""The effect that each claim is judged by, as a table: name (of a group), effect, low, high (5 and 95 %), n.

A row of n = 0 stands for what is not measured.  Nothing here knows a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

from lib.analysis import fixed_budgets, scaling
from lib.analysis.scaling import CURVE, LONG
from lib.wording import named
from lib.workloads.catalogue import WORKLOADS

COLUMNS = ["name", "effect", "low", "high", "n"]
ENDS = [0.05, 0.95]
NORMAL = 1.645  # standard errors from the middle to either end
SIZES = 5  # the fewest batch sizes of a curve, or of a ladder of budgets, of which both ends tell


def table(rows: Iterable[tuple]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS)


def unmeasured(name: str) -> pd.DataFrame:
    return table([(name, np.nan, np.nan, np.nan, 0)])


def title(name: str) -> str:
    return WORKLOADS[name].title if name in WORKLOADS else str(name)


def data_set(name: str) -> str:
    """What a workload is trained on, as pages name it."""
    known = WORKLOADS[name].dataset if name in WORKLOADS else str(name)
    return {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "cifar-10": "CIFAR-10"}.get(known, known)


def apart(draws: np.ndarray) -> np.ndarray:
    """How far ratios lie from one, either way: 2 for two and for a half."""
    with np.errstate(divide="ignore"):
        return np.maximum(draws, 1 / np.asarray(draws))


def folded(effects: pd.DataFrame) -> pd.DataFrame:
    """`table` of ratios as how far they lie `apart` from one; an interval with one inside begins there."""
    ends = effects[["low", "high"]].to_numpy(float)
    spread = apart(ends)
    inside = (ends[:, 0] <= 1) & (ends[:, 1] >= 1)
    return effects.assign(effect=apart(effects.effect.to_numpy(float)), low=np.where(inside, 1, spread.min(1)), high=spread.max(1))


def pooled(groups: Iterable[tuple[str, Sequence[np.ndarray]]]) -> pd.DataFrame:
    """The median over each group's ratios, each given by its draws (`scaling.middle`)."""
    rows = []
    for name, draws in groups:
        low, effect, high = scaling.middle(draws)
        rows.append((name, effect, low, high, len(draws)))
    return table(rows)


def resampled(values: Sequence[float], of=np.median, draws: int = 1000) -> tuple[float, float, float, int]:
    """A statistic of so many values (NaN without any) and its 5 and 95 % ends over bootstrapped ones; n."""
    values = np.asarray(values, float)
    if not len(values):
        return np.nan, np.nan, np.nan, 0
    picks = values[np.random.default_rng(0).integers(len(values), size=(draws, len(values)))]
    low, high = np.quantile(of(picks, axis=1), ENDS, method="nearest")
    return float(of(values)), float(low), float(high), len(values)


def share(met: int, of: int) -> tuple[float, float, float, int]:
    """A share and its 90 % interval (Wilson's); NaN of none."""
    return (met / of, *scaling.wilson(met, of, 0.9), int(of)) if of else (np.nan, np.nan, np.nan, 0)


def fell(before: tuple[float, float, float], after: tuple[float, float, float]) -> tuple[float, float, float]:
    """A value, low and high of one share less those of another: Newcombe's interval of the difference."""
    (a, a_low, a_high), (b, b_low, b_high) = before, after
    return a - b, a - b - np.hypot(a - a_low, b_high - b), a - b + np.hypot(a_high - a, b - b_low)


# --- curves -----------------------------------------------------------------------------------------------------------


def inside_the_sizes(drawn: dict) -> pd.DataFrame:
    """By data and density of weights, how many times the critical batch size exceeds the smallest batch size, or the largest
    exceeds it, whichever is less: the median over curves of five batch sizes or more.

    Below one it lies outside what was measured.  drawn: of `scaling.summaries`.
    """
    found = {}
    for (work, *_, sparsity), curve in drawn.items():
        if len(sizes := curve.logs.columns) >= SIZES:
            critical = scaling.redrawn(curve.draws).critical.to_numpy()
            with np.errstate(divide="ignore"):
                room = np.minimum(critical / sizes.min(), sizes.max() / critical)
            where = "digits" if data_set(work) == "digits" else "images"
            found.setdefault(f"{'sparse' if sparsity else 'dense'} networks on {where}", []).append(room)
    return pooled(sorted(found.items()))


def off_the_line(summary: pd.DataFrame) -> pd.DataFrame:
    """By sparsity, the factor by which long curves lie off their c1/B + c2: the median curve, 5 and 95 % of curves."""
    long = summary[(summary.sizes >= LONG) & (summary.sparsity > 0)]
    groups = long.groupby("sparsity").residual
    return table((f"sparsity {level:g}", own.median(), *own.quantile(ENDS), len(own)) for level, own in groups)


def by_way_of_pruning(drawn: dict) -> pd.DataFrame:
    """How far the critical batch size lies from that after pruning by connection sensitivity, by method, over workloads."""
    draws = {}
    for key, curves in drawn.items():
        other = (*key[:2], "connection-sensitivity", key[3])
        if key[3] > 0 and other in drawn and other != key and len(own := scaling.ratios(curves, drawn[other], "critical")):
            draws.setdefault(f"{named(key[2])} pruning", []).append(own)
    return folded(pooled(draws.items()))


def cost_of_sparsity(costs: pd.DataFrame) -> pd.DataFrame:
    """By sparsity, steps over the dense network's: the median over all curves and batch sizes, and the widest ends of those
    at any one batch size.

    costs: of `scaling.steps_over_dense`.
    """
    rows = []
    for level, own in costs.groupby("sparsity"):
        single = pooled((b, at.draws) for b, at in own.groupby("batch_size"))
        rows.append((f"sparsity {level:g}", scaling.middle(own.draws)[1], single.low.min(), single.high.max(), len(own)))
    return table(rows)


def critical_over_dense(drawn: dict, algorithms: Sequence[str] | None = None) -> pd.DataFrame:
    """The critical batch size at the highest sparsity over the dense one's, by data set: the median over pairs of curves.

    algorithms: of these pairs; None: of all.
    """
    pairs = scaling.sparsest(scaling.against_dense(drawn, "critical"))
    own = pairs[pairs.algorithm.isin(algorithms or pairs.algorithm.unique())]
    return pooled((name, _ratios(drawn, of)) for name, of in own.groupby(own.workload.map(data_set), sort=False))


def over_sgd(pairs: pd.DataFrame, column: str, label: Callable[[str], str]) -> pd.DataFrame:
    """A ratio of methods with momentum to SGD, `family_curves.over_sgd`, the median over the pairs of a label of workloads."""
    groups = pairs.groupby(pairs.workload.map(label), sort=False)[column] if len(pairs) else ()
    return pooled((name, list(draws)) for name, draws in groups)


def _ratios(drawn: dict, pairs: pd.DataFrame) -> list[np.ndarray]:
    keys = pairs[CURVE].itertuples(index=False, name=None)
    return [scaling.ratios(drawn[key], drawn[(*key[:3], 0.0)], "critical") for key in keys]


def beside_other_forms(factors: pd.DataFrame, draws: int = 1000) -> pd.DataFrame:
    """The error of c1/B + c2 at left-out batch sizes over that of the best other form, each the median over curves.

    factors: of `curve_forms.left_out_factors`.  The interval is over resampled curves.
    """
    rows = []
    for name, own in (("all algorithms", factors), ("plain SGD", factors[factors.algorithm == "sgd"])):
        if not len(own):
            continue
        wide = own.pivot(index=CURVE, columns="form", values="factor")
        picks = np.random.default_rng(0).integers(len(wide), size=(draws, len(wide)))
        medians = np.vstack([np.median(wide, axis=0), *(np.median(wide.to_numpy()[pick], axis=0) for pick in picks)])
        mine = wide.columns == "c1/B + c2"
        over = medians[:, mine][:, 0] / medians[:, ~mine].min(1)
        rows.append((name, over[0], *np.quantile(over[1:], ENDS), len(wide)))
    return table(rows)


def by_workload(frame: pd.DataFrame, column: str, least: int = 3) -> pd.DataFrame:
    """The median of a column by workload, over at least so many rows; the interval is over resampled rows."""
    groups = frame.groupby("workload", sort=False)[column]
    return table((title(name), *resampled(own)) for name, own in groups if len(own) >= least)


def noise_scale_off(bends: pd.DataFrame, drawn: dict) -> pd.DataFrame:
    """How far the critical batch size lies from the gradient noise scale, by workload, over its curves.

    bends: of `followed_paths.predicted_bends`; curves whose critical batch size lies outside those measured do not count.
    """
    rows = bends[bends.identified.astype(bool)]
    found = {
        name: [apart(scaling.redrawn(drawn[tuple(r[CURVE])].draws).critical.to_numpy() / r.predicted) for _, r in own.iterrows()]
        for name, own in rows.groupby("workload", sort=False)
    }
    return pooled((title(name), draws) for name, draws in found.items())


def running_noise_off(jobs: pd.DataFrame) -> pd.DataFrame:
    """How far the noise scale that a job's workers tell is from the offline one, in the mean over windows two spans apart.

    jobs: of `lib.probes.running_noise.results`.  A row per network; ranges are bootstrapped over the windows.
    """
    rows = []
    for name, own in jobs.groupby("workload", sort=False):
        windows = own.groupby(own.step // (2 * own.span)).last()
        ratios = np.log(windows.running / windows.offline).replace([np.inf, -np.inf], np.nan).dropna()
        *ends, n = resampled(ratios, np.mean)
        rows.append((title(name), *np.exp(ends), n))
    return folded(table(rows))


def from_extreme_to_extreme(bends: pd.DataFrame) -> pd.DataFrame:
    """The largest critical batch size over the smallest, of dense curves of `scaling.summaries` that have it inside their sizes.

    low, high: between the near ends of the intervals farthest apart, and between the far ends.
    """
    own = bends[bends.identified.astype(bool)]
    if len(own) < 2:
        return unmeasured("all curves")
    with np.errstate(divide="ignore"):  # a floor may lie at any batch size from zero on
        far = own.critical_high.max() / own.critical_low.min()
    near = own.critical_low.max() / own.critical_high.min()
    return table([("all curves", own.critical.max() / own.critical.min(), near, far, len(own))])


def of_families(effects: pd.DataFrame, name: Callable[[str], str] = lambda family: family.partition(":")[0]) -> pd.DataFrame:
    """`family_curves.effects` as how far each ratio lies from one; name: of a family's group, its data set or another."""
    return folded(table((name(r.family), r.ratio, r.ratio_low, r.ratio_high, 1) for r in effects.itertuples()))


# --- learning rates and budgets ---------------------------------------------------------------------------------------


def growth_of_rate(powers: pd.DataFrame) -> pd.DataFrame:
    """By workload, the factor by which the best effective learning rate grows per doubling; powers: of `rate_rules.exponents`."""
    return table((title(r.workload), 2**r.power, 2**r.low, 2**r.high, r.trials) for r in powers.itertuples())


def rules_missed(costs: pd.DataFrame) -> pd.DataFrame:
    """By rule, the share of batch sizes at which it takes over twice the tuned steps, retraining apart.

    costs: of `rate_rules.costs`; the size at which the rules start does not count.
    """
    own = costs[costs.rule.isin(["linear rule", "square-root rule"]) & ~costs.base.astype(bool)]
    return table((f"the {rule}", *share(int((over > 2).sum()), len(over))) for rule, over in own.groupby("rule").beyond)


def region_moved(shares: pd.DataFrame) -> pd.DataFrame:
    """By workload of five batch sizes or more, the share of good trials that is gained at fixed steps, or lost at fixed epochs,
    from the smallest batch to the largest: the lesser of the two.  shares: of `fixed_budgets.shares` (95 %)."""
    rows = []
    for name, own in shares.groupby("workload", sort=False) if len(shares) else ():
        kinds = {k: r.sort_values("batch_size")[["share", "low", "high"]].to_numpy() for k, r in own.groupby("kind")}
        if len(kinds) == 2 and min(map(len, kinds.values())) >= SIZES:
            grown, shrunk = fell(kinds["fixed steps"][-1], kinds["fixed steps"][0]), fell(*kinds["fixed epochs"][[0, -1]])
            rows.append((title(name), *min(grown, shrunk, key=lambda moved: moved[1]), int(own.trials.max())))
    return table(rows)


def lost_trials(trials: pd.DataFrame) -> pd.DataFrame:
    """By workload, the share of trials that fail at the smallest batch size less that at the largest, within equal steps."""
    rows = []
    for name, own in trials.groupby("workload", sort=False) if len(trials) else ():
        steps = int(own.groupby("batch_size").max_steps.max().min())
        lost = own.status.eq("infeasible") & (own.last_step <= steps)
        ends = [own.batch_size == b for b in (own.batch_size.min(), own.batch_size.max())]
        rows.append((title(name), *fell(*(share(int(lost[at].sum()), int(at.sum()))[:3] for at in ends)), int(ends[0].sum())))
    return table(rows)


def favoured(ladders: dict) -> pd.DataFrame:
    """How much lower the favoured end's validation error is, in points, at the smallest budget: large batches by a budget of
    steps, small ones by one of epochs; of the workload where it is least.  ladders: of `fixed_budgets.by_workload`."""
    known = [kinds for kinds in ladders.values() if min(map(_sizes, kinds)) >= SIZES]
    rows = []
    for place, (name, column, sign) in enumerate((("few steps", "budget", 1), ("few epochs", "examples", -1))):
        found = [_between_ends(kinds[place], column, min, sign) for kinds in known]
        rows += [(name, *min(found, key=lambda ends: ends[1]), len(found))] if found else []
    return table(rows)


def left_by_large_budgets(found: pd.DataFrame) -> pd.DataFrame:
    """By workload, how far the validation errors at the smallest and largest batch are apart, in points, by a line through all.

    found: of `fixed_budgets.longest` without label smoothing.
    """
    rows = []
    for name, own in found.groupby("workload", sort=False):
        doublings = np.log2(own.batch_size.max() / own.batch_size.min())
        rate = fixed_budgets.trend(own.batch_size, own.validation)
        if np.isfinite(rate[0]):
            rows.append((title(name), *_size(tuple(100 * doublings * r for r in rate)), len(own)))
    return table(rows)


def _size(ends: tuple[float, float, float]) -> tuple[float, float, float]:
    """A difference, low and high, whatever its sign."""
    middle, low, high = ends
    return abs(middle), max(low, -high, 0.0), max(-low, high)


def _sizes(best: pd.DataFrame) -> int:
    return best.batch_size.nunique() if len(best) else 0


def _between_ends(best: pd.DataFrame, column: str, pick, sign: int = 1) -> tuple[float, float, float]:
    """Points of validation error at the smallest batch less those at the largest, at one budget: the middle, low, high.

    Each error is its range of lucky searches, widened by what its validation set leaves open.
    """
    small, large = best[best[column] == pick(best[column])].sort_values("batch_size").iloc[[0, -1]].itertuples()
    doubt = np.hypot(small.unsure, large.unsure)
    ends = sorted(100 * sign * e for e in (small.low - large.high - doubt, small.high - large.low + doubt))
    return (ends[0] + ends[1]) / 2, *ends


def slopes(found: dict) -> pd.DataFrame:
    """`fixed_budgets.trend` of several, in points of test error per doubling of the batch (95 %).

    found: rate, low and high by workload, or by workload and smoothing, and fourth how many searches there are, if not one.
    """
    known = {name: s for name, s in found.items() if np.isfinite(s[0])}
    names = {k: title(k) if isinstance(k, str) else f"{title(k[0])}, smoothing {k[1]:g}" for k in known}
    return table((names[k], *(100 * np.array(s[:3])), *(s[3:] or (1,))) for k, s in known.items())
