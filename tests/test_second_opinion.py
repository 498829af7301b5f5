"""Headline numbers once more, straight from the record files: pandas, numpy and scipy, and nothing of `lib`.

What the book prints is asked of it in a process of its own.
"""

import io
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import least_squares
from scipy.stats import norm as normal
from scipy.stats import t as student

ROOT = Path(__file__).resolve().parent.parent
PLAIN = {"stop": "goal", "checks": "geometric", "precision": None, "label_smoothing": 0.0, "messages": None, "max_steps": None,
         "pruning": "connection-sensitivity", "staleness": 0}  # fmt: skip
DIGITS = ("digits", "digits-mlp", 0.05)
FASHION = ("fashion-mnist", "fashion-mnist-fc-128x3-easier", 0.14)


@cache
def records(folder):
    """Every search of a workload: its fields and its table's text, from its archive and from single files."""
    packed = folder / "records.jsonl.xz"
    texts = [*pd.read_json(packed, lines=True)[1]] if packed.exists() else []
    texts += [file.read_text(encoding="utf-8") for file in folder.rglob("batch-*.csv")]
    parts = (text.split("\n", 1) for text in texts)
    return [(json.loads(first)["cell"], table) for first, table in parts]


@cache
def searches(data_set, workload, algorithm, sparsity, goal):
    """Steps of the first ten trials of every search: space, replicate, split, batch_size, trial, last (step), steps (NaN if missed)."""
    usual = {**PLAIN, "algorithm": algorithm, "sparsity": sparsity}
    rows = []
    for cell, text in records(ROOT / "data" / data_set / workload):
        if all(cell.get(name, value) == value for name, value in usual.items()):
            trials = pd.read_csv(io.StringIO(text), low_memory=False)
            steps = np.sort(trials[f"steps@{goal:g}"].astype(float))[:10]
            about = (cell.get("space"), cell["replicate"], cell.get("split", 0), cell["batch_size"], trials.last_step.max())
            rows += [(*about, trial, k) for trial, k in enumerate(steps)]
    names = ["space", "replicate", "split", "batch_size", "last", "trial", "steps"]
    found = pd.DataFrame(rows, columns=names)
    by = ["space", "replicate", "split", "batch_size", "trial"]
    return found.groupby(by, dropna=False)[["steps", "last"]].min().reset_index()


def table(data_set, workload, goal, algorithm, sparsity, whole, trial=1):
    """ln of the steps of a search's trial-th hit [searches, batch sizes], on splits of their own, one search each.

    whole: of both ranges of momentum together.  Where fewer trials met the goal, it took longer than the last step, whose ln
    is there plus 1j.
    """
    found = searches(data_set, workload, algorithm, sparsity, goal)
    first = found.groupby("split").replicate.transform("min")
    found = found[found.replicate == first]
    spaces = (found.space.isna(), found.space == "low-momentum") if whole else (found.space.isna(),)
    both = [set(zip(found[of].split, found[of].batch_size)) for of in spaces]
    kept = [place in set.intersection(*both) for place in zip(found.split, found.batch_size)]
    rows = found[np.logical_or.reduce(spaces) & np.array(kept)]
    by = rows.groupby(["split", "batch_size"])
    logs = np.log(by.steps.apply(lambda k: np.sort(k)[trial - 1]).unstack())
    bounds = np.log(by["last"].max().unstack())
    return pd.DataFrame(np.where(logs.isna(), bounds + 1j, logs), logs.index, logs.columns)


def levels(logs):
    """Mean ln K* by batch size, each search's own level apart, so that a search that is lacking somewhere shifts nothing; what
    is only known to be larger is the mean of a normal variable that is."""
    values = logs.to_numpy(complex)
    met, bound = values.imag == 0, values.imag > 0
    met &= ~np.isnan(values.real)
    level, own, spread = np.ma.masked_where(~met, values.real).mean(0).filled(np.nan), 0.0, 0.3
    for _ in range(200):
        expected = level + own
        z = (values.real - expected) / spread
        beyond = expected + spread * normal.pdf(z) / normal.sf(z)
        filled = np.select([met, bound], [values.real, beyond], expected)
        level, own = filled.mean(0), filled.mean(1, keepdims=True) - filled.mean()
        freedom = met.sum() - level.size - len(filled) + 1
        spread = np.sqrt(((values.real - level - own)[met] ** 2).sum() / freedom)
    return level


def log_critical(sizes, means):
    """ln of c1 / c2 of the c1 / B + c2 that lies nearest."""
    x = np.log(np.asarray(sizes, float))

    def off(p):
        return p[0] + np.logaddexp(0, p[1] - x) - means

    starts = [[means.min(), bend] for bend in np.quantile(x, [0.2, 0.5, 0.8])]
    return min((least_squares(off, start) for start in starts), key=lambda fit: fit.cost).x[1]


def jackknife(statistic, *tables):
    """A statistic of tables of the same searches, a number or many, and its 90 % interval: [3, ...]."""
    n = len(tables[0])
    value = statistic(*tables)
    without = np.array([statistic(*(t.drop(t.index[i]) for t in tables)) for i in range(n)])
    reach = student.ppf(0.95, n - 1) * np.sqrt((n - 1) / n * ((without - without.mean(0)) ** 2).sum(0))
    return np.exp([value, value - reach, value + reach])


def critical(logs):
    return log_critical(logs.columns, levels(logs))


def paired(above, below):
    splits = above.index.intersection(below.index)
    sizes = above.columns.intersection(below.columns)
    return above.loc[splits, sizes], below.loc[splits, sizes]


def critical_ratio(above, below):
    return jackknife(lambda a, b: critical(a) - critical(b), *paired(above, below))


def least_cost(above, below):
    """The batch size at which the cost is least for sure: its ratio of steps with its interval."""
    found = jackknife(lambda a, b: levels(a) - levels(b), *paired(above, below))
    return found[:, found[1].argmin()]


@pytest.fixture(scope="module")
def book():
    """What the book prints: rows of curves, and groups of claims by key and name."""
    told = (
        "import json; from lib.claims import front, judge; "
        "print(json.dumps([front.critical().to_dict('records'), "
        "{key: {g.name: [g.effect, g.low, g.high, g.n, g.verdict] for g in c.groups} for key, c in judge().items()}]))"
    )
    run = subprocess.run([sys.executable, "-c", told], cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=True)
    curves, claims = json.loads(run.stdout)
    return {(c["workload"], c["algorithm"], c["pruning"], c["sparsity"]): c for c in curves}, claims


CURVES = [(DIGITS, "momentum", 0.0), (DIGITS, "sgd", 0.9), (FASHION, "sgd", 0.0)]


@pytest.mark.parametrize("about, algorithm, sparsity", CURVES, ids=lambda v: v[1] if isinstance(v, tuple) else str(v))
def test_critical_batch_sizes_and_their_intervals_are_what_the_files_say(book, about, algorithm, sparsity):
    printed = book[0][about[1], algorithm, "connection-sensitivity", sparsity]
    logs = table(*about, algorithm, sparsity, printed["range"] == "whole")
    found = jackknife(critical, logs)
    assert printed["goal"] == about[2] and printed["replicates"] == len(logs)
    np.testing.assert_allclose([printed[f"critical{end}"] for end in ("", "_low", "_high")], found, rtol=0.02)


VERDICTS = {"L4": 0.8, "L3": 1.25}
RUNGS = ((0.05, 2), (0.06, 5), (0.08, 10), (0.1, 10))  # goals and hits


def over_rungs(algorithm, whole):
    """Several trials and goals: the mean of ln C of pruned networks less that of dense ones, with its interval."""
    rungs = []
    for goal, trial in RUNGS:
        rungs += paired(*(table(*DIGITS[:2], goal, algorithm, s, whole, trial) for s in (0.9, 0.0)))
    splits = rungs[0].index
    for one in rungs:
        splits = splits.intersection(one.index)
    every = [one.loc[splits] for one in rungs]
    signs = np.tile([1, -1], len(RUNGS)) / len(RUNGS)
    return jackknife(lambda *t: sum(s * critical(one) for s, one in zip(signs, t)), *every), len(splits)


@pytest.mark.parametrize("key, algorithm, name", [
    ("L4", "momentum", "MLP on digits, momentum"), ("L4", "sgd", "MLP on digits, SGD"), ("L3", "sgd", "MLP on digits, SGD"),
])  # fmt: skip
def test_claims_on_pruned_networks_are_what_the_files_say(book, key, algorithm, name):
    whole = book[0][DIGITS[1], algorithm, "connection-sensitivity", 0.0]["range"] == "whole"
    *printed, n, verdict = book[1][key][name]
    if key == "L4":
        found, searches = over_rungs(algorithm, whole)
    else:
        sparse, dense = (table(*DIGITS, algorithm, sparsity, whole) for sparsity in (0.9, 0.0))
        found, searches = least_cost(sparse, dense), len(sparse.index.intersection(dense.index))
    np.testing.assert_allclose(printed, found, rtol=0.05 if key == "L4" else 0.02)
    least = VERDICTS[key]
    assert verdict == ("yes" if found[1] > least else "no" if found[2] < least else "unclear")
    assert n == searches


def test_momentum_over_sgd_is_what_the_files_say(book):
    whole = book[0][DIGITS[1], "momentum", "connection-sensitivity", 0.0]["range"] == "whole"
    found = critical_ratio(table(*DIGITS, "momentum", 0.0, whole), table(*DIGITS, "sgd", 0.0, False))
    printed = next(group for name, group in book[1]["S7"].items() if name.startswith("MLP on digits, momentum"))
    np.testing.assert_allclose(printed[:3], found, rtol=0.02)
