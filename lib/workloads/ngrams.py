"""N-gram models of a text: the next character's probabilities, given the last few, by counts
smoothed as Witten and Bell do.

P(w | h) = (c(h w) + t(h) P(w | h')) / (c(h) + t(h)): c counts in the training part, t(h) is how
many different characters follow h there, and h' is h without its first character.  Before the first
of these stands 1 / symbols.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import sparse

from lib import require
from lib.workloads import texts

NOTHING = -1  # stands before the first character of a sequence
TOGETHER = 4096  # answers whose probabilities are computed at once
MOST = 2**62  # codes of contexts are int64


@dataclass(frozen=True, eq=False)
class NGrams:
    """Counts of what follows every context of 0 ... order - 1 characters.

    tables: for each length, the codes of the contexts seen, ascending int64 [contexts], and how
    often every symbol follows them, a sparse matrix [contexts, symbols].
    """

    symbols: int
    tables: tuple[tuple[np.ndarray, sparse.csr_matrix], ...]

    @property
    def order(self) -> int:
        """The longest n: contexts have up to n - 1 characters."""
        return len(self.tables)

    def predict(self, contexts: np.ndarray, order: int | None = None) -> np.ndarray:
        """Probabilities [N, symbols] after contexts [N, L], the last character last, by the n-grams
        up to `order`.

        A context that was never seen, or is cut by NOTHING, is answered as the longest part of it
        that was.
        """
        found = np.full((len(contexts), self.symbols), 1 / self.symbols)
        for length, (known, counts) in enumerate(self.tables[:order]):
            last = contexts[:, contexts.shape[1] - length :]
            codes = _codes(last, self.symbols)
            at = np.searchsorted(known, codes).clip(max=len(known) - 1)
            seen = (known[at] == codes) & (last != NOTHING).all(1)
            rows = counts[at[seen]].toarray()
            kinds = (rows > 0).sum(1, keepdims=True)
            found[seen] = (rows + kinds * found[seen]) / (rows.sum(1, keepdims=True) + kinds)
        return found


def count(sequences: list[np.ndarray], order: int, symbols: int) -> NGrams:
    """The n-grams up to this order of sequences of numbered characters, int64 [L] each.

    Raises ValueError for an order whose contexts cannot be numbered.
    """
    allowed = f"such that {symbols} to its power is below {MOST}"
    require(order >= 1 and symbols**order < MOST, "order", order, allowed)
    return NGrams(symbols, tuple(_count(sequences, length, symbols) for length in range(order)))


def _count(
    sequences: list[np.ndarray], length: int, symbols: int
) -> tuple[np.ndarray, sparse.csr_matrix]:
    """What follows contexts of this length, as in `NGrams.tables`."""
    long = [s for s in sequences if len(s) > length]
    if not long:  # what follows nothing is nothing
        return np.full(1, MOST), sparse.csr_matrix((1, symbols))
    runs = np.concatenate([sliding_window_view(s, length + 1) for s in long])
    known, rows = np.unique(_codes(runs[:, :-1], symbols), return_inverse=True)
    counts = sparse.coo_matrix((np.ones(len(rows)), (rows, runs[:, -1])), (len(known), symbols))
    return known, counts.tocsr()


def _codes(contexts: np.ndarray, symbols: int) -> np.ndarray:
    """A number for every context [N, L] of its length."""
    return contexts @ symbols ** np.arange(contexts.shape[1], dtype=np.int64)


def scores(model: NGrams, sequences: list[np.ndarray], order: int) -> tuple[float, float, int]:
    """Mean nats of a sequence's characters but the first, the share of them that is not the
    likeliest, and their number.

    Contexts end where their sequence begins.
    """
    before = max(1, model.order - 1)
    padded = (np.concatenate([np.full(before - 1, NOTHING), s[:-1]]) for s in sequences)
    contexts = np.concatenate([sliding_window_view(s, before) for s in padded])
    truths = np.concatenate([s[1:] for s in sequences])
    nats = wrong = 0.0
    for at in range(0, len(truths), TOGETHER):
        truth = truths[at : at + TOGETHER]
        found = model.predict(contexts[at : at + TOGETHER], order)
        places = np.arange(len(truth))
        nats -= np.log(found[places, truth]).sum()
        wrong += (found.argmax(1) != truth).sum()
    return nats / len(truths), wrong / len(truths), len(truths)


def climb(
    ids: np.ndarray, order: int, split: int = 0, asked: int = texts.ASKED
) -> list[tuple[int, str, float, float, int]]:
    """How well n-grams up to `order` do on a text, int64 [characters]: n, "windows" or "all", and
    `scores`, a tuple each.

    "windows" are the answers that networks are asked for, `asked` windows, with no context from
    before a window; "all" are those of the whole validation part but its first character.
    """
    training, (first, last), _ = texts.parts(len(ids), split)
    model = count([ids[slice(*span)] for span in training], order, int(ids.max()) + 1)
    starts = texts.spread_starts((first, last), asked)
    sequences = {
        "windows": [ids[at : at + texts.CONTEXT + 1] for at in starts],
        "all": [ids[first:last]],
    }
    return [
        (n, what, *scores(model, given, n))
        for n in range(1, order + 1)
        for what, given in sequences.items()
    ]
