"""What the page on theory and the gradient's noise says, as numbers and words, and its tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.theory import quadratic
from chapters.theory.experiments import JOBS
from lib.analysis import ranges, scaling
from lib.claims import front, judging
from lib.claims.names import REPEATS, title
from lib.probes import tracks
from lib.wording import between, brief, named, number, percent, span
from lib.workloads.catalogue import workload

SURE = 0.05  # p-value below which a form is rejected
LEAST = 5  # batch sizes of a curve that is drawn
NEAR = 1.1  # factor within which a point is near the form


def labelled(table: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """A table of these trials' curves with curve (its name), and method (with the range of its
    momentum).
    """
    whole_curves = ranges.whole_curves(trials)
    keys = table[scaling.CURVE].itertuples(index=False, name=None)
    methods = [named(key[1]) + ", whole range" * (key in whole_curves) for key in keys]
    return table.assign(curve=scaling.curve_names(table), method=methods)


def residuals(trials: pd.DataFrame, summary: pd.DataFrame) -> pd.DataFrame:
    """The points of `labelled` curves with at least LEAST batch sizes, every curve once, with over:
    steps over the curve's c1/B + c2.
    """
    long = summary[(summary.sizes >= LEAST) & ~summary.workload.isin(REPEATS)]
    constants = long[[*scaling.CURVE, "curve", "method", "c1", "c2", "critical"]]
    points = judging.points(trials).merge(constants, on=scaling.CURVE)
    return points.assign(over=points.steps / (points.c1 / points.batch_size + points.c2))


def tested_forms(curves: dict, trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.tests_of_form`, every curve once, `labelled`."""
    once = {key: curve for key, curve in curves.items() if key[0] not in REPEATS}
    return labelled(scaling.tests_of_form(once), trials)


def followed(paths: pd.DataFrame, searches: pd.DataFrame) -> pd.DataFrame:
    """These paths and those on record, limited to the searches behind the curves."""
    search = "workload algorithm batch_size sparsity trials replicate split".split()
    return tracks.every(paths).merge(searches[search].drop_duplicates())


def noise_scales(along: pd.DataFrame, searches: pd.DataFrame) -> pd.DataFrame:
    """Curves from `scaling.summaries`, with curve (its name) and predicted: the noise scale along
    `followed` paths.
    """
    predicted = tracks.noise_of_curves(along)
    summary, _ = scaling.summaries(searches)
    curves = predicted.rename("predicted").reset_index().merge(summary)
    return curves.assign(curve=scaling.curve_names(curves))


def findings(
    tested: pd.DataFrame,
    points: pd.DataFrame,
    noise: pd.DataFrame,
    judged: dict,
) -> dict:
    """All values in the page's sentences.

    Args:
        tested: from `tested_forms`.
        points: from `residuals`.
        noise: from `noise_scales`; dense networks' critical batch sizes are compared with their
            mean.
        judged: all claims and findings.
    """
    dense = noise[noise.identified.astype(bool) & (noise.sparsity == 0)]
    constant = np.exp(np.log(dense.critical).mean())
    return {
        "close": percent(points.over.between(1 / NEAR, NEAR).mean()) if len(points) else None,
        "rejected": int((tested.p_value <= SURE).sum()),
        "tests": len(tested),
        "below": _below(points),
        "over_noise": front.facts(judged)["noise"],
        "over_one": between(*(dense.critical / constant)) if len(dense) > 2 else None,
        "held": of_jobs(),
        **quadratic.agreement(quadratic.spectra(), judged["M2"]),
        "deviates_most": percent(tested.depart.max() - 1) if len(tested) else None,
    }


def _below(points: pd.DataFrame) -> str | None:
    """How far the methods' medians lie below the form, for points within a factor sqrt(2) of the
    critical batch size; None unless all do.
    """
    near = (points.batch_size / points.critical).between(2**-0.5, 2**0.5)
    below = 1 - points.over[near].groupby(points.method).median()
    return f"{percent(below.min())} to {percent(below.max())}" if (below > 0).all() else None


# --- tables ---------------------------------------------------------------------------------------


def of_jobs() -> list[str]:
    """How many of the hook's intervals in each running job hold the offline estimate."""
    jobs = JOBS.results()
    low, offline, high = jobs.low, jobs.offline.fillna(np.inf), jobs.high.fillna(np.inf)
    inside = ((low <= offline) & (offline <= high)).groupby(jobs.workload.map(title))
    return [f"{covered.sum()} of {len(covered)} ({name})" for name, covered in inside]


def by_method(tested: pd.DataFrame) -> pd.DataFrame:
    """How well the form fits with every method, from the best curve to the worst."""
    return pd.DataFrame(
        {
            "method": name,
            "curves": len(curves),
            "not rejected (5 %)": int((curves.p_value > SURE).sum()),
            "deviates by a factor of": f"{curves.depart.min():.2f} to {curves.depart.max():.2f}",
        }
        for name, curves in tested.groupby("method")
    )


def every_curve(summary: pd.DataFrame, winners: pd.DataFrame) -> pd.DataFrame:
    """Both constants of every `labelled` curve, its critical batch size, and where its winners
    crowd; winners: as `ranges.at_edges` takes them.
    """
    crowded = ranges.marks(ranges.at_edges(winners))
    keys = summary[scaling.CURVE].itertuples(index=False, name=None)
    critical = summary[["critical", "critical_low", "critical_high"]].to_numpy()
    networks = summary.workload.map(lambda name: workload(name).title)
    pruned = summary.sparsity.map(lambda s: f", sparsity {s:g}" if s else "")
    return pd.DataFrame(
        {
            "network and goal": networks + ", " + summary.goal.map(percent),
            "method": summary.method + pruned,
            "searches": summary.replicates,
            "c₁ (examples)": summary.c1.map(brief),
            "c₂ (steps)": summary.c2.map(brief),
            "critical batch size": [f"{number(v)} ({span(ends)})" for v, *ends in critical],
            "winners at an edge": [crowded.get(key, "") for key in keys],
        }
    )
