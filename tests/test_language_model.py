"""A language model is trained on windows of a text that do not overlap its validation, with autograd's gradients."""

import dataclasses
import functools
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lib.engine import batched, flattening, sequential
from lib.measuring import one_search
from lib.studies.search import Search
from lib.workloads import catalogue, datasets, models, texts
from lib.workloads.models import Decoder
from lib.workloads.tasks import TASKS
from tests.conftest import exhaustive, read_to_the_end

torch.set_num_threads(1)

TASK = TASKS["cross-entropy"]
CORPUS = "tiny-shakespeare"


@pytest.fixture
def chain(monkeypatch):
    """A text of 24,000 characters in place of the corpus: nine times in ten the next one follows from the last."""
    random = np.random.default_rng(0)
    ids = random.integers(65, size=24_000)
    for place in range(1, len(ids)):
        if random.random() < 0.9:
            ids[place] = (2 * ids[place - 1] + 1) % 65
    monkeypatch.setattr(datasets, "characters", lambda name: ids)
    monkeypatch.setattr(texts, "examples", functools.partial(texts.examples, count=16))
    monkeypatch.setitem(texts.LENGTHS, CORPUS, len(ids))
    small = dataclasses.replace(catalogue.WORKLOADS["shakespeare"], model="decoder-32x2", goals=(2.5, 3.0, 3.5))
    monkeypatch.setitem(catalogue.WORKLOADS, "shakespeare", small)
    datasets.load.cache_clear()
    yield ids
    datasets.load.cache_clear()


def networks(trials=3, width=32):
    """Initialised decoders whose gains differ from one, and their weights [T, P]."""
    nets = [models.initialise(Decoder(width, 2), seed) for seed in range(trials)]
    for net in nets:
        for name, p in net.named_parameters():
            if "norm" in name:
                p.data += 0.2 * torch.randn(p.shape)
    return nets, torch.stack([flattening.flatten(net) for net in nets])


@pytest.mark.parametrize(("length", "split"), [(24_000, 0), (30_001, 1), (1_115_394, 9)])
def test_no_window_crosses_a_border_and_none_overlap(length, split):
    """Every character is its own number, so a window shows where it was cut."""
    ids, questions = np.arange(length), 16
    data = texts.examples(ids, split, questions)
    training, *others = texts.parts(length, split)
    assert len(data[0][0]) == texts.train_size(length) and all(len(x) == questions for x, _ in data[1:])
    for (x, y), spans in zip(data, [training, *([span] for span in others)], strict=True):
        assert np.array_equal(y, x + 1) and len(np.unique(x)) == x.size, "a character is asked for once"
        inside = [(x[:, 0] >= first) & (y[:, -1] < last) for first, last in spans]
        assert np.sum(inside, 0).tolist() == [1] * len(x), "each window within one span"
    starts, ends = zip(*sorted([*training, *others]))
    assert starts == (0, *ends[:-1]) and ends[-1] == length
    assert [last - first for first, last in others] == [length // 20, length - (length - length // 20)]


def test_splits_differ_and_the_first_is_validated_right_before_the_test():
    _, validations, tests = zip(*(texts.parts(1_115_394, split) for split in range(20)))
    assert validations[0][1] == tests[0][0] and len({*validations}) == 20 and len({*tests}) == 1


def test_the_corpus_is_read():
    folder = Path(os.environ.get(datasets.VARIABLE, "")) / CORPUS
    if datasets.VARIABLE not in os.environ or not folder.is_dir():
        pytest.skip(f"{CORPUS}: set {datasets.VARIABLE} to a folder that holds it")
    data, raw = datasets.load(CORPUS), (folder / "input.txt").read_bytes()
    assert data.train.x.dtype == data.train.y.dtype == torch.int64
    assert len(data.train) == datasets.train_size(CORPUS) == catalogue.workload("shakespeare").train_size
    assert len(data.test) == len(data.validation) == 256
    symbols = sorted(set(raw.decode()))
    assert len(symbols) == 65 and len(raw) == texts.LENGTHS[CORPUS]
    assert "".join(symbols[i] for i in data.train.x[:3].flatten()) == raw[:192].decode()
    assert symbols[data.train.y[2, 63]] == raw[192:193].decode()


def test_parameters_are_counted_and_the_first_loss_is_about_that_of_guessing():
    counts = {width: models.parameter_count(models.build(f"decoder-{width}x2")) for width in (32, 64, 128)}
    assert counts == {w: 24 * w * w + (65 + 65 + 64 + 5) * w for w in counts} and counts[64] == 111_040
    x, y = torch.randint(65, (2, 16, 64))
    net = models.fresh("decoder-64x2", 0)
    assert TASK.loss(net(x), y).item() == pytest.approx(math.log(65), abs=0.6)
    torch.nn.init.zeros_(net.head.weight)
    assert TASK.loss(net(x), y).item() == pytest.approx(math.log(65), abs=1e-3)


@pytest.mark.parametrize("kind", [sequential.SequentialExecutor, batched.BatchedExecutor])
def test_a_later_character_changes_no_earlier_answer(kind):
    executor, (_, w) = kind(Decoder(32, 2), torch.float64), networks(2)
    x = torch.randint(65, (3, 64))
    changed = x.clone()
    changed[:, 40] = (x[:, 40] + 1) % 65
    before, after = executor.logits(w.double(), x), executor.logits(w.double(), changed)
    assert torch.equal(before[:, :, :40], after[:, :, :40])
    assert (before[:, :, 40:] != after[:, :, 40:]).any(3).all()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "batch, length, together", [(1, 64, 2048), (5, 64, 128), (2, 48, 200), (3, 64, 64)],
    ids=["one group", "two groups", "shorter sequences", "one trial at a time"],
)  # fmt: skip
def test_stacked_gradients_are_those_of_autograd(batch, length, together, masked, monkeypatch):
    monkeypatch.setattr(batched, "MAX_PLACES_PER_PASS", together)
    nets, w = networks()
    mask = (torch.rand_like(w) < 0.5).float() if masked else None
    w = w if mask is None else w * mask
    x, y = torch.randint(65, (2, batch, length))
    executor = batched.BatchedExecutor(Decoder(32, 2), torch.float64)
    losses, g, alive = executor.gradients(w.double(), x, y, mask)
    logits = executor.logits(w.double(), x)
    for t, net in enumerate(nets):
        net.double()
        torch.nn.utils.vector_to_parameters(w[t].double(), net.parameters())
        out = net(x)
        loss = F.cross_entropy(out.flatten(0, 1), y.flatten())
        slopes = torch.autograd.grad(loss, list(net.parameters()))
        expected = torch.cat([s.flatten() for s in slopes]) * (1 if mask is None else mask[t])
        assert losses[t].item() == pytest.approx(loss.item(), abs=1e-5)
        for layer in flattening.layers(net):
            error, size = (g[t] - expected)[layer.where].abs().max(), expected[layer.where].abs().max()
            assert error <= 1e-6 * size, layer.name
        assert torch.allclose(logits[t].double(), out, atol=1e-5)
    assert alive.all() and not executor.all_off(w[0], x)


@pytest.mark.parametrize("sizes", [(1, 3), (6, 2)])
def test_single_precision_and_shares_agree_with_one_trial_after_another(sizes):
    batch, parts = sizes[0] * sizes[1], sizes[1]
    _, w = networks()
    x, y = torch.randint(65, (2, batch, 64))
    ours, alone = batched.BatchedExecutor(Decoder(32, 2)), sequential.SequentialExecutor(Decoder(32, 2), task=TASK)
    for a, b in zip(ours.gradients_by_worker(w, x, y, parts), alone.gradients_by_worker(w, x, y, parts), strict=True):
        assert torch.allclose(a, b, atol=2e-6, rtol=1e-4)


def test_lock_step_equals_exhaustive_search(chain):
    options = {"trials": 8, "hits": 2, "max_steps": 60, "replicate": 1}
    cell = Search("shakespeare", 8, "adam", 0.5, split=1, **options)
    data, goals = datasets.load(CORPUS, 1).validation, np.array(cell.work.goals)

    def meets(executor, w):
        answers = (executor.logits(row[None], data.x)[0].double().flatten(0, 1) for row in w)
        nats = [F.cross_entropy(out, data.y.flatten()).item() for out in answers]
        return np.array(nats)[:, None] <= goals

    first, w = exhaustive(cell, meets)
    quick = one_search.train_search(cell)
    with read_to_the_end():
        thorough = one_search.train_search(cell, drop_dead=False)
    hardest = np.sort(first[:, 0])[: cell.hits]
    assert not np.isnan(hardest[0]), "a goal that nobody reaches tests nothing"
    for outcome in (quick, thorough):
        assert np.array_equal(np.sort(outcome.first[:, 0])[: cell.hits], hardest, equal_nan=True)
        recorded = first <= outcome.steps
        assert np.array_equal(outcome.first[recorded], first[recorded])
    assert not w[one_search.start(cell).mask == 0].any(), "what is removed stays removed"
