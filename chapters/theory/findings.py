"""What the page on theory and the gradient's noise says, as numbers and words, and its tables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from chapters.theory.experiments import JOBS
from lib.analysis import ranges, scaling
from lib.claims import judging
from lib.claims.names import REPEATS, title
from lib.probes import tracks
from lib.wording import between, brief, named, number, percent, span
from lib.workloads.catalogue import workload

SURE = 0.05  # p-value below which a form is rejected
LEAST = 5  # batch sizes of a curve that is drawn
NEAR = 1.1  # factor within which a point is near the form


def labelled(table: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """A table of curves of these trials with curve, its name, and method with the range of its
    momentum.
    """
    whole = ranges.whole_curves(trials)
    names = [named(key[1]) + ", whole range" * (key in whole) for key in _keys(table)]
    return table.assign(curve=scaling.curve_names(table), method=names)


def _keys(table: pd.DataFrame) -> Iterator[tuple]:
    return table[scaling.CURVE].itertuples(index=False, name=None)


def residuals(trials: pd.DataFrame, summary: pd.DataFrame) -> pd.DataFrame:
    """The points of `labelled` curves of LEAST batch sizes, every curve once, with over: steps over
    what their curve's c1/B + c2 says.
    """
    long = summary[(summary.sizes >= LEAST) & ~summary.workload.isin(REPEATS)]
    constants = long[[*scaling.CURVE, "curve", "method", "c1", "c2", "critical"]]
    both = judging.points(trials).merge(constants, on=scaling.CURVE)
    return both.assign(over=both.steps / (both.c1 / both.batch_size + both.c2))


def tested_forms(curves: dict, trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.tests_of_form`, every curve once, `labelled`."""
    once = {key: curve for key, curve in curves.items() if key[0] not in REPEATS}
    return labelled(scaling.tests_of_form(once), trials)


def followed(paths: pd.DataFrame, searches: pd.DataFrame) -> pd.DataFrame:
    """These paths and those on record, of the searches that a curve is made of."""
    own = "workload algorithm batch_size sparsity trials replicate split".split()
    return tracks.every(paths).merge(searches[own].drop_duplicates())


def noise_scales(along: pd.DataFrame, searches: pd.DataFrame) -> pd.DataFrame:
    """Curves of `scaling.summaries`, each by its name, beside predicted, the median noise scale of
    `followed` paths.
    """
    by = ["workload", "algorithm", "sparsity"]
    predicted = tracks.noise_scales(along).groupby(by).noise_scale.median()
    found = predicted.rename("predicted").reset_index()
    found = found.merge(scaling.summaries(searches)[0], on=by)
    return found.assign(curve=scaling.curve_names(found))


def findings(
    tested: pd.DataFrame, points: pd.DataFrame, noise: pd.DataFrame, asked: tuple[str, str]
) -> dict:
    """All values of the page's sentences.

    Args:
        tested: of `tested_forms`.
        points: of `residuals`.
        noise: of `noise_scales`.
        asked: the workload and the method that figures begin with.
    """
    mine = tested[(tested.workload == asked[0]) & (tested.algorithm == asked[1])]
    return {
        "first": next(iter(mine.method), None),
        "close": percent(points.over.between(1 / NEAR, NEAR).mean()) if len(points) else None,
        **_noise(noise),
        "deviates_most": percent(tested.depart.max() - 1) if len(tested) else None,
    }


# --- tables ---------------------------------------------------------------------------------------


def _noise(noise: pd.DataFrame) -> dict:
    """How far dense networks' critical batch sizes are from noise scales, and from one constant."""
    dense = noise[noise.identified.astype(bool) & (noise.sparsity == 0)]
    constant = np.exp(np.log(dense.critical).mean())
    return {
        "several": len(dense) > 2,  # else one constant says nothing
        "over_noise": between(*(dense.critical / dense.predicted)),
        "over_one": between(*(dense.critical / constant)),
        "constant": number(constant),
    }


def of_jobs() -> pd.DataFrame:
    """How many of the hook's intervals in running jobs hold the offline estimate."""
    jobs = JOBS.results()
    offline = jobs.offline.fillna(np.inf)
    inside = (jobs.low <= offline) & (offline <= jobs.high.fillna(np.inf))
    held = inside.groupby(jobs.workload.map(title), sort=False).agg(["sum", "size"])
    shares = [f"{row.sum} of {row.size}" for row in held.itertuples()]
    return pd.DataFrame({"network": held.index, "intervals that hold the reference": shares})


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


def every_curve(summary: pd.DataFrame, winners: pd.DataFrame) -> pd.DataFrame:
    """Both constants of every `labelled` curve, its critical batch size, and where its winners
    crowd; winners: as `ranges.at_edges` takes them.
    """
    crowded = ranges.marks(ranges.at_edges(winners))
    critical = summary[["critical", "critical_low", "critical_high"]].to_numpy()
    return pd.DataFrame(
        {
            "network": summary.workload.map(lambda name: workload(name).title),
            "method": summary.method,
            "sparsity": summary.sparsity.map("{:g}".format),
            "goal": summary.goal.map(percent),
            "searches": summary.replicates,
            "c₁ (examples)": summary.c1.map(brief),
            "c₂ (steps)": summary.c2.map(brief),
            "critical batch size": [f"{number(v)} ({span(ends)})" for v, *ends in critical],
            "winners at an edge": [crowded.get(key, "") for key in _keys(summary)],
        }
    )
