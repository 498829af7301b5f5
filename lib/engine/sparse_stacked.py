"""Many trials of a small pruned network at once, for the price of the weights that are left.

`Sparse` takes the place of `lib.engine.stacked.Stack` where so few are left that sparse matrix
products are the faster.  Every layer, a convolution too, is one sparse matrix with a block per
trial; activations lie with their examples last.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib.engine import flattening, stacked
from lib.workloads.tasks import TASKS, Task

warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")  # told at every start

# Activations of the widest layer computed at once, did all its units matter: what does fits a
# core's cache
TOGETHER = 2**21


@dataclass(frozen=True)
class Wires:
    """What a layer joins when nothing is pruned: weight[n] joins input column[n] to output row[n];
    by row, then column.

    Inputs and outputs are numbered as the module flattens them; weights, and the bias of every
    output, as by `lib.engine.flattening.flatten`.
    """

    row: Tensor
    column: Tensor
    weight: Tensor
    bias: Tensor
    inputs: int


def wires(module: nn.Sequential, shape: tuple[int, ...]) -> list[Wires]:
    """Those of every layer with weights, for examples of this shape."""
    found, numbers = (
        [],
        iter(
            flattening.unflatten(torch.arange(sum(p.numel() for p in module.parameters())), module)
        ),
    )
    for layer in module:
        if not isinstance(layer, (nn.Linear, nn.Conv2d)):
            continue
        weight, bias = next(numbers).flatten(1), next(numbers)
        inputs = torch.arange(1, math.prod(shape) + 1, dtype=torch.float64)
        if isinstance(layer, nn.Conv2d):
            (k, _), (s, _), (p, _) = layer.kernel_size, layer.stride, layer.padding
            seen = F.unfold(inputs.view(1, *shape), k, padding=p, stride=s)[
                0
            ].T  # [places, elements], 0 where it is padding
            shape = (len(bias), *((side + 2 * p - k) // s + 1 for side in shape[1:]))
        else:
            seen, shape = inputs[None], (len(bias),)
        column = seen.long().expand(len(bias), -1, -1) - 1  # [outputs, places, elements]
        row = torch.arange(len(bias) * len(seen)).view(len(bias), -1, 1).expand_as(column)
        real = column >= 0
        joined = (row[real], column[real], weight[:, None].expand_as(column)[real])
        found.append(Wires(*joined, bias.repeat_interleave(len(seen)), len(inputs)))
    return found


def fits(module: nn.Module, dtype: torch.dtype, device: str) -> bool:
    """Whether `Sparse` can run it: layers with weights and a ReLU between any two, in arithmetic
    that sparse matrices have.

    Their products are those of MKL, which not every PyTorch is built with.
    """
    kinds = (
        [type(m) for m in module if not isinstance(m, nn.Flatten)]
        if isinstance(module, nn.Sequential)
        else []
    )
    alternate = [kind in (nn.Linear, nn.Conv2d) for kind in kinds] == [
        i % 2 == 0 for i in range(len(kinds))
    ]
    known = {*kinds} <= {nn.Linear, nn.Conv2d, nn.ReLU}
    able = (
        dtype in (torch.float32, torch.float64)
        and device == "cpu"
        and torch.backends.mkl.is_available()
    )
    return bool(len(kinds) % 2) and alternate and known and able


def live(layers: list[Wires], mask: Tensor) -> list[Tensor]:
    """Which inputs of every layer, and which outputs of the last, matter: bool [T, units] each, for
    mask [T, P].

    A hidden unit does if the data or a bias feed it and the last layer hears it, by way of weights
    that are left.  The others' gradients are zero.
    """
    kept = mask.bool()
    fed = [kept.new_ones(len(mask), layers[0].inputs)]
    for one in layers:
        fed.append(
            kept[:, one.bias]
            | _any(fed[-1][:, one.column] & kept[:, one.weight], one.row, len(one.bias))
        )
    heard = [torch.ones_like(fed[-1])]
    for one in reversed(layers[1:]):
        heard.insert(0, _any(heard[0][:, one.row] & kept[:, one.weight], one.column, one.inputs))
    return [fed[0], *(f & h for f, h in zip(fed[1:-1], heard[:-1], strict=True)), heard[-1]]


def _any(wire: Tensor, unit: Tensor, units: int) -> Tensor:
    """Whether any of the wires [T, n] of every unit [n] is true: bool [T, units]."""
    return torch.zeros(len(wire), units).index_add_(1, unit, wire.float()) > 0


class Layer:
    """A layer's sparse matrix [live outputs, live inputs] of all trials for the weights that mask
    [T, P] leaves, and its transpose.

    inputs, outputs: bool [T, units], as of `live`.  shared: the inputs are the data, [inputs, B],
    for all trials.
    """

    def __init__(self, wires: Wires, mask: Tensor, inputs: Tensor, outputs: Tensor, shared: bool):
        size, source, target = (
            mask.shape[1],
            *(units.flatten().cumsum(0) - 1 for units in (inputs, outputs)),
        )
        joined = mask[:, wires.weight].bool() & inputs[:, wires.column] & outputs[:, wires.row]
        trial, n = joined.nonzero().T
        row = target[trial * outputs.shape[1] + wires.row[n]]
        column = wires.column[n] if shared else source[trial * wires.inputs + wires.column[n]]
        self.shape = int(outputs.sum()), wires.inputs if shared else int(inputs.sum())
        # Where the values stand in w [T, P], flattened
        self.weight = trial * size + wires.weight[n]
        self.trial, unit = outputs.nonzero().T  # of every row
        self.bias = self.trial * size + wires.bias[unit]
        self.biased = mask.flatten()[self.bias].nonzero()[:, 0]  # the rows whose bias is left
        self.rows, self.columns = _starts(row, self.shape[0]), column.int()
        self.order = torch.argsort(column, stable=True)
        self.turned_rows, self.turned_columns = (
            _starts(column, self.shape[1]),
            row[self.order].int(),
        )

    def matrix(self, values: Tensor) -> Tensor:
        return torch.sparse_csr_tensor(
            self.rows, self.columns, values, self.shape, check_invariants=False
        )

    def transpose(self, values: Tensor) -> Tensor:
        parts = (self.turned_rows, self.turned_columns, values.index_select(0, self.order))
        return torch.sparse_csr_tensor(*parts, self.shape[::-1], check_invariants=False)


def _starts(line: Tensor, size: int) -> Tensor:
    """Where each row of a compressed matrix starts, and the end, given the row of every entry."""
    return F.pad(torch.bincount(line, minlength=size).cumsum(0), (1, 0)).int()


class Sparse(stacked.Stack):
    """As `Stack`, for layers with a ReLU between any two: gradients are computed of the weights
    that a mask leaves alone.
    """

    def __init__(
        self,
        module: nn.Module,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        smoothing: float = 0,
        task: Task = TASKS["classification"],
    ):
        super().__init__(module, dtype, device, smoothing, task)
        if not fits(module, dtype, device):
            raise ValueError(
                f"model: {type(module).__name__} in {dtype} on {device} has no sparse executor; use Stack"
            )
        self.mask, self.size, self.groups = None, 0, []

    def gradients(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `Loop.gradients`, but who is alive only asks the units that matter (`live`); `all_off`
        asks all.
        """
        if mask is None:
            return super().gradients(w, x, y)
        if mask is not self.mask:  # the first, or trials have left
            every = wires(self.module, x.shape[1:])
            self.size = max(1, TOGETHER // (len(x) * max(len(one.bias) for one in every)))
            self.groups = [self._layers(every, rows) for rows in mask.split(self.size)]
            self.mask = mask
        inputs, w = x.flatten(1).T.contiguous(), w.to(self.dtype)
        gradients = torch.zeros_like(w)
        groups = zip(w.split(self.size), gradients.split(self.size), self.groups, strict=True)
        losses, alive = zip(*(self._group(*group, inputs, y) for group in groups), strict=True)
        return torch.cat(losses), gradients.float(), torch.cat(alive)

    @staticmethod
    def _layers(every: list[Wires], mask: Tensor) -> list[Layer]:
        units = live(every, mask)
        return [Layer(one, mask, *units[n : n + 2], n == 0) for n, one in enumerate(every)]

    def _group(
        self, w: Tensor, gradients: Tensor, layers: list[Layer], x: Tensor, y: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Losses [T] and who is alive [T] of some of the trials, for x [inputs, B]; adds to their
        gradients [T, P].
        """
        # Four times as fast as w[...]
        values = [w.view(-1).index_select(0, layer.weight) for layer in layers]
        hidden, h = [], x
        for layer, kept in zip(layers, values, strict=True):
            hidden.append(torch.relu_(h) if hidden else h)
            h = h.new_empty(layer.shape[0], len(y))
            if len(layer.biased):
                h.copy_(w.view(-1).index_select(0, layer.bias)[:, None])
            h.addmm_(layer.matrix(kept), hidden[-1], beta=min(len(layer.biased), 1))
        logits = h.unflatten(0, (len(w), -1)).movedim(1, 2)
        losses, error = self.task.derivative(logits, y, self.smoothing)
        d, flat = error.to(self.dtype).movedim(2, 1).flatten(0, 1), gradients.view(-1)
        for n, layer in reversed(list(enumerate(layers))):
            slope = torch.sparse.sampled_addmm(
                layer.matrix(values[n]), d, hidden[n].T, beta=0
            ).values()
            flat.index_add_(0, layer.weight, slope)
            if len(layer.biased):
                flat.index_add_(0, layer.bias[layer.biased], d[layer.biased].sum(1))
            if n:
                d = torch.empty_like(hidden[n]).addmm_(layer.transpose(values[n]), d, beta=0)
                torch.ops.aten.threshold_backward.grad_input(d, hidden[n], 0, grad_input=d)
        if len(layers) == 1:
            return losses[0], x.any().expand(len(w))
        on = hidden[-1].amax(1) > 0  # ten times as fast as any(1)
        return losses[0], _any(on[None], layers[-2].trial, len(w))[0]
