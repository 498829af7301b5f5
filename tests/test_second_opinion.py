"""Headline numbers once more, straight from the record files: pandas, numpy and scipy, and nothing of `lib`.

What the book prints comes from a process of its own.
"""

import io
import json
import subprocess
import sys
from functools import cache, reduce
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
    """Steps of the first ten trials of every search: its fields, trial, last (step), steps (NaN if missed)."""
    usual = {**PLAIN, "algorithm": algorithm, "sparsity": sparsity}
    rows = []
    for cell, text in records(ROOT / "data" / data_set / workload):
        if all(cell.get(name, value) == value for name, value in usual.items()):
            trials = pd.read_csv(io.StringIO(text), low_memory=False)
            steps = np.sort(trials[f"steps@{goal:g}"].astype(float))[:10]
            about = (cell.get("space"), cell["replicate"], cell.get("split", 0), cell["batch_size"])
            about += (trials.last_step.max(),)
            rows += [(*about, trial, k) for trial, k in enumerate(steps)]
    names = ["space", "replicate", "split", "batch_size", "last", "trial", "steps"]
    by = pd.DataFrame(rows, columns=names).groupby(names[:4] + ["trial"], dropna=False)
    return by[["steps", "last"]].min().reset_index()


def table(data_set, workload, goal, algorithm, sparsity, union, trial=1):
    """Mean ln of the steps of a search's first hits [searches, batch sizes], on splits of their own,
    one search each.

    union: of both ranges of momentum together.  Where fewer trials met the goal, it took longer
    than the last step, whose ln is there plus 1j.
    """
    rows = searches(data_set, workload, algorithm, sparsity, goal)
    rows = rows.assign(space=rows.space.astype(object).fillna(""))
    rows = rows[rows.replicate == rows.groupby("split").replicate.transform("min")]
    rows = rows[rows.space.isin(["", "low-momentum"] if union else [""])]
    point = ["split", "batch_size"]
    halves = rows.groupby(point).space.transform("nunique")
    by = rows[halves == 1 + union].groupby(point)
    logs = by.steps.apply(lambda k: np.log(k.sort_values()[:trial]).mean()).unstack()
    bounds = np.log(by["last"].max().unstack())
    return pd.DataFrame(np.where(logs.isna(), bounds + 1j, logs), logs.index, logs.columns)


def levels(logs):
    """Mean ln K* by batch size, without each search's own level, so that a search missing
    somewhere shifts nothing; what only has a lower bound is the mean of a normal variable above
    it."""
    values = logs.to_numpy(complex)
    searched = ~np.isnan(values.real)
    met, bound = searched & (values.imag == 0), searched & (values.imag > 0)
    level, shift, spread = np.ma.masked_where(~met, values.real).mean(0).filled(np.nan), 0.0, 0.3
    for _ in range(60):
        expected = level + shift
        z = (values.real - expected) / spread
        beyond = expected + spread * normal.pdf(z) / normal.sf(z)
        filled = np.select([met, bound], [values.real, beyond], expected)
        level, shift = filled.mean(0), filled.mean(1, keepdims=True) - filled.mean()
        freedom = met.sum() - level.size - len(filled) + 1
        spread = np.sqrt(((values.real - level - shift)[met] ** 2).sum() / freedom)
    return level


def log_critical(sizes, means):
    """ln of c1 / c2 of the nearest c1 / B + c2."""
    x = np.log(np.asarray(sizes, float))

    def residuals(p):
        return p[0] + np.logaddexp(0, p[1] - x) - means

    starts = [[means.min(), bend] for bend in np.quantile(x, [0.2, 0.5, 0.8])]
    return min((least_squares(residuals, start) for start in starts), key=lambda fit: fit.cost).x[1]


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
    """The batch size at which a cost is least certain: its ratio of steps with its interval."""
    ends = jackknife(lambda a, b: levels(a) - levels(b), *paired(above, below))
    return ends[:, ends[1].argmin()]


@pytest.fixture(scope="module")
def book():
    """What the book prints: rows of curves, and groups of claims by key and name."""
    source = """
import json; from lib.claims import front, judge
groups = {key: {g.name: [g.effect, g.low, g.high, g.n, g.verdict] for g in claim.groups}
          for key, claim in judge().items()}
print(json.dumps([front.critical().to_dict("records"), groups]))
"""
    command = [sys.executable, "-c", source]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    curves, claims = json.loads(run.stdout)
    keys = "workload algorithm pruning sparsity".split()
    return {tuple(curve[key] for key in keys): curve for curve in curves}, claims


def is_union(book, algorithm, sparsity=0.0, workload=DIGITS[1]):
    key = (workload, algorithm, "connection-sensitivity", sparsity)
    return book[0][key]["range"] == "whole"


CURVES = [(DIGITS, "momentum", 0.0), (DIGITS, "sgd", 0.9), (FASHION, "sgd", 0.0)]


@pytest.mark.parametrize("network, algorithm, sparsity", CURVES, ids=["momentum", "sgd-0.9", "sgd"])
def test_critical_batch_sizes_and_their_intervals_are_what_the_files_say(
    book, network, algorithm, sparsity
):
    printed = book[0][network[1], algorithm, "connection-sensitivity", sparsity]
    logs = table(*network, algorithm, sparsity, is_union(book, algorithm, sparsity, network[1]))
    assert printed["goal"] == network[2] and printed["replicates"] == len(logs)
    ends = [printed[f"critical{end}"] for end in ("", "_low", "_high")]
    np.testing.assert_allclose(ends, jackknife(critical, logs), rtol=0.02)


VERDICTS = {"L4": 0.8, "L3": 1.25}
RUNGS = ((0.05, 2), (0.06, 5), (0.08, 10), (0.1, 10))  # goals and hits


def over_rungs(algorithm, union):
    """Several trials and goals: the mean of ln C of pruned networks less that of dense ones, with
    its interval."""
    rungs = []
    for goal, trial in RUNGS:
        pair = (table(*DIGITS[:2], goal, algorithm, s, union, trial) for s in (0.9, 0.0))
        rungs += paired(*pair)
    splits = reduce(pd.Index.intersection, (logs.index for logs in rungs))
    signs = np.tile([1, -1], len(RUNGS)) / len(RUNGS)

    def mean(*tables):
        return signs @ [critical(logs) for logs in tables]

    return jackknife(mean, *(logs.loc[splits] for logs in rungs)), len(splits)


CLAIMS = [("L4", "momentum"), ("L4", "sgd"), ("L3", "sgd")]
NAMES = {"momentum": "MLP on digits, momentum", "sgd": "MLP on digits, SGD"}


@pytest.mark.parametrize("key, algorithm", CLAIMS)
def test_claims_on_pruned_networks_are_what_the_files_say(book, key, algorithm):
    union = is_union(book, algorithm)
    *printed, n, verdict = book[1][key][NAMES[algorithm]]
    if key == "L4":
        ends, searches = over_rungs(algorithm, union)
    else:
        sparse, dense = (table(*DIGITS, algorithm, s, union) for s in (0.9, 0.0))
        ends, searches = least_cost(sparse, dense), len(sparse.index.intersection(dense.index))
    tolerance = 0.05 if key == "L4" else 0.02
    np.testing.assert_allclose(printed, ends, rtol=tolerance)
    least = VERDICTS[key]
    assert verdict == ("yes" if ends[1] > least else "no" if ends[2] < least else "unclear")
    assert n == searches


def test_momentum_over_sgd_is_what_the_files_say(book):
    dense = table(*DIGITS, "momentum", 0.0, is_union(book, "momentum"))
    ratio = critical_ratio(dense, table(*DIGITS, "sgd", 0.0, False))
    names = (name for name in book[1]["S7"] if name.startswith(NAMES["momentum"]))
    np.testing.assert_allclose(book[1]["S7"][next(names)][:3], ratio, rtol=0.02)
