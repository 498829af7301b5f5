"""What the page on theory and the gradient's noise says, as numbers and words, and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from chapters.theory import experiments
from lib.analysis import followed_paths, ranges, scaling
from lib.claims import AGAINST, FOR, Claim, judging
from lib.claims.names import REPEATS
from lib.probes import tracks
from lib.wording import between, brief, named, number, percent, ranged, span
from lib.workloads.catalogue import workload

DATA = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "cifar-10": "CIFAR-10"}
SURE = 0.05  # p-value below which a form is rejected
LEAST = 5  # batch sizes of a curve that is drawn


@dataclass(frozen=True)
class Measured:
    """Curves and what they say, each by its name and method.

    Attributes:
        trials: all that are compared, each workload at its goal.
        summary: of `scaling.summaries`.
        tested: of `scaling.tests_of_form`, every curve once.
        over_dense: of `constants_over_dense`.
    """

    trials: pd.DataFrame
    summary: pd.DataFrame
    tested: pd.DataFrame
    over_dense: pd.DataFrame

    @property
    def points(self) -> pd.DataFrame:
        """Those of curves of LEAST batch sizes, with critical, and with over: ln of steps over what
        their curve's c1/B + c2 says, the residuals of the law.
        """
        long = self.summary[self.summary.sizes >= LEAST]
        constants = long[[*scaling.CURVE, "c1", "c2", "critical"]]
        both = judging.points(self.trials).merge(constants, on=scaling.CURVE)
        both = both.assign(over=np.log(both.steps / (both.c1 / both.batch_size + both.c2)))
        return _named(both, ranges.whole_curves(self.trials))


def measured(trials: pd.DataFrame) -> Measured:
    """The curves of these trials."""
    summary, curves = judging.summaries(trials)
    once = {key: curve for key, curve in curves.items() if key[0] not in REPEATS}
    tables = (summary, scaling.tests_of_form(once), constants_over_dense(curves))
    whole = ranges.whole_curves(trials)
    return Measured(trials, *(_named(table, whole) for table in tables))


def constants_over_dense(curves: dict) -> pd.DataFrame:
    """c1 and c2 of every sparse curve over the dense one's, at the batch sizes of both: CURVE, c1,
    c2, each with _low and _high.
    """
    rows = []
    for key, *pair in scaling.with_partner(curves, scaling.dense_key):
        both = scaling.alike(*pair)
        if len(both[0].sizes) >= 3:
            c1, c2 = scaling.line_over(*both)
            rows.append((key, c1.row("c1") | c2.row("c2")))
    return scaling.by_curve(rows, ["c1", "c1_low", "c1_high", "c2", "c2_low", "c2_high"])


def _named(table: pd.DataFrame, whole: Iterable[tuple]) -> pd.DataFrame:
    """A table with curve, and method with the range of its momentum."""
    ranged = pd.Series(_keys(table), table.index, dtype=object).isin(list(whole))
    method = table.algorithm.map(named) + ranged.map({True: ", whole range", False: ""})
    return table.assign(curve=scaling.curve_names(table), method=method)


def _keys(table: pd.DataFrame) -> list[tuple]:
    return list(table[scaling.CURVE].itertuples(index=False, name=None))


def followed(paths: pd.DataFrame, searches: pd.DataFrame) -> pd.DataFrame:
    """These paths and those on record, of the searches that a curve is made of."""
    own = "workload algorithm batch_size sparsity trials replicate split".split()
    return tracks.every(paths).merge(searches[own].drop_duplicates())


def noise_scales(along: pd.DataFrame, searches: pd.DataFrame) -> pd.DataFrame:
    """Curves of `scaling.summaries`, each by its name, beside the noise scales of `followed` paths:
    predicted (median), followed (count).
    """
    by = ["workload", "algorithm", "sparsity"]
    paths = followed_paths.noise_scales(along).groupby(by)
    found = paths.noise_scale.agg(predicted="median", followed="count").reset_index()
    found = found.merge(scaling.summaries(searches)[0], on=by)
    return found.assign(curve=scaling.curve_names(found))


def findings(
    data: Measured,
    along: pd.DataFrame,
    noise: pd.DataFrame,
    judged: Mapping[str, Claim],
    asked: tuple[str, str],
) -> dict:
    """All values of the page's sentences.

    Args:
        data: of `measured`.
        along: of `followed`.
        noise: of `noise_scales`.
        judged: all claims.
        asked: the workload and the method that figures begin with.
    """
    summary = data.summary
    top = data.over_dense[data.over_dense.sparsity == 0.9]
    rows = data.tested.itertuples()
    mine = [row.method for row in rows if (row.workload, row.algorithm) == asked]
    sets = {workload(name).dataset for name in summary.workload}
    once = summary[~summary.workload.isin(REPEATS)]
    unbounded = ~once.identified.astype(bool) | (once.sizes < LEAST)
    return {
        "first": mine[0] if mine else None,
        "curves": len(once),
        "data": sorted(DATA.get(name, name) for name in sets),
        "methods": sorted(map(named, summary.algorithm.unique())),
        "c1": between(*top.c1),
        "c2": between(*top.c2),
        "unbounded": int(unbounded.sum()),
        **_rule(summary, asked),
        **_form(data.tested),
        **_noise(along, noise, judged["M1"]),
        **_jobs(),
    }


def _rule(summary: pd.DataFrame, asked: tuple[str, str]) -> dict:
    """Both constants of the curve asked for, or else of any."""
    mine = (summary.workload == asked[0]) & (summary.algorithm == asked[1])
    row = summary[mine if mine.any() else ~mine].nsmallest(1, "sparsity")
    known = len(row) > 0
    return {
        "rule_known": known,
        "rule_curve": row.curve.iloc[0] if known else None,
        "rule_level": f"{row.sparsity.iloc[0]:g}" if known else None,
        "rule_c2": float(row.c2.sum()),
        "rule_bend": float((row.c1 / row.c2).sum()),
        "rule_enough": float((10 * row.c1 / row.c2).sum()),
    }


def _form(tested: pd.DataFrame) -> dict:
    """On how many curves the form is rejected, and what a free exponent says."""
    rejected = tested[tested.p_value <= SURE]
    free = tested[tested.off_free.notna()]
    counts = (tested.p_value <= SURE).groupby(tested.method).agg(["sum", "size"])
    both = counts.reindex(["momentum", "momentum, whole range"], fill_value=0)
    (lost, usual), (lost_whole, whole) = both.to_numpy().tolist()
    return {
        "tested": len(tested),
        "rejected": len(rejected),
        "departs_least": percent(rejected.depart.min() - 1) if len(rejected) else None,
        "departs_most": percent(rejected.depart.max() - 1) if len(rejected) else None,
        "deviates_most": percent(tested.depart.max() - 1) if len(tested) else None,
        "kept": len(tested) - len(rejected),
        "free": len(free),
        "exponent_low": int((free.exponent_high < 1).sum()),
        "exponent_high": int((free.exponent_low > 1).sum()),
        "range_bends": lost > usual / 2 and lost_whole < whole / 2,
        "momentum_rejected": lost,
        "momentum_curves": usual,
        "whole_rejected": lost_whole,
        "whole_curves": whole,
    }


def _noise(along: pd.DataFrame, noise: pd.DataFrame, claim: Claim) -> dict:
    """How far critical batch sizes are from noise scales, and what moves these."""
    inside = noise[noise.identified.astype(bool)]
    keys = ["workload", "algorithm", "sparsity"]
    alone = followed_paths.noise_scales(along).merge(inside, on=keys)
    verdicts = {}
    for group in claim.measured:
        verdicts.setdefault(group.name.rpartition(", ")[0], set()).add(group.verdict)
    near = [name for name, found in verdicts.items() if found == {FOR}]
    apart = [name for name, found in verdicts.items() if AGAINST in found]
    steps = along.sort_values("step").groupby(followed_paths.PATH).noise_scale
    rise = (steps.last() / steps.first()).quantile([0.05, 0.95])
    return {
        "some_near": bool(near),
        "near": near,
        "apart_on": apart,
        "some_open": len(near) + len(apart) < len(verdicts),
        "critical_over_noise": "; ".join(
            f"{g.name} {ranged(g.effect, g.low, g.high)}" for g in claim.measured
        ),
        "off": float(np.exp(np.log(alone.critical / alone.noise_scale).abs().max())),
        "followed": len(noise),
        "outside": len(noise) - len(inside),
        "looked_at": int(along.points.max()),
        "chunk": tracks.Track.chunk,
        "rise": between(*rise),
        "with_momentum": _with_momentum(inside) or "no network is followed with both",
    }


def _with_momentum(inside: pd.DataFrame) -> str:
    """Noise scales and critical batch sizes with momentum over SGD's, in words."""
    wide = inside[inside.sparsity == 0].pivot(
        index="workload", columns="algorithm", values=["predicted", "critical"]
    )
    if not {"sgd", "momentum"} <= set(inside.algorithm):
        return ""
    over = wide.xs("momentum", axis=1, level=1) / wide.xs("sgd", axis=1, level=1)
    return "; ".join(
        f"{workload(row.Index).title}: noise scale {brief(row.predicted)} times, critical batch "
        f"size {brief(row.critical)} times"
        for row in over.dropna().itertuples()
    )


def _jobs() -> dict:
    """What the hook estimated in running jobs."""
    jobs = experiments.JOBS.results()
    names = [workload(name).title for name in jobs.workload]
    rows = experiments.compared(jobs.assign(network=names))
    return {
        "jobs": rows.network.tolist(),
        "workers": int(rows.workers.max()),
        "held": rows.held.map("{:.0%}".format).str.replace("%", " %").tolist(),
        "apart": between(*rows.apart),
        "lags": bool((rows.ahead > 1).all()),
        "ahead": between(*rows.ahead),
    }


# --- tables ---------------------------------------------------------------------------------------


def by_method(tested: pd.DataFrame) -> pd.DataFrame:
    """How the form fares with every method, from the least curve to the most."""
    rows = [
        {
            "method": name,
            "curves": len(own),
            "not rejected (5 %)": int((own.p_value > SURE).sum()),
            "deviates by a factor of": _ends(own.depart),
            "p": _ends(own.exponent.dropna()),
        }
        for name, own in tested.groupby("method")
    ]
    return pd.DataFrame(rows)


def _ends(values: pd.Series) -> str:
    return f"{values.min():.2f} to {values.max():.2f}" if len(values) else "—"


def every_curve(data: Measured, noise: pd.DataFrame) -> pd.DataFrame:
    """Both constants of every curve, its critical batch size, the test of its form, its noise
    scale, and where its winners crowd.
    """
    tests = data.tested.set_index(scaling.CURVE)[["chi2", "freedom", "p_value", "exponent"]]
    scales = noise.set_index(scaling.CURVE).predicted.map(brief).rename("scale")
    rows = data.summary.join(tests, on=scaling.CURVE).join(scales, on=scaling.CURVE)
    crowded = ranges.marks(ranges.at_edges(data.trials))
    critical = rows[["critical", "critical_low", "critical_high"]].to_numpy()
    return pd.DataFrame(
        {
            "network": rows.curve.str.rpartition(", ")[0],
            "method": rows.method,
            "sparsity": rows.sparsity.map("{:g}".format),
            "goal": rows.goal.map(percent),
            "searches": rows.replicates,
            "c₁ (examples)": rows.c1.map(brief),
            "c₂ (steps)": rows.c2.map(brief),
            "critical batch size": [f"{number(v)} ({span(ends)})" for v, *ends in critical],
            "χ², p-value": [_tested(row) for row in rows.itertuples()],
            "exponent p": rows.exponent.map("{:.2f}".format, na_action="ignore").fillna("—"),
            "noise scale": rows.scale.fillna("—"),
            "winners at an edge": [crowded.get(key, "") for key in _keys(rows)],
        }
    )


def _tested(row: tuple) -> str:
    if np.isnan(row.chi2):
        return "—"
    return f"{row.chi2:.0f} on {row.freedom:.0f}, {row.p_value:.2g}"
