"""Small language models, of ordinary modules: a transformer decoder and an LSTM."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

HEAD = 16  # values a head
EPSILON = 1e-5  # added to the mean square by which an activation is normalised


class Attention(nn.Module):
    """Causal self-attention with heads of 16 values, without biases: [B, L, width] -> [B, L,
    width].
    """

    def __init__(self, width: int):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            layer(x).unflatten(2, (-1, HEAD)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        heard = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(heard.transpose(1, 2).flatten(2))


class DecoderBlock(nn.Module):
    """Attention and a feed-forward network of four times the width, each on normalised inputs and
    added to them.
    """

    def __init__(self, width: int):
        super().__init__()
        self.norm1 = nn.RMSNorm(width, EPSILON)
        self.attention = Attention(width)
        self.norm2 = nn.RMSNorm(width, EPSILON)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    """Predicts the next symbol at each of up to `context` places: int64 [B, L] -> [B, L, symbols].

    Learned positions, normalisation by the root of the mean square with gains before each part, no
    biases, and a last layer of its own (not tied to the embedding).  111,040 parameters at width 64
    with two blocks, 64 places and 65 symbols.
    """

    def __init__(self, width: int, blocks: int, symbols: int = 65, context: int = 64):
        super().__init__()
        self.symbol = nn.Embedding(symbols, width)
        self.place = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(DecoderBlock(width) for _ in range(blocks)))
        self.norm = nn.RMSNorm(width, EPSILON)
        self.head = nn.Linear(width, symbols, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.symbol(x) + self.place.weight[: x.shape[1]])))


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
