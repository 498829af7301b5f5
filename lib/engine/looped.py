"""Any module, one trial after another: for networks that fill a core by themselves."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib.engine import example_norms
from lib.engine.flattening import cast, flatten, head, is_product, memory_order, outputs, unflatten
from lib.workloads.tasks import TASKS, Task

TOGETHER = 2**24  # entries of examples' own gradients computed at once


class RowError(RuntimeError):
    """A network raised in the trial of row `row`; the cause is its exception."""

    def __init__(self, row: int, cause: Exception):
        super().__init__(f"row {row}: {type(cause).__name__}: {cause}")
        self.row = row


@contextlib.contextmanager
def naming(row: int):
    try:
        yield
    except Exception as error:
        raise RowError(row, error) from error


@contextlib.contextmanager
def _watching(layers: dict[str, nn.Module]):
    """Pairs of inputs and derivatives of each layer, as of `Loop.watched`, once the backward pass
    is through.
    """
    seen = {name: [] for name in layers}

    def hook(name: str, layer: nn.Module, inputs: tuple, out: Tensor) -> None:
        h = _rows_in(layer, inputs[0].detach())
        out.register_hook(lambda d: seen[name].append((h, _rows_out(layer, d.detach()))))

    handles = [m.register_forward_hook(functools.partial(hook, name)) for name, m in layers.items()]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# [B, place, element, C]
def _rows_in(layer: nn.Module, h: Tensor) -> Tensor:
    """A layer's inputs [B, ..., C], or a convolution's [B, C, H, W], as rows [N, inputs]."""
    if isinstance(layer, nn.Linear):
        return h.flatten(0, -2)
    patches = F.unfold(h, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
    return patches.unflatten(1, (h.shape[1], -1)).permute(0, 3, 2, 1).flatten(2).flatten(0, 1)


def _rows_out(layer: nn.Module, d: Tensor) -> Tensor:
    return d.flatten(0, -2) if isinstance(layer, nn.Linear) else d.movedim(1, -1).flatten(0, -2)


class Loop:
    """One trial after another through `module`, in `dtype` arithmetic with float32 weights outside.

    smoothing: the share of the target that label smoothing spreads evenly over all classes.  task:
    what is asked for.
    """

    def __init__(
        self,
        module: nn.Module,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        smoothing: float = 0,
        task: Task = TASKS["classification"],
    ):
        module = module.to(device=device, memory_format=torch.channels_last)
        self.module, self.dtype, self.classes = module, dtype, head(module).out_features
        self.smoothing, self.task = smoothing, task
        self.normalised = any(
            isinstance(m, nn.modules.batchnorm._BatchNorm) for m in module.modules()
        )
        self.w = flatten(module).to(device=device, dtype=dtype)
        self.g = torch.zeros_like(self.w)
        for p, w, g in zip(
            module.parameters(), unflatten(self.w, module), unflatten(self.g, module), strict=True
        ):
            p.data = w
            p.grad = g
        head(module).register_forward_pre_hook(self._keep_features)

    def _keep_features(self, _, inputs):
        self.features = inputs[0].detach()

    def inputs(self, x: Tensor) -> Tensor:
        """x as the network takes it (`flattening.cast`); convert a data set once."""
        x = cast(x, self.dtype).to(self.w.device)
        return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x

    def gradients(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The task's mean loss, its gradient, and which trials are alive, for w [T, P], x [B, ...],
        y [B, ...].

        Returns losses [T], gradients [T, P], alive [T] (False where the last layer's inputs are
        zero on the batch: then nothing but its bias has a gradient, and the backward pass is
        spared). mask [T, P]: gradients are zero where it is; a weight must be, too.
        """
        losses, gradients = w.new_empty(len(w)), torch.zeros_like(w)
        alive = torch.ones(len(w), dtype=torch.bool, device=w.device)
        for t, row in enumerate(w):
            self.w.copy_(row)
            with naming(t):
                logits = self.module(x).float()
            if self.features.any():
                loss = self.task.loss(logits, y, self.smoothing)
                self.g.zero_()
                loss.backward()
                gradients[t] = self.g
            else:
                loss, slope = self.task.derivative(logits.detach()[None], y, self.smoothing)
                gradients[t, -self.classes :] = slope.flatten(0, -2).sum(0)
                alive[t] = False
            losses[t] = loss.detach()
        return losses, gradients if mask is None else gradients.mul_(mask), alive

    def watched(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None, look: Callable
    ) -> tuple[Tensor, Tensor, Tensor, dict]:
        """As `gradients`; fourth, what a method asks of its layers (`flattening.is_product`), by
        the names of their weights.

        That is look(h, d), a tuple of tensors with a row per trial, for the layer's inputs h
        [trials, N, inputs] and the derivatives d [trials, N, outputs] of the mean loss by its
        outputs.  N counts examples and, within each, the places of a convolution, whose inputs are
        patches in the order of the kernel as it lies in w.
        """
        losses, gradients, looks = w.new_empty(len(w)), torch.zeros_like(w), []
        alive = torch.ones(len(w), dtype=torch.bool, device=w.device)
        for t, (seen, loss) in enumerate(self._passes(w, x, y)):
            looks.append(
                {
                    f"{name}.weight": look(*(torch.cat(rows)[None] for rows in zip(*pairs)))
                    for name, pairs in seen.items()
                }
            )
            losses[t], gradients[t], alive[t] = loss, self.g, self.features.any()
        found = {
            name: tuple(map(torch.cat, zip(*(each[name] for each in looks)))) for name in looks[0]
        }
        return losses, gradients if mask is None else gradients.mul_(mask), alive, found

    def _passes(self, w: Tensor, x: Tensor, y: Tensor) -> Iterator[tuple[dict[str, list], Tensor]]:
        """Trial by trial, what its products have seen (`_watching`), by their names, and its loss;
        its gradient is in self.g.
        """
        layers = {name: m for name, m in self.module.named_modules() if is_product(m)}
        for t, row in enumerate(w):
            self.w.copy_(row)
            self.g.zero_()
            with naming(t), _watching(layers) as seen:
                loss = self.task.loss(self.module(x).float(), y, self.smoothing)
                loss.backward()
            yield seen, loss.detach()

    def gradients_with_norms(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """As `gradients`, and fourth the norms of examples' own gradients, meant over the batch:
        [T, parameter tensors].

        Raises ValueError for a network with batch normalisation, in which an example has no
        gradient of its own.
        """
        if self.normalised:
            raise ValueError(
                "model: batch normalisation is not allowed where examples' own gradients are asked for"
            )
        losses, gradients, norms = w.new_empty(len(w)), torch.zeros_like(w), []
        alive = torch.ones(len(w), dtype=torch.bool, device=w.device)
        for t, (seen, loss) in enumerate(self._passes(w, x, y)):
            losses[t], gradients[t], alive[t] = loss, self.g, self.features.any()
            kept = None if mask is None else mask[t]
            simple = self._of_products(seen)
            norms.append(
                self._norms_of_products(seen, len(y), kept)
                if simple
                else self._norms_one_by_one(w[t], x, y, kept)
            )
        return (
            losses,
            gradients if mask is None else gradients.mul_(mask),
            alive,
            torch.stack(norms).to(w),
        )

    def _of_products(self, seen: dict[str, list]) -> bool:
        """Whether all parameters are weights and biases of products that were taken once."""
        theirs = {f"{name}.{leaf}" for name in seen for leaf in ("weight", "bias")}
        return theirs == {name for name, _ in self.module.named_parameters()} and all(
            len(pairs) == 1 for pairs in seen.values()
        )

    def _norms_of_products(
        self, seen: dict[str, list], examples: int, mask: Tensor | None
    ) -> Tensor:
        """[parameter tensors], from what every product has seen: `example_norms`.  mask [P]."""
        kept = None if mask is None else iter(unflatten(mask, self.module))
        found = []
        for ((h, d),) in seen.values():
            weight, bias = (
                (None, None)
                if kept is None
                else (memory_order(next(kept)).flatten(1)[None], next(kept)[None])
            )
            inputs, deltas = (rows.unflatten(0, (examples, -1))[None] for rows in (h, d))
            found += example_norms.of_layer(inputs, deltas, weight, bias)
        return torch.cat(found).sum(1)  # since the deltas are shares of a mean

    def _norms_one_by_one(self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None) -> Tensor:
        """[parameter tensors], from every example's own gradient.  w, mask [P]."""
        sizes = [p.numel() for p in self.module.parameters()]
        total, size = w.new_zeros(len(sizes)), max(1, TOGETHER // len(w))
        for some in zip(x.split(size), y.split(size), strict=True):
            each = self._each(w.to(self.dtype), *some).float()
            each = each if mask is None else each * mask
            total += torch.stack([part.norm(dim=1).sum() for part in each.split(sizes, 1)])
        return total / len(y)

    def _each(self, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """The gradient of every example's own loss [B, P] at weights w [P]."""

        def loss(w, one, target):
            return self.task.loss(
                outputs(self.module, w, one[None]).float(), target[None], self.smoothing
            )

        return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(w, x, y)

    def shares(self, w: Tensor, x: Tensor, y: Tensor, parts: int) -> tuple[Tensor, Tensor, Tensor]:
        """The same for every part of a batch that is shared out evenly: losses [parts, T],
        gradients [parts, T, P], alive.
        """
        found = [
            self.gradients(w, *part) for part in zip(x.chunk(parts), y.chunk(parts), strict=True)
        ]
        return tuple(torch.stack(each) for each in zip(*found, strict=True))

    @torch.no_grad()
    def logits(self, w: Tensor, x: Tensor) -> Tensor:
        """Outputs [T, B, ..., classes] in float32."""
        out = []
        for t, row in enumerate(w):
            self.w.copy_(row)
            with naming(t):
                out.append(self.module(x).float())
        return torch.stack(out)

    @torch.no_grad()
    def all_off(self, w: Tensor, x: Tensor) -> bool:
        """Whether the last layer's inputs are zero for every example of x [N, ...] at the weights w
        [P].
        """
        self.w.copy_(w)
        for part in x.split(1024):
            self.module(part)
            if self.features.any():
                return False
        return True
