"""Compressors side by side, on a tiny study."""

import numpy as np
import pandas as pd
import pytest

from chapters.messages import message_results
from chapters.messages.claims import groups
from lib import claims
from lib.claims.claim import REGISTRY, judged
from lib.engine.check_steps import last_check
from lib.measuring import sweeps
from lib.messages.settings import Messages
from lib.studies.cells import Cell
from lib.studies.study import Study


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    kinds = [Messages(4, "dense", 1.0, False), Messages(4, "top-k", 0.05), Messages(4, "rand-k", 0.05, False)]
    cells = tuple(
        Cell("digits-mlp", 64, trials=3, stop="budget", max_steps=64, messages=m, replicate=r)
        for m in kinds
        for r in (0, 1)
    )
    return sweeps.results(Study("t", "t", cells), "full", folder=tmp_path_factory.mktemp("records"))


@pytest.fixture(scope="module")
def found(trials):
    return message_results.best(trials)


def test_what_was_sent_is_what_was_asked_for(found):
    assert found[found.method != "Gaussian-k"].over.to_numpy() == pytest.approx(1)
    last = found[found.budget == 64].groupby("method").megabytes.first()
    steps = last_check(64)
    assert 60 < steps <= 64
    assert last["dense"] == pytest.approx(steps * 4 * 8970 / 1e6)
    assert last["Top-k"] == pytest.approx(steps * 8 * 448 / 1e6)


def test_gaps_pair_runs_of_one_seed(found):
    gap = message_results.gaps(found, "Top-k")
    assert sorted(gap.replicate) == [0, 1]
    ends = found[found.budget == 64].set_index(["method", "replicate"]).test
    for _, row in gap.iterrows():
        assert row.gap == pytest.approx(100 * (ends["Top-k", row.replicate] - ends["dense", row.replicate]))
    assert (message_results.gaps(found, "Rand-k").gap > message_results.gaps(found, "Top-k").gap).all()
    assert message_results.gaps(found, "Gaussian-k").empty


def planted(losses, name="mnist-lenet-5", **more):
    """Points lost by Top-k at three seeds, trained for twice d/k steps."""
    return pd.DataFrame({"gap": losses, "workload": name, "replicate": range(len(losses)), "density": 0.001, "budget": 2048,
                         "method": "Top-k", "rival": "dense", "edge": False, "edge_rival": False} | more)  # fmt: skip


def verdict(key, gap):
    return judged(REGISTRY.claims[key], groups(gap)).verdict


def test_claims_judge_planted_gaps_by_network():
    little, much = planted([0.1, 0.2, 0.0]), planted([5.0, 5.1, 4.9])
    other = {"workload": "fashion-mnist-fnn-3"}
    assert verdict("T4", little) == claims.REPRODUCED and verdict("T4", much) == claims.CONTRADICTED
    assert verdict("T4", pd.concat([little, much.assign(**other)])) == claims.PART
    assert verdict("T4", little.assign(**other)) == f"{claims.STAND_INS}: for"
    assert verdict("T4b", much) == claims.REPRODUCED and verdict("T4b", little) == claims.CONTRADICTED
    wide = planted([0.5, 0.9, 0.1])  # below one by 1.645 standard errors, and not by Student's 2.92
    assert wide.gap.mean() + 1.645 * wide.gap.sem() < 1 and verdict("T4", wide) == claims.OPEN
    (only,) = groups(planted([0.1]))
    assert only.n == 1 and only.high == np.inf and verdict("T4", planted([0.1])) == claims.OPEN


def test_planted_costs_multiply():
    rows = [
        {"workload": w, "batch_size": b, "goal": 0.1, "sparsity": s, "density": d,
         "steps": (100 if w == "one" else 700) * (1 + 2 * (s > 0)) * (1 + 4 * (d < 1))}
        for w in ("one", "other")
        for b in (16, 64)
        for s in (0.0, 0.9)
        for d in (1.0, 0.01)
    ]  # fmt: skip
    curves = pd.DataFrame(rows)
    costs = message_results.joint_costs(curves)
    assert len(costs) == 4 and costs.both.to_numpy() == pytest.approx(15) and costs.over.to_numpy() == pytest.approx(1)
    assert costs.total.to_numpy() == pytest.approx(7) and costs.beyond.to_numpy() == pytest.approx(15 / 7)
    alone = (curves.sparsity == 0) & (curves.density == 0.01)
    assert message_results.joint_costs(curves[~alone]).empty
    assert message_results.joint_costs(message_results.joint_curves(pd.DataFrame())).empty
