"""The language model: n-grams by their formula, readers' texts, and runs that branch."""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from chapters.language_model import experiments, text_results
from lib import BookError, own
from lib.engine.checkpoint import OutOfTime
from lib.workloads import catalogue, datasets, models, ngrams, texts
from tests.conftest import recorded


def plain(sequences, context, symbols):
    """Witten and Bell's probabilities [symbols] after a context, a tuple, by the formula."""
    lower = plain(sequences, context[1:], symbols) if context else [1 / symbols] * symbols
    n, context = len(context), tuple(context)
    places = ((s, i) for s in sequences for i in range(len(s) - n))
    follow = [s[i + n] for s, i in places if tuple(s[i : i + n]) == context]
    kinds = len(set(follow))
    total = len(follow) + kinds
    return [(follow.count(w) + kinds * lower[w]) / total for w in range(symbols)] if follow else lower


def text(length, symbols=5, seed=0):
    """Characters in which the next often follows from the last."""
    random = np.random.default_rng(seed)
    ids = random.integers(symbols, size=length)
    for place in range(1, length):
        if random.random() < 0.6:
            ids[place] = (2 * ids[place - 1] + 1) % symbols
    return ids


@pytest.mark.parametrize("order", [1, 3])
def test_probabilities_are_those_of_the_plain_formula(order):
    parts = [text(150), text(70, seed=1)]
    model, questions = ngrams.count(parts, 4, 6), text(40, 6, seed=2)  # a symbol that is not in the text
    contexts = np.lib.stride_tricks.sliding_window_view(questions, 3)
    probabilities = ngrams.predict(model[:order], contexts)
    expected = [plain(parts, tuple(int(c) for c in row[3 - order + 1 :]), 6) for row in contexts]
    assert np.allclose(probabilities, expected, rtol=1e-12) and (probabilities > 0).all()
    assert np.allclose(probabilities.sum(1), 1)


@pytest.mark.parametrize("split", [0, 1])
def test_rungs_ask_what_networks_are_asked_and_count_only_what_they_train_on(split):
    ids = text(24_000)
    rungs = experiments.climb(ids, 3, split).set_index(["asked", "n"])
    training, (first, last), _ = texts.parts(len(ids), split)
    model = ngrams.count([ids[slice(*span)] for span in training], 3, 5)
    x, y = texts.windows(ids, texts.spread_starts((first, last), texts.windows_of(len(ids))))
    contexts = np.insert(x, 0, ngrams.NOTHING, axis=1)
    pairs = np.lib.stride_tricks.sliding_window_view(contexts, 2, axis=1).reshape(-1, 2)
    nats = -np.log(ngrams.predict(model, pairs)[np.arange(y.size), y.ravel()])
    assert rungs.nats["windows", 3] == pytest.approx(nats.mean())
    assert rungs.characters["windows", 3] == 18 * 64 and rungs.characters["all", 3] == last - first - 1


def test_another_program_s_numbers_come_out_on_its_split():
    """Nats and shares of mistakes on the last tenth, as another implementation found them."""
    if datasets.VARIABLE not in os.environ or not (Path(os.environ[datasets.VARIABLE]) / "tiny-shakespeare").is_dir():
        pytest.skip(f"tiny-shakespeare: set {datasets.VARIABLE} to a folder that holds it")
    ids = datasets.characters("tiny-shakespeare")
    _, (first, _), _ = texts.parts(len(ids))
    model = ngrams.count([ids[:first]], 5, 65)
    theirs = {2: (2.486, 0.730), 3: (2.049, 0.619), 4: (1.774, 0.528), 5: (1.669, 0.473)}
    for order, scores in theirs.items():
        assert ngrams.scores(model[:order], [ids[first:]])[:2] == pytest.approx(scores, abs=6e-4)


def toy(folder, name="toy.txt"):
    """The made-up text, without goals."""
    return text_results.write_toy(folder / name).rpartition(":")[0]


def test_a_text_is_a_workload_of_its_characters(tmp_path):
    name = toy(tmp_path)
    work, text = catalogue.workload(name), Path(name).read_text(encoding="utf-8")
    data = work.data()
    symbols = sorted(set(text))
    assert work.model == f"decoder-64x2-{len(symbols)}" and work.task == "cross-entropy" and len(work.source) == 12
    assert "".join(symbols[i] for i in data.train.x[:3].flatten()) == text[:192]
    assert len(data.train) == work.train_size == texts.train_size(len(text))
    assert len(data.validation) == len(data.test) == (len(text) // 20 - 1) // 64
    net = models.build(work.model)
    assert net.head.out_features == net.symbol.num_embeddings == len(symbols)
    assert work.goals == tuple(sorted(work.goals)) and len(work.goals) == 5
    made = texts.read(name)
    nats = experiments.climb(made.ids, 3).query("asked == 'windows'").set_index("n").nats
    assert (work.goals[-1], work.goals[0]) == pytest.approx((nats[2], nats[3]), abs=0.006)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"To be, or not to be", "length: 19 characters is not allowed; it must be 20,500"),
        (b"a" * 30_000, "symbols: 1 different characters is not allowed; it must be from 2 to"),
        (b"abc" * 10_000 + b"\xff", "'utf-8' codec can't decode byte 0xff in position 30000"),
        (None, "mine.txt', which names 0 files, is not allowed; it must be the name of one"),
    ],
)
def test_what_is_wrong_with_a_text_is_named_before_any_compute(tmp_path, raw, message):
    file = tmp_path / "mine.txt"
    if raw is not None:
        file.write_bytes(raw)
    with pytest.raises(own.OwnError, match=message):
        catalogue.workload(str(file))


def trials():
    """Made-up searches whose steps are 300 (1 + 40 / B); all trials meet the easier goal, in a quarter of that or more."""
    cells = []
    for size in (1, 4, 16, 64, 256):
        best, behind = 300 * (1 + 40 / size), 1 + 0.4 * np.abs(np.arange(8) - 3)
        hard = np.where(behind == 1, best, np.nan)
        columns = {"batch_size": size, "trial": range(8), "last_step": best}
        cells.append(pd.DataFrame(columns | {"steps": hard, "steps@1.9": hard, "steps@2.3": best * behind / 4}))
    about = {"workload": "shakespeare", "algorithm": "adam", "trials": 8, "space": None}
    return recorded(pd.concat(cells, ignore_index=True), **about, goal=1.9, status="stopped")


def test_a_pruned_network_stands_beside_the_dense_one_at_the_goal_that_both_met():
    frame = trials()
    assert text_results.goal(frame) == text_results.pruned_goal(frame) == 1.9
    pruned = frame.assign(sparsity=0.9, **{"steps@2.3": 3 * frame["steps@2.3"]})
    pair = text_results.at_their_goals(pd.concat([frame, pruned], ignore_index=True), "shakespeare")
    assert pair.workload.unique().tolist() == ["shakespeare", "shakespeare-easier"]
    assert (text_results.goal(pair), text_results.pruned_goal(pair)) == (1.9, 2.3)
    ratios = text_results.pruned_over_dense(pair)
    assert len(ratios) == 5 and np.allclose(ratios.ratio, 3) and not ratios.missed.any()


@pytest.mark.parametrize("on_record", [True, False])
def test_a_run_whose_minutes_are_over_shows_what_it_has(on_record, tmp_path, monkeypatch):
    def late(study, budget, until):
        assert until == text_results.BEGAN + 120
        raise OutOfTime

    monkeypatch.setattr(text_results.sweeps, "results", late)
    workload = "shakespeare" if on_record else toy(tmp_path)
    parameters = {"methods": ["adam"], "batch_sizes": [16, 64], "searches": 1, "trials": 16}
    chosen = SimpleNamespace(workload=workload, budget="full", minutes=2, **parameters)
    if on_record:
        data = text_results.read(chosen)
        assert data.stopped[0].startswith("Stopped after 2 minutes and ") and len(data.trials)
    else:
        with pytest.raises(BookError, match="stopped after 2 minutes and 0 of 2 searches"):
            text_results.read(chosen)
