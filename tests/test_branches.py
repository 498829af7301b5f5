"""A run that branches is the run that was, and critical batch sizes and widths come out as they were planted."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn.functional import cross_entropy

from chapters.language_model import (
    branched,
    branching,
)
from chapters.language_model.branches import Branch
from lib.engine import lockstep
from lib.workloads import datasets, models

torch.set_num_threads(1)

BRANCH = Branch("digits-mlp", 64, "adam", 0.0, trials=100, trial=7, hits=5, max_steps=None, at=6, goal=1e-9, size=16, look=32,
                examples=96, orders=2)  # fmt: skip


@pytest.mark.parametrize(("power", "size"), [(0.5, 16), (1.0, 64)])
def test_branches_are_those_of_an_ordinary_loop(power, size):
    """PyTorch's own Adam, its rate changed on the way; of orders, each has its own."""
    branch = dataclasses.replace(BRANCH, power=power, size=size)
    found = branching.train(branch)
    data, drawn = datasets.load("digits"), {name: float(v[7]) for name, v in branch.cell.draw().items()}
    ends = []
    for order in range(2):
        net = models.fresh("mlp-64x2", 7)
        tuned = torch.optim.Adam(net.parameters(), drawn["learning_rate"], (drawn["beta1"], drawn["beta2"]))
        own = lockstep.batches(len(data.train), size, 1000 * (order + 1) + 6)
        trunk = lockstep.batches(len(data.train), 64, 0)
        for step in range(6 + 96 // size):
            if step == 6:
                tuned.param_groups[0]["lr"] *= (size / 64) ** power
            pick = next(trunk if step < 6 else own)
            tuned.zero_grad()
            cross_entropy(net(data.train.x[pick]), data.train.y[pick]).backward()
            tuned.step()
        with torch.no_grad():
            ends.append((net(data.validation.x).argmax(1) != data.validation.y).float().mean().item())
    last = found.groupby("order").tail(1)
    assert last.seen.tolist() == [96 // size * size] * 2 and last.cost.tolist() == pytest.approx(ends, abs=1.01 / 150)
    begins = found[found.seen == 0].cost
    assert begins.nunique() == 1 and len(begins) == 2 and (found.groupby("order").seen.diff().dropna() >= min(32, size)).all()


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [("size", 2000, "a whole number from 1 to 1350"), ("power", 1.5, r"a number in \[0, 1\]")],
)
def test_a_branch_that_cannot_be_is_refused(field, value, allowed):
    with pytest.raises(ValueError, match=f"{field}: {value} is not allowed; it must be {allowed}"):
        dataclasses.replace(BRANCH, **{field: value})


def checks(criticals, best=None, least=1000.0, noise=0.0, base=16, sizes=(4, 16, 64, 256), orders=3):
    """Made-up branches that take least (1 + B / critical) sequences to the goal 2, by point; best: factor of the other rate."""
    random, rows = np.random.default_rng(0), []
    for at, critical in criticals.items():
        for size in sizes:
            for power in (0.5, 0.0) if best and size > base else (0.5,):
                for order in range(orders):
                    took = least * (1 + size / critical) * (1 if power else best) * math.exp(noise * random.standard_normal())
                    for part in (0.0, 0.5, 1.0):
                        rows.append({"at": at, "goal": 2.0, "size": size, "power": power, "order": order, "seen": part * took,
                                     "cost": 3 - part, "batch_size": base})  # fmt: skip
    return pd.DataFrame(rows)


def test_critical_batch_sizes_of_branches_are_found_again():
    known = branched.arms(branched.to_goal(checks({50: 20.0, 200: 60.0, 800: 60.0})), 16)
    found = branched.critical(known[branched.RULE])
    assert list(known) == [branched.RULE] and np.allclose(found[["critical", "low", "high"]].T, [20, 60, 60], rtol=1e-4)
    rises, stays = (branched.growth(found.iloc[i], found.iloc[i + 1]) for i in (0, 1))
    assert np.exp([rises.value, stays.value]) == pytest.approx([3, 1], rel=1e-3) and rises.n == 3 and found.decided.all()
    partial = checks({50: 20.0, 200: 60.0})
    partial.loc[(partial["size"] == 4) & (partial["at"] == 50), "seen"] *= 3  # off the line, at a size that 200 has not
    whole = partial[(partial["size"] > 4) | (partial["at"] == 50)]
    assert np.allclose(branched.critical(branched.to_goal(whole)).critical, [20, 60], rtol=1e-4)


def test_scatter_between_orders_widens_intervals_about_what_was_planted():
    found = branched.critical(branched.to_goal(checks({50: 20.0, 200: 60.0}, noise=0.1, orders=20)))
    assert (found.low < found.critical).all() and (found.critical < found.high).all() and found.orders.tolist() == [20, 20]
    assert found.critical.tolist() == pytest.approx([20, 60], rel=0.2)
    ratio, low, high = branched.growth(found.iloc[0], found.iloc[1]).row().values()
    assert low < ratio < high and ratio == pytest.approx(3, rel=0.3)
    assert ratio == pytest.approx(found.critical[1] / found.critical[0])
    few = branched.critical(branched.to_goal(checks({50: 20.0}, noise=0.1)))
    logs = few.effect[0].value, few.effect[0].error
    assert few.high[0] == pytest.approx(math.exp(logs[0] + 2.919986 * logs[1]), rel=1e-5), "Student's t of two degrees"


def widths(criticals):
    """Made-up searches of one trial at two batch sizes, by workload."""
    rows = [{"workload": name, "algorithm": "adam", "pruning": "connection-sensitivity", "sparsity": 0.0, "batch_size": b,
             "trials": 1, "replicate": 0, "split": 0, "stop": "goal", "hits": 1, "checks": "geometric", "precision": None,
             "space": None, "label_smoothing": 0.0, "goal": 1.9, "status": "complete", "last_step": 9e9,
             **{column: 300 * (1 + critical / b) for column in ("steps", "steps@1.9")}}
            for name, critical in criticals.items() for b in (16, 256)]  # fmt: skip
    return pd.DataFrame(rows)
