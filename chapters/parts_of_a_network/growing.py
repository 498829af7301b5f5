"""Growing networks: training begins narrow, and the hidden layers are doubled while it goes on
(Yuan et al. 2023).

New units come in pairs: both have the same incoming weights V, and outgoing weights Z and -Z, so
that they cancel and the function stays.  V is normal with standard deviation 1 / fan-in before the
growth, Z with 1 / width after it; biases begin at zero.  The published rule also scales the old
weights that meet a grown layer by old width / new width; in a network without normalisation that
changes the function, so it is an arm of its own.  The weights that came with a growth are trained
at the rate of the first ones times the ratio of their norms, layer by layer, as they are at each
step.

A unit that has not grown yet has zero weights in and out, hence gradients of exactly zero: the
whole network trains, and the part that is there behaves as it would alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from chapters.parts_of_a_network import searches
from lib import require
from lib.fields import Whole, check, spec
from lib.methods.intervals import Interval
from lib.methods.method import Layer, Method

if TYPE_CHECKING:
    from torch import Tensor

STAGE = Interval(2, 128)  # steps between growths, rounded: tuned beside the learning rate
# Of the network that is grown, the book's MLP of two hidden layers
INPUTS, WIDTH, CLASSES = 64, 64, 10
WIDTHS = (16, 32, 64)
BATCH_SIZES, REPLICATES, TRIALS = (16, 64, 256, 1024), (1, 2, 3), 32
MOST_STEPS = {16: 1000, 64: 400, 256: 250, 1024: 160}


@spec
class Search(searches.OfWhole):
    """So many trials of the digits' MLP, begun with hidden layers of `first` units that are doubled
    so many times.

    Without doublings the width is fixed.  scaled: whether old weights that meet a grown layer are
    scaled.  by_norm: whether the rate of new weights follows their norm, or is that of the old
    ones.  A search ends when all trials have met the hardest goal, or after max_steps, so that the
    trial of least arithmetic is known.  replicate: its draws, seeds, data order and split. Raises
    ValueError naming the field, its value and what is allowed.
    """

    first: int
    doublings: int = 0
    batch_size: int = 16
    scaled: bool = False
    by_norm: bool = True
    replicate: int = 1
    trials: int = TRIALS
    max_steps: int = MOST_STEPS[16]
    workload: Literal["digits-mlp"] = "digits-mlp"  # which is what grows here

    def __post_init__(self):
        require(self.first in WIDTHS, "first", self.first, f"one of {WIDTHS}")
        most = WIDTHS.index(WIDTH) - WIDTHS.index(self.first)
        check("doublings", self.doublings, Whole(0, most))
        super().__post_init__()

    @property
    def widths(self) -> tuple[int, ...]:
        """Of the hidden layers, stage by stage."""
        return _widths(self.first, self.doublings)

    def measure(self) -> pd.DataFrame:
        """A row per trial, as of `lib.measuring.one_cell.table`, with stage: steps between
        growths.
        """
        import torch  # slow to import, and most chapters only read

        from lib.measuring import one_cell

        weights = torch.stack([narrow(self.first, seed) for seed in one_cell.seeds(self.cell)])
        stage = searches.stages(STAGE, self.trials, 10_000 + self.replicate)
        return searches.measured(self.cell, grown(self), stage, weights)

    def begin(self, w: Tensor, layers: tuple[Layer, ...]) -> dict[str, Tensor]:
        """fresh [T, P]: what every new weight will be."""
        import torch

        if not self.doublings:
            return {}
        random = torch.Generator().manual_seed(self.replicate)
        return {"fresh": torch.stack([_fresh(self.widths, layers, random) for _ in w])}

    def step(
        self,
        w: Tensor,
        g: Tensor,
        buffers: dict[str, Tensor],
        drawn: dict[str, Tensor],
        k: int,
        layers: tuple[Layer, ...],
    ) -> None:
        """SGD, and the growths that are due."""
        if self.doublings and self.by_norm:
            g.mul_(relative_rates(self.widths, w, layers))
        w.addcmul_(g, drawn["learning_rate"], value=-1)
        for n, widths in enumerate(itertools.pairwise(self.widths), 1):
            due = (drawn["stage"][:, 0] * n == k).nonzero()[:, 0]
            if len(due):
                w[due] = grow(w[due], buffers["fresh"][due], widths, layers, self.scaled)


def _widths(first: int, doublings: int) -> tuple[int, ...]:
    return tuple(first * 2**n for n in range(doublings + 1))


def places(width: int) -> Tensor:
    """Where the parameters of the network of this width lie in the whole network's vector, in its
    own order.
    """
    import torch

    found, at, fan_in, whole_in = [], 0, INPUTS, INPUTS
    for out, whole_out in ((width, WIDTH), (width, WIDTH), (CLASSES, CLASSES)):
        rows, columns = torch.arange(out), torch.arange(fan_in)
        found += [
            (at + rows[:, None] * whole_in + columns).flatten(),
            at + whole_out * whole_in + rows,
        ]
        at, fan_in, whole_in = at + whole_out * (whole_in + 1), out, whole_out
    return torch.cat(found)


def narrow(width: int, seed: int) -> Tensor:
    """The whole network's vector [P] with the network of this width in it, initialised as if it
    were alone, and zeros.
    """
    import torch

    from lib.engine.flattening import flatten
    from lib.workloads import models

    alone = flatten(models.initialise(models.mlp(INPUTS, width, width, classes=CLASSES), seed))
    count = searches.weights((INPUTS, WIDTH, WIDTH, CLASSES))
    return torch.zeros(count).index_copy_(0, places(width), alone)


def grown(search: Search) -> Method:
    """SGD that grows its network: every trial after each `drawn["stage"]` steps, until all
    doublings are done.
    """
    space = {"learning_rate": Interval(1e-4, 1.0), "stage": STAGE}
    return Method("growing", "growing", space, search.begin, search.step)


def _fresh(widths: tuple[int, ...], layers: tuple[Layer, ...], random) -> Tensor:
    """New weights [P] of one trial, for all growths: V, V in the rows of new units, Z, -Z in the
    columns that they feed.
    """
    import torch

    found = []
    for n, layer in enumerate(layers):
        fresh = torch.zeros(layer.shape)
        for old, new in itertools.pairwise(widths) if len(layer.shape) == 2 else ():
            rows, columns = _extent(n, layer, old), _extent(n, layer, new)
            half = (new - old) // 2
            if n < len(layers) - 2:  # its units grow
                v = torch.randn(half, rows[1], generator=random) / rows[1]
                fresh[old:new, : rows[1]] = torch.cat([v, v])
            if n > 0:  # its inputs grow
                z = torch.randn(columns[0], half, generator=random) / new
                if n < len(layers) - 2:  # rows of a pair are alike here, too
                    z[old + half : new] = z[old : old + half]
                fresh[: columns[0], old:new] = torch.cat([z, -z], 1)
        found.append(fresh.flatten())
    return torch.cat(found)


def _extent(n: int, layer: Layer, width: int) -> tuple[int, int]:
    """Units and inputs of a weight matrix in the network of this width; n: its place among the
    layers.
    """
    return (width if layer.kind != "last" else layer.shape[0]), (width if n else layer.shape[1])


def _membership(widths: tuple[int, ...], layers: tuple[Layer, ...]) -> Tensor:
    """To which part each parameter belongs [P]: matrices in turn, in each the growth with which a
    weight came; biases last.
    """
    import torch

    came = torch.zeros(layers[-1].where.stop, dtype=torch.long)
    for stage, width in reversed([*enumerate(widths)]):
        came[places(width)] = stage
    matrices = [layer for layer in layers if len(layer.shape) == 2]
    part = torch.full_like(came, len(widths) * len(matrices))
    for n, layer in enumerate(matrices):
        part[layer.where] = n * len(widths) + came[layer.where]
    return part


def relative_rates(widths: tuple[int, ...], w: Tensor, layers: tuple[Layer, ...]) -> Tensor:
    """Rates of all weights [T, P] over that of the first part of their matrix: the ratio of their
    norms; of biases, 1.
    """
    import torch

    part = _membership(widths, layers)
    count = int(part.max()) + 1
    squares = w.new_zeros(len(w), count).index_add_(1, part, w.square())
    norms = squares[:, :-1].sqrt().unflatten(1, (-1, len(widths)))
    ratios = (norms / norms[:, :, :1]).flatten(1)
    return torch.cat([ratios, torch.ones_like(ratios[:, :1])], 1).index_select(1, part)


def grow(
    w: Tensor, fresh: Tensor, widths: tuple[int, int], layers: tuple[Layer, ...], scaled: bool
) -> Tensor:
    """The weights w [T, P] after growth from the first of these widths to the second, with what is
    new from fresh [T, P].
    """
    import torch

    before, after = map(places, widths)
    came = after[~torch.isin(after, before)]
    found = w.index_copy(1, came, fresh[:, came])
    for layer in layers[1:] if scaled else ():
        if len(layer.shape) == 2:
            kept = before[(before >= layer.where.start) & (before < layer.where.stop)]
            found[:, kept] *= widths[0] / widths[1]
    return found


def computed(
    steps: np.ndarray, stage: np.ndarray, first: int, doublings: int, batch_size: int
) -> np.ndarray:
    """Multiply-adds in so many steps (NaN where there are none), for trials that grow after every
    `stage` steps.
    """
    total = 0.0
    for n, width in enumerate(_widths(first, doublings)):
        most = stage if n < doublings else np.inf
        adds = searches.multiply_adds((INPUTS, width, width, CLASSES))
        total = total + np.clip(steps - n * stage, 0, most) * adds
    return batch_size * total


def planned() -> tuple[Search, ...]:
    """The whole width and the narrowest from the start, and growth from one to the other by three
    rules.
    """
    arms = [{"first": WIDTH}, {"first": WIDTHS[0]}]
    arms += [
        {"first": WIDTHS[0], "doublings": 2, **rule}
        for rule in ({}, {"by_norm": False}, {"scaled": True})
    ]
    every = itertools.product(REPLICATES, BATCH_SIZES, arms)
    return tuple(
        Search(**arm, batch_size=b, replicate=n, max_steps=MOST_STEPS[b]) for n, b, arm in every
    )


GROWING = searches.collection(
    "growing",
    lambda search: f"width-{'-'.join(map(str, search.widths))}-batch-{search.batch_size}",
    planned,
    "Train networks that grow wider as they go",
)


def results(planned: Iterable[Search]) -> pd.DataFrame:
    """The trials of those searches that have a record, with the searches' fields.

    arm: how the network grew, in words; adds@goal: multiply-adds until the goal was met, beside the
    steps@goal.
    """
    found = GROWING.results(planned)
    found["arm"] = list(map(arm, found["first"], found.doublings, found.scaled, found.by_norm))
    return searches.with_costs(found, ["first", "doublings", "batch_size"], adds=computed)


def arm(first: int, doublings: int, scaled: bool, by_norm: bool) -> str:
    """How a network grows, in words."""
    if not doublings:
        return f"{first} units from the start"
    kept = "function kept" if by_norm else "function kept, one rate"
    return f"{first} to {first * 2**doublings}: {'published rule' if scaled else kept}"
