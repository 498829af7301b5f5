"""Growing networks: training begins narrow, and the hidden layers are doubled while it goes on
(Yuan et al. 2023).

New units come in pairs: both have the same incoming weights V, and outgoing weights Z and -Z, so
that they cancel and the function stays.  V is normal with standard deviation 1 / fan-in before the
growth, Z with 1 / width after it; biases begin at zero.  The published rule also scales the old
weights that meet a grown layer by old width / new width; in a network without normalisation that
changes the function, so it is an arm of its own.  The weights that came with a growth are trained
at the rate of the first ones times the ratio of their norms at that step, layer by layer.

A unit that has not grown yet has zero weights in and out, hence gradients of exactly zero: the
whole network trains, and the part that is there behaves as it would alone.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from chapters.parts_of_a_network import searches
from lib import require
from lib.fields import spec
from lib.measuring.experiment import Collection
from lib.methods.intervals import Interval
from lib.methods.method import Layer

if TYPE_CHECKING:
    from torch import Tensor

# Of the network that is grown: inputs, hidden layers and outputs
SIZES = (searches.INPUTS, 64, 64, searches.CLASSES)
ARMS = {  # first, doublings, scaled and by_norm of what is searched
    (64, 0, False, True): "64 units from the start",
    (16, 0, False, True): "16 units from the start",
    (16, 2, False, True): "16 to 64: function kept",
    (16, 2, False, False): "16 to 64: function kept, one rate",
    (16, 2, True, True): "16 to 64: published rule",
}
WHOLE, SMALL, GROWN, *_ = ARMS.values()
MOST_STEPS = {16: 1000, 64: 400, 256: 250, 1024: 160}  # by batch size


@spec
class Search(searches.InStages):
    """So many trials of the digits' MLP, begun with hidden layers of `first` units that are doubled
    so many times.  A search ends when all trials have met the hardest goal, or after max_steps.

    scaled: whether old weights that meet a grown layer are scaled.  by_norm: whether the rate of
    new weights follows their norm, or is that of the old ones.  replicate: its draws, seeds, data
    order and split.  Raises ValueError naming the field, its value and what is allowed.
    """

    first: int
    doublings: int = 0
    batch_size: int = 16
    scaled: bool = False
    by_norm: bool = True
    replicate: int = 1
    trials: int = searches.TRIALS
    max_steps: int = MOST_STEPS[16]
    workload: Literal["digits-mlp"] = "digits-mlp"  # which is what grows here

    lengths, seed = Interval(2, 128), 10_000  # of stages: steps between growths

    def __post_init__(self):
        arm = self.first, self.doublings, self.scaled, self.by_norm
        require(arm in ARMS, "first, doublings, scaled and by_norm", arm, f"one of {[*ARMS]}")
        super().__post_init__()

    @property
    def widths(self) -> tuple[int, ...]:
        """Of the hidden layers, stage by stage."""
        return tuple(self.first * 2**n for n in range(self.doublings + 1))

    def first_weights(self, w: Tensor) -> Tensor:
        """Of the narrow network, and zeros."""
        # Brings PyTorch, which is slow to import, and most chapters only read
        from lib.measuring import one_cell

        return narrow(self.first, one_cell.seeds(self.cell))

    def begin(self, w: Tensor, layers: tuple[Layer, ...]) -> dict[str, Tensor]:
        """fresh [T, P]: what every new weight will be."""
        import torch

        if not self.doublings:
            return {}
        random = torch.Generator().manual_seed(self.replicate)
        return {"fresh": torch.stack([_fresh(self.widths, random) for _ in w])}

    def step(self, w, g, buffers, drawn, k, layers) -> None:
        """As of `lib.methods.method.Method`: SGD, and the growths that are due."""
        if self.doublings and self.by_norm:
            g.mul_(relative_rates(self.widths, w, layers))
        w.addcmul_(g, drawn["learning_rate"], value=-1)
        for n, widths in enumerate(itertools.pairwise(self.widths), 1):
            due = (drawn["stage"][:, 0] * n == k).nonzero()[:, 0]
            if len(due):
                w[due] = grow(w[due], buffers["fresh"][due], widths, layers, self.scaled)


def places(width: int) -> Tensor:
    """Where the parameters of the network of this width lie in the whole network's vector."""
    import torch

    return searches.places(SIZES, torch.arange(width), torch.arange(width))


def narrow(width: int, seeds: list[int]) -> Tensor:
    """The whole network's vectors [T, P] with the network of this width in them, initialised as if
    it were alone, and zeros.
    """
    import torch

    from lib.engine.flattening import flatten
    from lib.workloads import models

    nets = [models.initialise(models.mlp(SIZES[0], width, width), seed) for seed in seeds]
    whole = torch.zeros(len(seeds), searches.weights(SIZES))
    return whole.index_copy_(1, places(width), torch.stack(list(map(flatten, nets))))


def _fresh(widths: tuple[int, ...], random) -> Tensor:
    """New weights [P] of one trial, for all growths: V, V in the rows of new units, Z, -Z in the
    columns that they feed.
    """
    import torch

    found = []
    for n, (fan_in, out) in enumerate(itertools.pairwise(SIZES)):
        fresh = torch.zeros(out, fan_in)
        for old, new in itertools.pairwise(widths):
            half, inputs, units = (new - old) // 2, old if n else fan_in, min(new, out)
            if out > SIZES[-1]:  # its units grow
                v = torch.randn(half, inputs, generator=random) / inputs
                fresh[old:new, :inputs] = torch.cat([v, v])
            if n > 0:  # its inputs grow
                z = torch.randn(units, half, generator=random) / new
                z[old + half : new] = z[old : old + half]  # rows of a pair are alike here, too
                fresh[:units, old:new] = torch.cat([z, -z], 1)
        found += [fresh.flatten(), torch.zeros(out)]
    return torch.cat(found)


def relative_rates(widths: tuple[int, ...], w: Tensor, layers: tuple[Layer, ...]) -> Tensor:
    """Rates of all weights [T, P] over that of the first part of their matrix: the ratio of their
    norms; of biases, 1.
    """
    part = w.new_zeros(w.shape[1]).long()  # the growth with which a parameter came
    for stage, width in reversed([*enumerate(widths)]):
        part[places(width)] = stage
    for n, layer in enumerate(layers):
        part[layer.where] += n * len(widths)
    squares = w.new_zeros(len(w), len(layers) * len(widths)).index_add_(1, part, w.square())
    norms = squares.sqrt().unflatten(1, (len(layers), -1))
    ratios = norms / norms[:, :, :1]
    ratios[:, 1::2] = 1  # a matrix and its biases take turns
    return ratios.flatten(1).index_select(1, part)


def grow(w: Tensor, fresh: Tensor, widths: tuple[int, int], layers, scaled: bool) -> Tensor:
    """The weights w [T, P] after growth from the first of these widths to the second, with what is
    new from fresh [T, P].
    """
    before, after = map(places, widths)
    came = w.new_zeros(w.shape[1]).index_fill_(0, after, 1).index_fill_(0, before, 0)
    found = fresh.where(came.bool(), w)
    for layer in layers[2::2] if scaled else ():  # a matrix and its biases take turns
        kept = before[(before >= layer.where.start) & (before < layer.where.stop)]
        found[:, kept] *= widths[0] / widths[1]
    return found


def planned() -> tuple[Search, ...]:
    """The whole width and the narrowest from the start, and growth by three rules."""
    return tuple(
        Search(first, doublings, size, *rule, replicate=n, max_steps=most)
        for n in searches.REPLICATES
        for size, most in MOST_STEPS.items()
        for first, doublings, *rule in ARMS
    )


GROWING = Collection(
    "growing",
    "searches",
    lambda one: f"{one.workload}/width-{'-'.join(map(str, one.widths))}-batch-{one.batch_size}",
    planned,
    "Train networks that grow wider as they go, into data/growing/.",
)


def results() -> pd.DataFrame:
    """The trials that have a record, with arm: how the network grew, in words, size: of a batch,
    and adds@goal, beside the steps@goal: multiply-adds until the goal was met.
    """
    found = GROWING.results()
    steps, total = found.filter(like="steps@").T, 0.0
    for n in range(1 + found.doublings.max()):
        # The last stage has no end
        most = found.stage.where(n < found.doublings, np.inf).where(n <= found.doublings, 0)
        spent = (steps - n * found.stage).clip(0, most, axis=1)
        total += spent * searches.multiply_adds(found["first"] * 2**n)
    rules = zip(found["first"], found.doublings, found.scaled, found.by_norm)
    found = found.assign(arm=[ARMS[rule] for rule in rules], size=found.batch_size)
    return searches.with_costs(found, adds=found.batch_size * total)
