"""Early rejection decides as the full evaluation does, whatever a task counts, and a task is added from one file."""

import importlib.util
import math
import textwrap

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lib.engine import batched, check_steps, flattening, lockstep, sequential, validation
from lib.measuring import one_cell
from lib.records import store
from lib.studies.cells import Cell
from lib.workloads import catalogue, datasets, losses, models, tasks
from lib.workloads.datasets import Split
from lib.workloads.tasks import TASKS

torch.set_num_threads(1)

CELL = Cell("digits-mlp-nats", 64, trials=16, hits=2, max_steps=160, replicate=2)
KINDS = [sequential.SequentialExecutor, batched.BatchedExecutor]


def momentum_step(w: torch.Tensor, v: torch.Tensor, g: torch.Tensor, drawn: dict[str, torch.Tensor]) -> None:
    """One step of momentum in place, written anew; of plain SGD, where none is drawn."""
    torch.addcmul(g, v, drawn.get("momentum", torch.zeros(1)), out=v)
    w.addcmul_(v, drawn["learning_rate"], value=-1)


def trained(steps: int, cell: Cell = CELL) -> torch.Tensor:
    """The weights [T, P] of the cell's trials after so many steps."""
    trials, data, executor = one_cell.start(cell), datasets.load("digits").train, one_cell.executor(cell)
    w, v = trials.w.clone(), torch.zeros_like(trials.w)
    for pick, _ in zip(lockstep.batches(len(data), cell.batch_size, cell.replicate), range(steps)):
        _, g, _ = executor.gradients(w, executor.inputs(data.x[pick]), data.y[pick])
        momentum_step(w, v, g, trials.drawn)
    return w


def nats_alone(executor, w: torch.Tensor, split: Split) -> list[float]:
    """The mean cross-entropy of every trial by itself, as PyTorch has it, in double precision."""
    x = executor.inputs(split.x)
    return [F.cross_entropy(executor.logits(row[None], x)[0].double(), split.y).item() for row in w]


def first_checks(cell: Cell, cost) -> np.ndarray:
    """The published protocol, written anew: at which check each trial [T] first met the hardest goal; cost: its mean by weights."""
    trials, data, executor = one_cell.start(cell), datasets.load("digits").train, one_cell.executor(cell)
    x, w, v = executor.inputs(data.x), trials.w.clone(), torch.zeros_like(trials.w)
    steps, check = np.full(cell.trials, np.nan), 1
    order = lockstep.batches(len(data), cell.batch_size, cell.replicate)
    for step in range(1, cell.max_steps + 1):
        pick = next(order)
        _, g, _ = executor.gradients(w, x[pick], data.y[pick], trials.mask)
        momentum_step(w, v, g, trials.drawn)
        if step == check:
            check = check_steps.next_check(step, "geometric")
            steps[np.isnan(steps) & (np.array(cost(executor, w)) <= cell.work.goal)] = step
    return steps


@pytest.mark.parametrize("classes", [2, 10])
def test_costs_and_losses_are_those_of_pytorch(classes):
    logits, y = 5 * torch.randn(3, 8, classes), torch.randint(classes, (8,))
    nats = F.cross_entropy(logits.double().flatten(0, 1), y.repeat(3), reduction="none").view(3, 8)
    cost = TASKS["cross-entropy"].cost(logits, y)
    assert cost.dtype == torch.float64 and (cost >= 0).all() and torch.allclose(cost, nats)
    assert torch.equal(TASKS["classification"].cost(logits, y), logits.argmax(2) != y)
    for task in TASKS.values():
        assert task.loss(logits[0], y).item() == pytest.approx(F.cross_entropy(logits[0], y).item())


def test_a_cost_is_never_below_zero_however_sure_the_answer():
    logits = torch.tensor([[[0.0, 1e4], [0.0, 40.0]]])
    assert (TASKS["cross-entropy"].cost(logits, torch.tensor([1, 1])) >= 0).all()
    assert TASKS["cross-entropy"].cost(logits, torch.tensor([0, 1]))[0, 0] == 1e4


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("parts", [1, 2])
def test_several_targets_an_example_are_so_many_answers(parts, smoothing):
    """[B, L] targets, as of a language model: losses, derivatives and costs are means over places."""
    logits, y, task = torch.randn(3, 4, 5, 7), torch.randint(7, (4, 5)), TASKS["cross-entropy"]
    means, slopes = task.derivative(logits, y, smoothing, parts)
    for p, rows in enumerate(torch.arange(4).chunk(parts)):
        for t in range(3):
            leaf = logits[t, rows].clone().requires_grad_()
            loss = F.cross_entropy(leaf.flatten(0, 1), y[rows].flatten(), label_smoothing=smoothing)
            assert task.loss(logits[t, rows], y[rows], smoothing).item() == pytest.approx(loss.item())
            loss.backward()
            assert means[p, t].item() == pytest.approx(loss.item(), abs=1e-6)
            assert torch.allclose(slopes[t, rows], leaf.grad, atol=1e-7)
    cost = task.cost(logits, y)
    assert cost.shape == (3, 4)
    assert cost[1, 2].item() == pytest.approx(F.cross_entropy(logits[1, 2], y[2]).item(), rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [0, 20, 60])
def test_early_rejection_decides_as_the_full_evaluation(kind, steps):
    split, w = datasets.load("digits").validation, trained(steps)
    executor = kind(models.build("mlp-64x2"), task=TASKS["cross-entropy"])
    full = np.array(nats_alone(executor, w, split))
    goals = tuple(sorted(float(g) for g in np.quantile(full[np.isfinite(full)], [0.01, 0.2, 0.5, 0.8]) + 1e-4))
    judge, read = validation.Validation(executor, split, goals), []
    logits = executor.logits
    executor.logits = lambda w, x: read.append(len(w) * len(x)) or logits(w, x)
    for _ in range(3):  # the order of the examples changes with every check
        for allowed in (*judge.limits, None):
            total, whole = judge.costs(w, None if allowed is None else allowed.expand(len(w)))
            most = math.inf if allowed is None else allowed.item() / len(split)
            met = (whole[:, None] & (total[:, None] <= judge.limits)).numpy()
            for n, goal in enumerate(goals):
                if goal <= most:
                    assert met[:, n].tolist() == (full <= goal).tolist()
            assert whole[torch.from_numpy(full) <= most].all()
            assert np.allclose(total[whole] / len(split), full[whole.numpy()], rtol=1e-5)
    early = sum(read) < 0.9 * 3 * 5 * len(w) * len(split)
    assert early or steps < 60, "nothing was rejected early"  # untrained networks are all equally poor


@pytest.mark.parametrize("kind", KINDS)
def test_a_goal_that_a_trial_meets_exactly_is_met_and_one_next_to_it_is_not(kind):
    """Sums in another order, or asked in other company, differ in their last digits (here, larger): decisions do not."""
    split, w = datasets.load("digits").validation, trained(30)
    executor = kind(models.build("mlp-64x2"), task=TASKS["cross-entropy"])
    logits = executor.logits
    executor.logits = lambda w, x: logits(w, x) * (1 if (len(w), len(x)) == (1, len(split)) else 1 + 4e-6 * (len(x) % 2 - 0.5))
    for row in range(len(w)):
        alone = validation.Validation(executor, split).alone(w[row]).item() / len(split)
        if not math.isfinite(alone):
            continue
        for goal, expected in ((alone, True), (alone * (1 - 1e-8) - 1e-10, False)):
            judge = validation.Validation(executor, split, (goal,))
            for allowed in (None, judge.limits.expand(len(w))) * 2:
                total, whole = judge.costs(w, allowed)
                assert bool(whole[row] and total[row] <= judge.limits[0]) is expected


def test_answers_that_are_no_numbers_meet_no_goal_and_do_not_spoil_the_order():
    split, w = datasets.load("digits").validation, trained(20)
    w[3] = math.nan
    executor = batched.BatchedExecutor(models.build("mlp-64x2"), task=TASKS["cross-entropy"])
    judge = validation.Validation(executor, split, (1.0,))
    total, whole = judge.costs(w, judge.limits.expand(len(w)))
    assert not (whole & (total <= judge.limits))[3] and judge.missed.isfinite().all()
    total, whole = judge.costs(w)
    assert not total[3] <= judge.limits[0] and (total[:3] / len(split)).isfinite().all()


@pytest.mark.parametrize("cell", [CELL, Cell("digits-mlp-nats", 16, "sgd", 0.5, trials=8, hits=2, max_steps=160)])
def test_lock_step_equals_exhaustive_search(cell, monkeypatch):
    if cell.sparsity:  # a goal that so few trials meet so soon
        easier = catalogue.WORKLOADS["digits-mlp-nats"].__class__
        eased = {**vars(catalogue.WORKLOADS["digits-mlp-nats"]), "goals": (0.3, 0.5)}
        monkeypatch.setitem(catalogue.WORKLOADS, "digits-mlp-nats", easier(**eased))
    split = datasets.load("digits").validation
    every = first_checks(cell, lambda executor, w: nats_alone(executor, w, split))
    found = one_cell.train_cell(cell).first[:, 0]
    assert np.array_equal(np.sort(every)[: cell.hits], np.sort(found)[: cell.hits], equal_nan=True)
    assert not np.isnan(every).all(), "a goal that nobody reaches tests nothing"


def test_early_rejection_and_dead_trials_change_nothing():
    a, b = (one_cell.train_cell(CELL, **how) for how in ({}, {"reject_early": False, "drop_dead": False}))
    assert np.array_equal(a.first, b.first, equal_nan=True) and a.steps == b.steps


def test_only_another_task_than_the_usual_is_part_of_a_cells_definition():
    assert CELL.definition()["task"] == "cross-entropy"
    assert "task" not in Cell("digits-mlp", 64).definition()


def test_an_unknown_task_is_refused():
    with pytest.raises(ValueError, match="task: 'ranking' is not allowed; it must be one of classification, cross-entropy"):
        catalogue.Workload("x", "x", "digits", "mlp-64x2", (0.1,), task="ranking")


def test_goals_are_written_with_their_unit():
    assert [TASKS[k].written(0.35) for k in ("classification", "cross-entropy")] == ["35 %", "0.35 nats"]


FILE = """
from lib.workloads.tasks import TASKS, CrossEntropy

class Brier(CrossEntropy):
    '''Squared distance of the probabilities from the right answer.'''

    unit, measure, below = "squares", "validation Brier score", 2.0

    def cost(self, logits, targets):
        wrong = logits.double().softmax(-1)
        wrong[..., range(len(targets)), targets] -= 1
        return wrong.square().sum(-1)

    def written(self, goal):
        return f"a Brier score of {goal:g}"

TASKS["brier"] = Brier()
"""


def test_a_task_from_a_file_is_measured_without_a_change_to_lib(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "TASKS", TASKS)
    (tmp_path / "brier.py").write_text(textwrap.dedent(FILE), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("brier", tmp_path / "brier.py")
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
        mine = catalogue.Workload("mine", "Mine", "digits", "mlp-64x2", (0.12, 0.2), max_steps=500, batched_below=512,
                                  task="brier")  # fmt: skip
        monkeypatch.setitem(catalogue.WORKLOADS, "mine", mine)
        cell, split = Cell("mine", 64, trials=8, hits=1, max_steps=150), datasets.load("digits").validation

        def brier(executor, w):
            shares = executor.logits(w, executor.inputs(split.x)).double().softmax(2)
            return (shares - F.one_hot(split.y, 10)).square().sum(2).mean(1).numpy()

        every = first_checks(cell, brier)
        about, table = store.read(one_cell.measure(cell, tmp_path / "data"), cell)
    finally:
        TASKS.pop("brier", None)
    assert about["cell"]["workload"] == "mine" and table["steps@0.12"].min() == np.nanmin(every)


class Words(nn.Module):
    """An embedding of indices, normalised, and a class for each."""

    def __init__(self):
        super().__init__()
        self.rows, self.norm, self.last = nn.Embedding(300, 6, padding_idx=2), nn.LayerNorm(6), nn.Linear(6, 5)

    def forward(self, x):
        return self.last(self.norm(self.rows(x)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_indices_stay_what_they_are_and_places_are_answers(dtype):
    """bfloat16 has no 299; logits are [T, B, L, classes]."""
    x, y = torch.randint(257, 300, (12, 4)), torch.randint(5, (12, 4))
    net = models.initialise(Words(), 0)
    loop = sequential.SequentialExecutor(models.initialise(Words(), 1), dtype, task=TASKS["cross-entropy"])
    assert torch.equal(loop.inputs(x), x) and loop.inputs(x).dtype == torch.int64
    w = flattening.flatten(net)[None]
    found, gradients, alive = loop.gradients(w, loop.inputs(x), y)
    loss = F.cross_entropy(net(x).flatten(0, 1), y.flatten())
    loss.backward()
    assert found.item() == pytest.approx(loss.item(), rel=1e-5 if dtype == torch.float32 else 0.02) and alive.all()
    slope = torch.cat([p.grad.flatten() for p in net.parameters()])
    assert F.cosine_similarity(gradients[0], slope, 0) > (0.99999 if dtype == torch.float32 else 0.99)
    judge = validation.Validation(loop, Split(x, y), (2.0,))
    total, whole = judge.costs(w)
    assert whole.all() and total.item() / 12 == pytest.approx(loss.item(), rel=0.02)


def test_a_trial_without_features_is_alive_while_a_gain_can_bring_them_back():
    """Gains of zero: all features are off, and the gains have a gradient; then the last layer's weights are zero, too."""
    net = models.initialise(Words(), 0)
    with torch.no_grad():
        net.norm.weight.zero_()
        net.last.bias.copy_(torch.arange(5.0))
    x, y = torch.randint(300, (6, 4)), torch.randint(5, (6, 4))
    executor, w = sequential.SequentialExecutor(Words(), task=TASKS["cross-entropy"]), flattening.flatten(net)[None]
    _, found, alive = executor.gradients(w, x, y)
    F.cross_entropy(net(x).flatten(0, 1), y.flatten()).backward()
    assert alive[0] and torch.allclose(found[0], torch.cat([p.grad.flatten() for p in net.parameters()]), atol=1e-6)
    _, found, alive = executor.gradients(torch.cat([0 * w[:, :-5], w[:, -5:]], 1), x, y)
    assert not alive[0] and found[0, -5:].any() and not found[0, :-5].any()


OWN = """
import torch
from torch import nn
from lib.own import Own

def words():
    x = torch.randint(290, 300, (180, 3), generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] > 294).long()
    return Own(model=lambda: nn.Sequential(nn.Embedding(300, 8), nn.Flatten(), nn.Linear(24, 2)), precision="bfloat16",
               train=(x[:120], y[:120]), validation=(x[120:], y[120:]), goals=(0.05, 0.5), max_steps=100, task="cross-entropy")
"""


def test_a_readers_own_workload_names_its_task_and_may_have_indices(tmp_path):
    (tmp_path / "mine.py").write_text(OWN, encoding="utf-8")
    cell = Cell(f"{tmp_path / 'mine.py'}:words", 16, "sgd", trials=4, hits=4)
    table = store.read(one_cell.measure(cell, tmp_path / "data"), cell)[1]
    assert cell.work.task == "cross-entropy" and datasets.load(cell.workload).train.x.dtype == torch.int64
    assert table["steps@0.5"].notna().any() and table.best_error.min() < 0.5
    for was, now, says in (
        ('task="cross-entropy"', 'task="ranking"', "task: 'ranking' is not allowed; it must be one of classification"),
        ("goals=(0.05, 0.5)", "goals=(0.05, 0.6)", None),
        ("goals=(0.05, 0.5)", "goals=(0.05, 1.5)", r"goals: 1.5 is not allowed; it must be below 0.68.*cost as every answer"),
        ("goals=(0.05, 0.5)", "goals=(-1.0,)", r"goals: \(-1.0,\) is not allowed; it must be a tuple of errors in \[0, inf\)"),
    ):
        (tmp_path / "mine.py").write_text(OWN.replace(was, now), encoding="utf-8")
        if says is None:
            assert catalogue.workload(cell.workload).goals == (0.05, 0.6)
            continue
        with pytest.raises(ValueError, match=says):
            catalogue.workload(cell.workload)


def test_smoothing_is_spread_over_all_classes():
    one_hot = F.one_hot(torch.tensor([2, 0]), 4)
    assert losses.smooth(one_hot, 0.1)[0].tolist() == pytest.approx([0.025, 0.025, 0.925, 0.025])
