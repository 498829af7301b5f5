"""A Transformer with dropout and a tied head that predicts every next token; loss in nats."""

import torch
from torch import nn

from lib.own import Training

WORDS, LENGTH, WIDTH = 12, 16, 32


class Transformer(nn.Module):
    """Scores [N, LENGTH, WORDS] for the token after each of [N, LENGTH]."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.block = nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.words.weight
        nn.init.normal_(self.words.weight, std=WIDTH**-0.5)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, tokens):
        x = self.words(tokens) + self.places.weight
        return self.head(self.block(x, src_mask=self.mask, is_causal=True))


def small_transformer() -> Training:
    """Sequences in which each token is the sum of the two before it, one time in ten another."""
    draw = torch.Generator().manual_seed(0)
    tokens = torch.randint(WORDS, (600, LENGTH + 1), generator=draw)
    for place in range(2, LENGTH + 1):
        kept = torch.rand(600, generator=draw) < 0.9
        tokens[kept, place] = (tokens[kept, place - 1] + tokens[kept, place - 2]) % WORDS
    x, y = tokens[:, :-1], tokens[:, 1:]
    return Training(
        model=Transformer,
        train=(x[:500], y[:500]),
        validation=(x[500:], y[500:]),
        loss="tokens",
        goals=(1.8, 2.0, 2.2, 2.4),
        title="Transformer on sums",
        max_steps=3_000,
    )
