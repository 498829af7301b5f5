"""Low-rank adapters: where the answer is known, and against autograd."""

import os

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional

from chapters.disputed import lora, texts
from chapters.disputed import lora_experiments as experiments
from chapters.disputed.adapters import ALPHA, Adapted, trained
from chapters.disputed.lora_experiments import FULL, GOALS, MOST_STEPS, RANKS, Search
from lib.analysis import scaling
from lib.claims import NO, YES
from lib.engine.batched import BatchedExecutor
from lib.engine.flattening import flatten, layers, outputs
from lib.methods import METHODS
from lib.workloads import datasets, models
from lib.workloads.tasks import TASKS

TASK = TASKS["cross-entropy"]
with_text = pytest.mark.skipif(
    datasets.VARIABLE not in os.environ,
    reason=f"{experiments.TEXT}: set {datasets.VARIABLE} to a folder that holds it",
)


def network():
    return models.build("decoder-32x2")


@pytest.fixture
def base():
    return flatten(models.fresh("decoder-32x2", 3))


@pytest.fixture
def batch():
    return torch.randint(65, (2, 5, 12), generator=torch.Generator().manual_seed(0))


def adapted(base, rank):
    """An executor and two trials' factors at their start."""
    executor = Adapted(network(), base, rank, task=TASK)
    return executor, executor.start([1, 2])


@pytest.mark.parametrize("rank", [1, 64])
def test_training_begins_at_the_base_to_the_bit(rank, base, batch):
    executor, w = adapted(base, rank)
    logits = BatchedExecutor(network(), task=TASK).logits(base.repeat(2, 1), batch[0])
    assert torch.equal(executor.logits(w, batch[0]), logits)
    assert not torch.equal(w[0], w[1]) and torch.equal(executor.whole(w)[1], base)


@pytest.mark.parametrize("rank", [1, 5])
def test_gradients_are_those_of_autograd(rank, base, batch):
    executor, w = adapted(base, rank)
    w += 0.1 * torch.randn(w.shape, generator=torch.Generator().manual_seed(rank))
    losses, g, _ = executor.gradients(w, *batch)
    for row in range(2):
        factors = w[row].clone().requires_grad_()
        parts = list(base.split([p.numel() for p in executor.module.parameters()]))
        places = {layer.name: place for place, layer in enumerate(layers(executor.module))}
        for matrix, b, a in executor.pairs(factors[None]):
            parts[places[matrix.name]] = (
                parts[places[matrix.name]] + (ALPHA / rank * b[0] @ a[0]).flatten()
            )
        logits = outputs(executor.module, torch.cat(parts), batch[0])
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[1].flatten())
        (expected,) = torch.autograd.grad(loss, factors)
        torch.testing.assert_close(g[row], expected, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(losses[row], loss.detach())


@pytest.mark.parametrize("rank", [1, 4])
def test_a_change_has_at_most_its_rank_and_all_else_stays(rank, base, batch):
    executor, w = adapted(base, rank)
    rates = {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999}
    drawn = {name: torch.full((2, 1), value) for name, value in rates.items()}
    state = METHODS["adam"].begin(w.clone(), ())
    for k in range(1, 11):
        METHODS["adam"].step(w, executor.gradients(w, *batch)[1], state, drawn, k, ())
    change = executor.whole(w) - base
    for matrix in executor.matrices:
        values = torch.linalg.svdvals(change[:, matrix.where].unflatten(1, matrix.shape))
        assert (values[:, rank - 1] > 0.01).all() and (values[:, rank:] < 1e-5).all()
    assert not change[:, trained(network()) == 0].any()


@with_text
def test_the_text_is_in_capitals_and_the_base_knows_the_other_half():
    text, symbols = datasets.characters(experiments.TEXT), np.array(texts.SYMBOLS)
    written, capitals = ("".join(symbols[ids]) for ids in (text, texts.capitals(text)))
    assert capitals == written.upper() and written.startswith("First Citizen:")
    training, unseen = texts.other(1)
    assert len(unseen) == experiments.WINDOWS and len(training) > 7000
    executor = BatchedExecutor(models.build(experiments.MODEL), task=TASK)
    small = torch.from_numpy(text[len(text) // 2 :][:13000]).unfold(0, 65, 65)
    pairs = (small[:, :-1], small[:, 1:]), (unseen.x, unseen.y)
    nats = [TASK.cost(executor.logits(texts.base()[None], x), y).mean() for x, y in pairs]
    assert nats[0] < 1.8 and nats[1] > 2 * GOALS[0]


@with_text
def test_the_base_is_trained_as_it_is_told():
    """Its first steps; all of them take minutes."""
    w = texts.trained(2)
    assert torch.equal(w, texts.trained(2)) and w.shape == texts.base().shape
    change = (w - flatten(models.fresh(experiments.MODEL, 0))).abs()
    assert 0.5 * texts.RATE < change.max() <= 2.01 * texts.RATE


def test_weights_of_another_base_are_refused(monkeypatch):
    monkeypatch.setattr(texts, "DIGEST", "0" * 16)
    with pytest.raises(ValueError, match="base.npz"):
        texts.base()


@with_text
@pytest.mark.parametrize("rank", [FULL, 4])
def test_a_search_is_the_same_again(rank, monkeypatch):
    monkeypatch.setitem(MOST_STEPS, 4, 12)
    monkeypatch.setattr(experiments, "GOALS", (2.4, 5.0))
    search = Search(rank, 4, 9, trials=3)
    rows = search.measure()
    assert rows.equals(search.measure()) and rows.goal.tolist() == [2.4, 5.0]
    assert (
        np.isnan(rows.steps[0])
        and 1 <= rows.steps[1] <= 12
        and 5e-4 <= rows.learning_rate[1] <= 5e-2
    )


def planted(bends):
    """Searches with these critical batch sizes, in examples, by rank."""
    rows = []
    for search in experiments.planned():
        scatter = {1: 0.97, 2: 1.0, 3: 1.03}[search.replicate]
        steps = 20 * scatter * (1 + bends[search.rank] / search.batch_size)
        rows += [
            {**vars(search), "goal": goal, "steps": steps, "learning_rate": 0.01}
            for goal in GOALS
        ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("bends", "verdict"), [((40, 20, 20, 20, 20), YES), ((20, 20, 30, 30, 40), NO)]
)
def test_planted_searches_are_judged_as_they_are(bends, verdict, judge):
    trials = planted(dict(zip((FULL, *RANKS), bends)))
    for claim, rows in zip(judge(trials, "C1", "C2"), (4, 2)):
        assert [group.verdict for group in claim.groups] == [verdict] * rows
    curves = lora.curves(lora.measured(trials))
    for rank, bend in zip((FULL, *RANKS), bends):
        assert scaling.critical(curves[rank]).value == pytest.approx(np.log(bend), abs=0.02)
