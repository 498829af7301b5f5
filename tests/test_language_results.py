"""N-gram models are Witten and Bell's, and the page on the language model reads whatever is on record."""

import math
import os
from pathlib import Path

import numpy as np
import pytest

from lib.probes import ngrams as rungs
from lib.workloads import datasets, ngrams, texts

# --- n-grams ----------------------------------------------------------------------------------------------------------


def plain(sequences, context, symbols):
    """Witten and Bell's probabilities [symbols] after a context, a tuple, by the formula: a context at a time, no arrays."""
    lower = [1 / symbols] * symbols if not context else plain(sequences, context[1:], symbols)
    follow = [
        s[at + len(context)]
        for s in sequences
        for at in range(len(s) - len(context))
        if tuple(s[at : at + len(context)]) == tuple(context)
    ]
    kinds = len(set(follow))
    if not follow:
        return lower
    return [(follow.count(w) + kinds * lower[w]) / (len(follow) + kinds) for w in range(symbols)]


def text(length, symbols=5, seed=0):
    """Characters of which the next often follows from the last."""
    random = np.random.default_rng(seed)
    ids = random.integers(symbols, size=length)
    for at in range(1, length):
        if random.random() < 0.6:
            ids[at] = (2 * ids[at - 1] + 1) % symbols
    return ids


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_probabilities_are_those_of_the_plain_formula(order):
    parts = [text(150), text(70, seed=1)]
    model, asked = ngrams.count(parts, 4, 6), text(40, 6, seed=2)  # a symbol that the text has not
    contexts = np.lib.stride_tricks.sliding_window_view(asked, 3)
    found = model.predict(contexts, order)
    expected = [plain(parts, tuple(int(c) for c in row[3 - order + 1 :]), 6) for row in contexts]
    assert np.allclose(found, expected, rtol=1e-12) and np.allclose(found.sum(1), 1) and (found > 0).all()


def test_a_context_that_was_never_seen_is_answered_as_its_end_and_nothing_before_it_as_a_shorter_one():
    ids = np.array([0, 1, 2, 0, 1, 2, 0, 1, 3])
    model = ngrams.count([ids], 3, 5)
    unseen, cut = model.predict(np.array([[4, 1], [ngrams.NOTHING, 1]]))
    shorter = model.predict(np.array([[4, 1]]), 2)[0]
    assert np.array_equal(unseen, shorter) and np.array_equal(cut, shorter)
    assert not np.array_equal(model.predict(np.array([[0, 1]]))[0], shorter)
    nothing = model.predict(np.array([[4, 4]]))[0]
    assert np.array_equal(nothing, model.predict(np.array([[4, 4]]), 1)[0])
    assert model.predict(np.array([[0, 0]]), 1)[0, 4] == pytest.approx(4 / (9 + 4) / 5), "unseen symbols share t(h)"


def test_a_sequence_begins_without_a_context_and_none_reaches_into_another():
    a, b = text(60), text(60, seed=3)
    model = ngrams.count([a, b], 3, 5)
    whole = [model.predict(np.array([row]))[0] for row in ([-1, a[0]], *np.lib.stride_tricks.sliding_window_view(a[:-1], 2))]
    nats = -np.mean([math.log(p[w]) for p, w in zip(whole, a[1:], strict=True)])
    wrong = np.mean([p.argmax() != w for p, w in zip(whole, a[1:], strict=True)])
    assert ngrams.scores(model, [a]) == (pytest.approx(nats), pytest.approx(wrong), 59)
    joined = ngrams.scores(model, [a, b])
    assert joined[0] == pytest.approx((ngrams.scores(model, [a])[0] + ngrams.scores(model, [b])[0]) / 2) and joined[2] == 118
    counts = ngrams.count([a, b], 2, 5).tables[1][1].toarray()
    assert counts.sum() == len(a) - 1 + len(b) - 1


def test_a_text_that_a_context_determines_costs_next_to_nothing_and_noise_what_guessing_does():
    cycle = np.arange(4000) % 4
    nats, wrong, _ = ngrams.scores(ngrams.count([cycle], 2, 4), [cycle])
    assert nats < 0.002 and wrong == 0
    random = np.random.default_rng(0)
    model = ngrams.count([random.integers(4, size=200_000)], 2, 4)
    nats, wrong, _ = ngrams.scores(model, [random.integers(4, size=20_000)])
    assert nats == pytest.approx(math.log(4), abs=2e-3) and wrong == pytest.approx(0.75, abs=0.01)


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(ValueError, match="sequences: .* of at least one character"):
        ngrams.count([np.zeros(0, np.int64)], 2, 4)
    with pytest.raises(ValueError, match="order: 11 is not allowed"):
        ngrams.count([text(20)], 11, 65)
    model = ngrams.count([text(2)], 4, 5)
    assert model.predict(np.zeros((1, 3), np.int64)).sum() == pytest.approx(1), "no context is so long"
    for order in (0, 5):
        with pytest.raises(ValueError, match=f"order: {order} is not allowed; it must be a whole number from 1 to 4"):
            model.predict(np.zeros((1, 3), np.int64), order)
    with pytest.raises(ValueError, match="contexts: .* of at least 3 characters"):
        model.predict(np.zeros((1, 2), np.int64))
    with pytest.raises(ValueError, match="dataset: 'digits' is not allowed"):
        rungs.Rungs("digits")


def test_rungs_ask_what_networks_are_asked_and_count_only_what_they_train_on():
    ids = text(24_000)
    for split in (0, 1):
        found = rungs.table(ngrams.climb(ids, 3, split, 16)).set_index(["asked", "n"])
        training, (first, last), _ = texts.parts(len(ids), split)
        model = ngrams.count([ids[slice(*span)] for span in training], 3, 5)
        x, y = texts.windows(ids, texts.spread_starts((first, last), 16))
        nats = []
        for row, truth in zip(x, y, strict=True):
            for at in range(len(row)):
                context = [ngrams.NOTHING] * (at == 0) + list(row[max(0, at - 1) : at + 1])
                nats.append(-math.log(model.predict(np.array([context]))[0, truth[at]]))
        assert found.nats["windows", 3] == pytest.approx(np.mean(nats))
        assert found.characters["windows", 3] == 16 * 64 and found.characters["all", 3] == last - first - 1


def test_another_program_s_numbers_come_out_on_its_split():
    """Of a corpus whose last tenth is asked whole, as another implementation found them: nats and shares of mistakes."""
    if datasets.VARIABLE not in os.environ or not (Path(os.environ[datasets.VARIABLE]) / "tiny-shakespeare").is_dir():
        pytest.skip(f"tiny-shakespeare: set {datasets.VARIABLE} to a folder that holds it")
    ids = datasets.characters("tiny-shakespeare")
    _, (first, _), _ = texts.parts(len(ids))
    model = ngrams.count([ids[:first]], 5, 65)
    for order, nats, error in ((2, 2.486, 0.730), (3, 2.049, 0.619), (4, 1.774, 0.528), (5, 1.669, 0.473)):
        assert ngrams.scores(model, [ids[first:]], order)[:2] == (pytest.approx(nats, abs=6e-4), pytest.approx(error, abs=6e-4))


def test_the_record_is_of_the_book_s_text():
    found = rungs.results()
    if not len(found):
        pytest.skip("python -m lib ngrams")
    for _, own in found.groupby(["split", "asked"]):
        own = own.sort_values("n")
        assert (own.nats.diff().dropna() < 0).all() and (own.error.diff().dropna() < 0).all()
