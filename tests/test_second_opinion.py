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
    """K* of every search: space, replicate, split, batch_size, steps (NaN if missed)."""
    usual = {**PLAIN, "algorithm": algorithm, "sparsity": sparsity}
    rows = []
    for cell, text in records(ROOT / "data" / data_set / workload):
        if all(cell.get(name, value) == value for name, value in usual.items()):
            best = pd.read_csv(io.StringIO(text), low_memory=False)[f"steps@{goal:g}"].min()
            rows.append((cell.get("space"), cell["replicate"], cell.get("split", 0), cell["batch_size"], best))
    found = pd.DataFrame(rows, columns=["space", "replicate", "split", "batch_size", "steps"])
    return found.groupby(["space", "replicate", "split", "batch_size"], dropna=False).steps.min().reset_index()


def table(data_set, workload, goal, algorithm, sparsity, whole):
    """ln K* [searches, batch sizes] on splits of their own, one search each; whole: the better of both ranges of momentum."""
    found = searches(data_set, workload, algorithm, sparsity, goal)
    first = found.groupby("split").replicate.transform("min")
    found = found[found.replicate == first]
    halves = [found[found.space.isna()], found[found.space == "low-momentum"]]
    wide = [half.pivot(index="split", columns="batch_size", values="steps") for half in halves]
    if not whole:
        return np.log(wide[0])
    splits, sizes = (a.intersection(b) for a, b in zip(*(w.axes for w in wide)))
    both = [w.loc[splits, sizes] for w in wide]
    return np.log(pd.DataFrame(np.fmin(*both), splits, sizes).where(both[0].notna() & both[1].notna()))


def levels(logs):
    """Mean ln K* by batch size, each search's own level apart, so that a search that is lacking somewhere shifts nothing."""
    values = logs.to_numpy()
    row, column = np.nonzero(~np.isnan(values))
    n, m = values.shape
    design = np.zeros((len(row) + 1, n + m))
    design[np.arange(len(row)), row], design[np.arange(len(row)), n + column] = 1, 1
    design[-1, :n] = 1  # the searches' own levels sum to zero
    return np.linalg.lstsq(design, np.append(values[row, column], 0), rcond=None)[0][n:]


def log_critical(sizes, means):
    """ln of the batch size at which c1 / B^p + c2 falls half as fast as 1/B; p = 1 for fewer than eight batch sizes."""
    x, free = np.log(np.asarray(sizes, float)), len(sizes) >= 8

    def off(p):
        exponent = p[2] if free else 1.0
        return p[0] + np.logaddexp(0, exponent * (p[1] - x)) - means

    starts = [[means.min(), bend, p][: 2 + free] for bend in np.quantile(x, [0.2, 0.5, 0.8]) for p in (0.8, 1.1)]
    low, high = ([-30, -30, 0.55][: 2 + free], [30, 30, 1.6][: 2 + free])
    best = min((least_squares(off, start, bounds=(low, high)) for start in starts), key=lambda fit: fit.cost).x
    p = best[2] if free else 1.0
    return best[1] + np.log(2 * p - 1) / p


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


@pytest.mark.parametrize("key, about, algorithm, name", [
    ("L4", DIGITS, "momentum", "MLP on digits, momentum"),
    ("L3", FASHION, "sgd", "FC-128×3 on Fashion-MNIST, easier goal, SGD"),
])  # fmt: skip
def test_claims_on_pruned_networks_are_what_the_files_say(book, key, about, algorithm, name):
    whole = book[0][about[1], algorithm, "connection-sensitivity", 0.0]["range"] == "whole"
    sparse, dense = (table(*about, algorithm, sparsity, whole) for sparsity in (0.9, 0.0))
    found = critical_ratio(sparse, dense) if key == "L4" else least_cost(sparse, dense)
    *printed, n, verdict = book[1][key][name]
    np.testing.assert_allclose(printed, found, rtol=0.02)
    least = {"L4": 0.8, "L3": 1.25}[key]
    assert verdict == ("for" if found[1] > least else "against" if found[2] < least else "not decided")
    assert n == len(sparse.index.intersection(dense.index))


def test_momentum_over_sgd_is_what_the_files_say(book):
    whole = book[0][DIGITS[1], "momentum", "connection-sensitivity", 0.0]["range"] == "whole"
    found = critical_ratio(table(*DIGITS, "momentum", 0.0, whole), table(*DIGITS, "sgd", 0.0, False))
    printed = next(group for name, group in book[1]["S7"].items() if name.startswith("MLP on digits, momentum"))
    np.testing.assert_allclose(printed[:3], found, rtol=0.02)
