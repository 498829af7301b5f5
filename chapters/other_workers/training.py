"""How parts of a network are trained with SGD: parts divided among workers, networks that grow,
and two halves one after the other.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable

import torch
from torch import Tensor

from chapters.other_workers.sizes import CLASSES, INPUTS, UNITS, WIDTHS
from lib.engine import batched, flattening
from lib.measuring import one_search
from lib.methods import METHODS
from lib.methods.method import Layer, Method
from lib.workloads import models


def joined(combine: Callable, *units: Tensor) -> Tensor:
    """Values of parameters [P] from values of units: weights combine two, biases take one."""
    layers = []
    for fan_in, out in itertools.pairwise(units):
        layers += [combine(out[:, None], fan_in).flatten(), out]
    return torch.cat(layers)


class Parts:
    """Independent subnetworks: in every round, workers train disjoint parts of one network, each on
    separate batches (Yuan et al. 2022; theory: Shulgin and Richtárik 2023).

    A worker trains the weights from the inputs to its units, between these, and to the outputs,
    with hidden activations scaled by the number of workers.  All use the output biases; the first
    worker trains them, the others keep them fixed, so no weight has two owners.

    method: SGD with the parts' gradients.  sent: numbers that a worker sends back after a round,
    the mean over workers.
    """

    def __init__(self, search):
        self.search, self.step, self.width = search, 0, WIDTHS[search.workload]
        small = models.mlp(INPUTS, *2 * [self.width // search.workers])  # a worker's network
        self.small = batched.BatchedExecutor(small)
        # Factor on its weights in use, in place of scaling the activations that they multiply
        self.scale = torch.ones(sum(p.numel() for p in small.parameters()))
        for layer in flattening.layers(small)[2::2]:
            self.scale[layer.where] = search.workers
        self.sent = len(self.scale) - CLASSES * (1 - 1 / search.workers)
        self.method = dataclasses.replace(
            METHODS["sgd"],
            gradient=self.gradient,
            begin=lambda w, layers: {"biases": w[:, -CLASSES:].clone()},
        )

    def owners(self, turn: int) -> list[Tensor]:
        """The worker that owns each unit of each hidden layer in round number `turn`, from 0."""
        random = torch.Generator().manual_seed(1_000_003 * self.search.replicate + turn)
        places = [torch.randperm(self.width, generator=random).argsort() for _ in range(2)]
        return [place // (self.width // self.search.workers) for place in places]

    def gradient(self, executor, w, batch, mask, buffers) -> tuple:
        """As in `lib.methods.method.Method`; each worker has its share of the batch."""
        turn, of_round = divmod(self.step, self.search.local_steps)
        workers = range(self.search.workers)
        if not of_round:
            ends, owners = torch.ones(INPUTS).bool(), self.owners(turn)
            hidden = ([owner == k for owner in owners] for k in workers)
            parts = (
                joined(torch.logical_and, ends, *units, ends[:CLASSES]) for units in hidden
            )
            self.now = [part.nonzero()[:, 0] for part in parts]
            buffers["biases"] = w[:, -CLASSES:].clone()
        self.step += 1
        total, losses = torch.zeros_like(w), []
        shares = zip(self.now, *(part.chunk(len(workers)) for part in batch), strict=True)
        for k, (where, *share) in enumerate(shares):
            part = w.index_select(1, where).mul_(self.scale)
            owned = len(where) - (CLASSES if k else 0)
            part[:, owned:] = buffers["biases"][:, : len(where) - owned]
            loss, g, _ = self.small.gradients(part, *share)
            losses.append(loss)
            total.index_copy_(1, where[:owned], g.mul_(self.scale)[:, :owned])
        # Units off in the whole network may be on in a part, so no trial can be declared dead
        return torch.stack(losses).mean(0), total, torch.ones(len(w), dtype=torch.bool)


STAGES = (16, 32, 64)  # widths of both hidden layers, by stage


def growing(search, w: Tensor) -> tuple[Tensor, Method]:
    """Training begins with narrow hidden layers, which are doubled on the way (Yuan et al. 2023).

    New units come in pairs with the same incoming weights V and outgoing weights Z and -Z.  V is
    normal with standard deviation 1 / fan-in before the growth, Z with 1 / width after it; biases
    start at zero.  A unit that has not grown yet has zero weights in and out, hence gradients of
    exactly zero: the whole network, w [T, P], trains as the narrow one would.

    Returns the weights from which trials start, and a method whose buffer fresh [T, P] holds the
    initial value of every new weight.
    """

    def begin(w, layers):
        if not search.doublings:
            return {}
        random = torch.Generator().manual_seed(search.replicate)
        return {"fresh": torch.stack([_fresh(random) for _ in w])}

    def step(w, g, buffers, drawn, k, layers):
        if search.doublings and search.by_norm:
            g.mul_(relative_rates(w, layers))
        w.addcmul_(g, drawn["learning_rate"], value=-1)
        for n in range(1, 1 + search.doublings):
            due = (drawn["stage"][:, 0] * n == k).nonzero()[:, 0]
            if len(due):
                w[due] = grow(w[due], buffers["fresh"][due], n, layers, search.scaled)

    w = w if search.first == UNITS else narrow(one_search.seeds(search.cell))
    return w, dataclasses.replace(METHODS["sgd"], begin=begin, step=step, drift=None)


@functools.cache
def births() -> Tensor:
    """The growth at which each parameter is added [P]; 0: it is there from the start."""
    hidden = torch.bucketize(torch.arange(UNITS), torch.tensor(STAGES), right=True)
    none = torch.zeros(INPUTS, dtype=torch.long)
    return joined(torch.maximum, none, hidden, hidden, none[:CLASSES])


def narrow(seeds: list[int]) -> Tensor:
    """Weights [T, P] that contain the narrowest network, initialised as if it were alone."""
    nets = [models.initialise(models.mlp(INPUTS, *2 * STAGES[:1]), seed) for seed in seeds]
    w = torch.zeros(len(seeds), len(births()))
    w[:, births() == 0] = torch.stack([flattening.flatten(net) for net in nets])
    return w


def _fresh(random) -> Tensor:
    """New weights [P] of one trial, for all growths."""
    layers = []
    for n, (fan_in, out) in enumerate([(INPUTS, UNITS), (UNITS, UNITS), (UNITS, CLASSES)]):
        fresh = torch.zeros(out, fan_in)
        for old, new in itertools.pairwise(STAGES):
            half, inputs = old // 2, old if n else fan_in
            if n < 2:  # the layer's units grow
                v = torch.randn(half, inputs, generator=random) / inputs
                fresh[old:new, :inputs] = torch.cat([v, v])
            if n > 0:  # the layer's inputs grow
                z = torch.randn(min(new, out), half, generator=random) / new
                z[old + half : new] = z[old : old + half]  # rows of a pair are equal here, too
                fresh[:new, old:new] = torch.cat([z, -z], 1)
        layers += [fresh.flatten(), torch.zeros(out)]
    return torch.cat(layers)


def relative_rates(w: Tensor, layers: tuple[Layer, ...]) -> Tensor:
    """Relative rates [T, P]: per matrix, the norm of each growth over the first; 1 for biases."""
    part = births().clone()
    for n, layer in enumerate(layers):
        part[layer.where] += n * len(STAGES)
    squares = w.new_zeros(len(w), len(layers) * len(STAGES)).index_add_(1, part, w.square())
    norms = squares.sqrt().unflatten(1, (len(layers), -1))
    ratios = norms / norms[:, :, :1]
    ratios[:, 1::2] = 1  # a matrix and its biases take turns
    return ratios.flatten(1).index_select(1, part)


def grow(w: Tensor, fresh: Tensor, n: int, layers: tuple[Layer, ...], scaled: bool) -> Tensor:
    """The weights w [T, P] after growth number n (from 1), with new ones from fresh [T, P]."""
    grown = fresh.where(births() == n, w)
    for layer in layers[2::2] if scaled else ():  # a matrix and its biases take turns
        grown[:, layer.where][:, births()[layer.where] < n] *= 0.5
    return grown


LEFT = 2  # layers in the left half
CUT = LEFT * UNITS * (UNITS + 1)  # weights in the left half
LEFT_ONLY, RIGHT_ONLY, WHOLE = 0, 1, 2  # what is trained


def halves(search, w: Tensor) -> tuple[Tensor, Method]:
    """Synthetic intermediate labels: training half by half (Karadağ and Topaloğlu 2024).

    The left half learns to output the code of an example's class: for every unit a random number,
    uniform on [0, 1), as others summarise the paper.  Then the right half learns the labels from
    the outputs of the left half, which is frozen.  The choice of one rate for both halves, and of
    as many steps for the right half as for the left, is ours.

    Returns w, and a method with buffers codes [T, classes, units] and part [T, 1]: what is trained.
    """

    def begin(w, layers):
        random = torch.Generator().manual_seed(search.replicate)
        codes = torch.rand(len(w), CLASSES, UNITS, generator=random)
        part = torch.full((len(w), 1), WHOLE if search.arm == "whole" else LEFT_ONLY)
        return {"codes": codes, "part": part}

    def step(w, g, buffers, drawn, k, layers):
        w.addcmul_(g, drawn["learning_rate"], value=-1)
        if search.arm != "whole":
            last = WHOLE if search.arm == "recovered" else RIGHT_ONLY
            buffers["part"] = (k / drawn["stage"]).long().clamp(max=last)

    def gradient(executor, w, batch, mask, buffers):
        losses, g, alive = executor.gradients(w, *batch)
        part = buffers["part"]
        left = part[:, 0] == LEFT_ONLY
        g[:, :CUT] *= part == WHOLE
        g[:, CUT:] *= part != LEFT_ONLY
        if left.any():
            g[left, :CUT] = left_gradient(w[left, :CUT], *batch, buffers["codes"][left])
        return losses, g, alive

    return w, dataclasses.replace(METHODS["sgd"], begin=begin, step=step, gradient=gradient)


def left_gradient(w: Tensor, x: Tensor, y: Tensor, codes: Tensor) -> Tensor:
    """Gradients [T, CUT] of half the squared distance from outputs to codes, the mean over x, y."""
    with torch.enable_grad():
        w = w.detach().requires_grad_()
        h = x.flatten(1).expand(len(w), -1, -1)
        for layer in w.chunk(LEFT, 1):
            matrix = layer[:, :-UNITS].unflatten(1, (UNITS, UNITS))
            h = torch.baddbmm(layer[:, None, -UNITS:], h, matrix.mT).relu()
        loss = (h - codes[:, y]).square().sum() / (2 * len(y))
        return torch.autograd.grad(loss, w)[0]
