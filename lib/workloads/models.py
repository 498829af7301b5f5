"""The networks of the book as ordinary modules, and their initialisation.

Max-pooling comes before the ReLU: both are monotone, so the function is the same, and the ReLU then
processes a quarter of the values.
"""

from __future__ import annotations

import functools
import itertools
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib import require

HEAD = 16  # width of an attention head
EPSILON = 1e-5  # added to the mean square in normalisation
TRUNCATED_STD = 0.87962566103423978  # standard deviation of a unit normal cut at +-2


def mlp(
    inputs: int, *widths: int, classes: int = 10, activation: type[nn.Module] = nn.ReLU
) -> nn.Sequential:
    """A fully connected network on flattened inputs: [B, ...] -> [B, classes]."""
    layers: list[nn.Module] = [nn.Flatten()]
    for width in widths:
        layers += [nn.Linear(inputs, width), activation()]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, classes))


class MaxPool(nn.MaxPool2d):
    """`nn.MaxPool2d` of 2 x 2 cells, twice as fast if no gradient is needed."""

    def forward(self, h: Tensor) -> Tensor:
        """h [B, C, H, W], H and W even -> [B, C, H / 2, W / 2]."""
        if torch.is_grad_enabled():
            return super().forward(h)
        h = torch.maximum(h[..., ::2], h[..., 1::2])  # columns first: neighbours in memory
        return torch.maximum(h[:, :, ::2], h[:, :, 1::2])


def _pooled(inputs: int, outputs: int, padding: int = 0) -> list[nn.Module]:
    """A convolution, max-pooled: [B, inputs, H, W] -> [B, outputs, H / 2 - 2 + padding, ...]."""
    return [nn.Conv2d(inputs, outputs, 5, padding=padding), MaxPool(2), nn.ReLU()]


def simple_cnn(width: float = 1.0) -> nn.Sequential:
    """Simple-CNN of Lee et al. (2021), 62,346 parameters at width 1: [B, 1, 28, 28] -> [B, 10]."""
    a, b = round(32 * width), round(64 * width)
    return nn.Sequential(*_pooled(1, a), *_pooled(a, b), *mlp(16 * b))


def digits_cnn() -> nn.Sequential:
    """A small convolutional network for 8x8 images, 6,090 parameters: [B, 1, 8, 8] -> [B, 10]."""
    first = nn.Conv2d(1, 16, 3, stride=2, padding=1)
    return nn.Sequential(first, nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), *mlp(128))


def lenet5() -> nn.Sequential:
    """LeNet-5 as in Shi et al. (2019), 61,706 parameters: [B, 1, 28, 28], padded -> [B, 10]."""
    return nn.Sequential(*_pooled(1, 6, 2), *_pooled(6, 16), *mlp(400, 120, 84))


class Block(nn.Module):
    """Pre-activation residual block without normalisation; halves images as it doubles channels."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        first = nn.Conv2d(inputs, outputs, 3, outputs // inputs, padding=1)
        second = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.inner = nn.Sequential(first, nn.ReLU(), second)
        self.new = outputs - inputs

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(x)
        # No weights on the shortcut: the pooled ReLU output is padded with zero channels
        short = F.pad(F.avg_pool2d(h, 2), (0, 0, 0, 0, 0, self.new)) if self.new else x
        return short + self.inner(h)


class NormalisedBlock(nn.Module):
    """Two convolutions with batch normalisation; if the channels are doubled, the shortcut is every
    other pixel, with zeros for the new channels.
    """

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.stride = outputs // inputs
        self.new = (outputs - inputs) // 2
        self.inner = nn.Sequential(
            *_normalised(inputs, outputs, self.stride),
            nn.ReLU(),
            *_normalised(outputs, outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        short = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.new, self.new))
        return F.relu(self.inner(x) + short)


def _normalised(inputs: int, outputs: int, stride: int = 1) -> list[nn.Module]:
    """A convolution with batch normalisation by the current batch, also in evaluation: trials share
    one module, so it can keep no running averages.
    """
    convolution = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
    return [convolution, nn.BatchNorm2d(outputs, track_running_stats=False)]


class Average(nn.Module):
    """[B, C, H, W] -> [B, C]."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))


def resnet8() -> nn.Sequential:
    """ResNet-8 of Shallue et al. (2019), 75,050 parameters: [B, 3, 32, 32] -> [B, 10]."""
    stem = nn.Conv2d(3, 16, 3, padding=1)
    blocks = Block(16, 16), Block(16, 32), Block(32, 64)
    return nn.Sequential(stem, *blocks, nn.ReLU(), Average(), nn.Linear(64, 10))


def resnet20() -> nn.Sequential:
    """ResNet-20 as in Shi et al. (2019), 269,722 parameters: [B, 3, 32, 32] -> [B, 10]."""
    widths = [16] * 4 + [32] * 3 + [64] * 3
    blocks = itertools.starmap(NormalisedBlock, itertools.pairwise(widths))
    last = Average(), nn.Linear(64, 10)
    return nn.Sequential(*_normalised(3, 16), nn.ReLU(), *blocks, *last)


class Attention(nn.Module):
    """Causal self-attention without biases: [B, L, width] -> [B, L, width]."""

    def __init__(self, width: int):
        super().__init__()
        layers = [nn.Linear(width, width, bias=False) for _ in range(4)]
        self.query, self.key, self.value, self.out = layers

    def forward(self, x: Tensor) -> Tensor:
        layers = self.query, self.key, self.value
        heads = [layer(x).unflatten(2, (-1, HEAD)).transpose(1, 2) for layer in layers]
        values = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(values.transpose(1, 2).flatten(2))


class DecoderBlock(nn.Module):
    """Attention, then a feed-forward network, each on normalised inputs and added to them."""

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

    Learned positions, RMS normalisation with gains before each part, no biases, and a last layer
    not tied to the embedding.  111,040 parameters at width 64 with two blocks, 64 places and 65
    symbols.
    """

    def __init__(self, width: int, blocks: int, symbols: int = 65, context: int = 64):
        super().__init__()
        self.symbol = nn.Embedding(symbols, width)
        self.place = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(DecoderBlock(width) for _ in range(blocks)))
        self.norm = nn.RMSNorm(width, EPSILON)
        self.head = nn.Linear(width, symbols, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h = self.symbol(x) + self.place.weight[: x.shape[1]]
        return self.head(self.norm(self.blocks(h)))


class Recurrent(nn.Module):
    """An LSTM that predicts the next symbol at each place: int64 [B, L] -> [B, L, symbols].

    112,000 parameters at width 128 with 65 symbols.
    """

    def __init__(self, width: int, symbols: int = 65):
        super().__init__()
        self.symbol = nn.Embedding(symbols, width // 2)
        self.memory = nn.LSTM(width // 2, width, batch_first=True)
        self.head = nn.Linear(width, symbols)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.memory(self.symbol(x))[0])


MODELS = {
    **{f"mlp-{width}x2": functools.partial(mlp, 64, width, width) for width in (16, 64, 256)},
    **{f"mlp-64x{depth}": functools.partial(mlp, 64, *[64] * depth) for depth in (1, 4)},
    "mlp-64x2-tanh": functools.partial(mlp, 64, 64, 64, activation=nn.Tanh),
    "digits-cnn": digits_cnn,
    "simple-cnn": simple_cnn,
    "simple-cnn-half": functools.partial(simple_cnn, 0.5),
    "simple-cnn-double": functools.partial(simple_cnn, 2.0),
    "fc-1024": functools.partial(mlp, 784, 1024),
    **{f"fc-{n}x3": functools.partial(mlp, 784, n, n, n) for n in (128, 256, 512, 1024)},
    "fnn-3": functools.partial(mlp, 784, 200, 200),
    "lenet-5": lenet5,
    "resnet-8": resnet8,
    "resnet-20": resnet20,
    **{f"decoder-{width}x2": functools.partial(Decoder, width, 2) for width in (32, 64, 128)},
    "lstm-128": functools.partial(Recurrent, 128),
}
DECODERS = tuple(name for name in MODELS if name.startswith("decoder-"))


# Layers whose weights are gains
NORMALISING = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


@torch.no_grad()
def build(name: str) -> nn.Module:
    """The network called `name`, all parameters zero.  Raises ValueError naming all networks."""
    book, _, symbols = name.rpartition("-")
    of_a_text = book in DECODERS and symbols.isdecimal()  # "decoder-64x2-80" has 80 symbols
    require(of_a_text or name in MODELS, "model", name, MODELS)
    # Modules constructed on a real device draw global random numbers that `initialise` replaces
    with torch.device("meta"):
        module = MODELS[book](symbols=int(symbols)) if of_a_text else MODELS[name]()
    module = module.to_empty(device="cpu").float()
    for parameter in module.parameters():
        parameter.zero_()
    return module


def fresh(name: str, seed: int) -> nn.Module:
    """The network called `name`, initialised from `seed`."""
    return initialise(build(name), seed)


@torch.no_grad()
def initialise(module: nn.Module, seed: int) -> nn.Module:
    """TF 1's default, in place: normal weights cut at two standard deviations, then of standard
    deviation sqrt(1 / fan_in), for embeddings [words, d] sqrt(1 / d); biases 0, gains 1.

    Drawn in float32 on the CPU from `seed` alone, so a trial starts from the same weights on every
    device and in every precision.
    """
    random = torch.Generator().manual_seed(seed)
    normalising = (layer for layer in module.modules() if isinstance(layer, NORMALISING))
    gains = {layer.weight for layer in normalising}
    for parameter in module.parameters():
        if parameter in gains:
            parameter.fill_(1)
        elif parameter.dim() <= 1:
            parameter.zero_()
        else:
            std = math.sqrt(1 / parameter[0].numel()) / TRUNCATED_STD
            drawn = torch.empty(parameter.shape)
            nn.init.trunc_normal_(drawn, std=std, a=-2 * std, b=2 * std, generator=random)
            parameter.copy_(drawn)
    return module


def parameter_count(module: nn.Module) -> int:
    """Number of trainable scalars: weights and biases."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)
