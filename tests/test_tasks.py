"""Early rejection decides as the full evaluation does, whatever a task counts."""

import dataclasses
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lib.engine import batched, sequential, validation
from lib.studies.search import Search
from lib.workloads import datasets, models
from lib.workloads.datasets import Split
from lib.workloads.tasks import TASKS
from tests.conftest import exhaustive

torch.set_num_threads(1)

CELL = Search("digits-mlp-nats", 64, trials=16, hits=2, max_steps=160, replicate=2)


def trained(steps: int) -> torch.Tensor:
    """The weights [T, P] of the cell's trials after so many steps."""
    cell = dataclasses.replace(CELL, max_steps=steps)
    return exhaustive(cell, lambda executor, w: np.zeros((cell.trials, 1), bool))[1]


def nats_alone(executor, w: torch.Tensor, split: Split) -> list[float]:
    """The mean cross-entropy of every trial by itself, as PyTorch has it, in double precision."""
    x = executor.inputs(split.x)
    return [F.cross_entropy(executor.logits(row[None], x)[0].double(), split.y).item() for row in w]


@pytest.mark.parametrize("kind", [sequential.SequentialExecutor, batched.BatchedExecutor])
def test_early_rejection_decides_as_the_full_evaluation(kind):
    steps = 60
    split, w = datasets.load("digits").validation, trained(steps)
    executor = kind(models.build("mlp-64x2"), task=TASKS["cross-entropy"])
    full = np.array(nats_alone(executor, w, split))
    quantiles = np.quantile(full[np.isfinite(full)], [0.01, 0.2, 0.5, 0.8])
    goals = tuple(float(goal) for goal in quantiles + 1e-4)
    judge, read = validation.Validation(executor, split, goals), []
    logits = executor.logits
    executor.logits = lambda w, x: read.append(len(w) * len(x)) or logits(w, x)
    for _ in range(3):  # the order of the examples changes with every check
        for allowed in (*judge.limits, None):
            total, read_all = judge.costs(w, None if allowed is None else allowed.expand(len(w)))
            most = math.inf if allowed is None else allowed.item() / len(split)
            met = (read_all[:, None] & (total[:, None] <= judge.limits)).numpy()
            for n, goal in enumerate(goals):
                if goal <= most:
                    assert met[:, n].tolist() == (full <= goal).tolist()
            assert read_all[torch.from_numpy(full) <= most].all()
            assert np.allclose(total[read_all] / len(split), full[read_all.numpy()], rtol=1e-5)
    assert sum(read) < 0.9 * 3 * 5 * len(w) * len(split), "nothing was rejected early"


def test_a_goal_that_a_trial_meets_exactly_is_met_and_one_next_to_it_is_not():
    """Sums in another order, or with other trials, differ in their last digits (here, in
    larger ones): decisions do not.
    """
    kind = batched.BatchedExecutor
    split, w = datasets.load("digits").validation, trained(30)
    executor = kind(models.build("mlp-64x2"), task=TASKS["cross-entropy"])
    logits = executor.logits

    def inexact(w, x):
        alone = (len(w), len(x)) == (1, len(split))
        return logits(w, x) * (1 if alone else 1 + 4e-6 * (len(x) % 2 - 0.5))

    executor.logits = inexact
    for row in range(len(w)):
        alone = validation.Validation(executor, split).alone(w[row]).item() / len(split)
        if not math.isfinite(alone):
            continue
        for goal, expected in ((alone, True), (alone * (1 - 1e-8) - 1e-10, False)):
            judge = validation.Validation(executor, split, (goal,))
            for allowed in (None, judge.limits.expand(len(w))) * 2:
                total, read_all = judge.costs(w, allowed)
                assert bool(read_all[row] and total[row] <= judge.limits[0]) is expected
