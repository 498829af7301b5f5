"""A small recurrent language model, of ordinary modules."""

from __future__ import annotations

from torch import Tensor, nn


class Recurrent(nn.Module):
    """An LSTM that predicts the next symbol at each place from those before it: int64 [B, L] -> [B,
    L, symbols].

    112,000 parameters at width 128 with 65 symbols: an embedding of half the width, one layer, and
    a last layer of its own.
    """

    def __init__(self, width: int, symbols: int = 65):
        super().__init__()
        self.symbol = nn.Embedding(symbols, width // 2)
        self.memory = nn.LSTM(width // 2, width, batch_first=True)
        self.head = nn.Linear(width, symbols)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.memory(self.symbol(x))
        return self.head(states)
