"""A reader's own training method: a function in a Python file that returns a `Method`, or an
`Optimiser`, by the name "path/to/file.py:function"; tried on a tiny case before any training.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import torch
from torch import Tensor

from lib.methods import optimisers
from lib.methods.intervals import Interval
from lib.methods.method import Layer, Method
from lib.own import OwnError, named, telling
from lib.workloads import own_file
from lib.workloads.own_network import alone

LAYERS = (
    Layer("0.weight", slice(0, 12), (3, 4), "linear"),
    Layer("0.bias", slice(12, 15), (3,)),
    Layer("2.weight", slice(15, 21), (2, 3), "last"),
    Layer("2.bias", slice(21, 23), (2,)),
)
ROWS = 4  # trials
P = 23  # weights
STEPS = 5  # updates
REMOVED = slice(3, 6)  # weights, as pruning leaves them: zero, and without a gradient
# Columns of tables, fields of cells, and what is the engine's
TAKEN = (
    "trial seed status cause last_step best_error best_step sent steps goal workload batch_size "
    "algorithm sparsity pruning trials replicate stop checks hits precision max_steps space "
    "label_smoothing messages split race rungs staleness delays decay_steps end_factor"
).split()


def _require(fine: object, what: str, must: str) -> None:
    if not fine:
        raise OwnError(f"{what} is not allowed; it must {must}")


def load(name: str) -> Method:
    """The method called so, by whatever spelling (`own_file.canonical`), checked; read again if the
    file has changed.

    Raises OwnError for a file or function that is missing or fails, and for a method that the
    engine cannot train with.
    """
    name = own_file.canonical(name, "algorithm")
    return _load(name, own_file.file_of(name, "algorithm").read_bytes())


@functools.lru_cache(maxsize=8)
def _load(name: str, text: bytes) -> Method:
    found = own_file.called(name, text, 1)
    if isinstance(found, optimisers.Optimiser):
        found = optimisers.method(found, name)
    check(name, found)
    return dataclasses.replace(found, name=name, source=own_file.digest(text))


def check(name: str, own: object) -> None:
    """Raise OwnError unless what the function called so returned is a method that can be trained
    with.

    Its fields are of the right kinds, and a few steps end, in place, in finite weights that do not
    hang on chance or on other trials.
    """
    with named(name), telling("on a tiny case it raised"):
        _check_fields(own)
        if own.optimiser is None:
            _check_steps(own)


def _check_fields(own: object) -> None:
    kinds = "be a lib.methods.method.Method, or a lib.methods.optimisers.Optimiser"
    _require(isinstance(own, Method), f"returned value: {type(own).__name__!r}", kinds)
    _require(isinstance(own.title, str) and own.title, f"title: {own.title!r}", "be a text")
    named = isinstance(own.space, dict) and "learning_rate" in own.space
    _require(named, f"space: {own.space!r}", "be a dictionary of intervals with a learning_rate")
    for word, interval in own.space.items():
        free = str(word).isidentifier() and word not in TAKEN
        must = f"be named like a Python variable, and none of {', '.join(sorted(TAKEN))}"
        _require(free, f"space: {word!r}", must)
        must = "be a lib.methods.intervals.Interval"
        _require(isinstance(interval, Interval), f"space[{word!r}]: {interval!r}", must)


def _check_steps(own: Method) -> None:
    rows = torch.arange(ROWS)
    with alone(1):
        whole = _try(own, rows)
    with alone(2):
        again = _try(own, rows)
    with alone(1):
        part = _try(own, rows[1:3])
    for kind, tensor in whole.items():
        finite = "be finite for gradients of about one"
        _require(tensor.isfinite().all(), f"step: a value that is not finite in {kind}", finite)
        same = "be the same whenever it is called, with all that it remembers in its buffers"
        what = f"step: another result in {kind}"
        _require(torch.equal(tensor, again[kind]), f"{what} when it is called again", same)
        close = torch.allclose(tensor[1:3], part[kind], rtol=1e-4, atol=1e-6)
        same = "be the same for a trial whatever others there are"
        _require(close, f"{what} for fewer trials", same)
    moved = any(whole[kind][:, REMOVED].any() for kind in ("w", "evaluated") if kind in whole)
    _require(not moved, "step: a removed weight that moves", "be zero where w and g always were")


class _Bowl:
    """An executor whose loss is half the squared distance of the weights from the mean input."""

    def gradients(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        away = (w - x.mean(0)) * mask
        return away.square().sum(1) / 2, away, torch.ones(len(w), dtype=torch.bool)

    def gradients_with_norms(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor
    ) -> tuple[Tensor, ...]:
        each = (w[:, None] - x) * mask[:, None]
        norms = torch.stack([each[..., layer.where].norm(dim=2).mean(1) for layer in LAYERS], 1)
        return *self.gradients(w, x, y, mask), norms

    def gradients_with_layer_stats(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor, stats: Callable
    ) -> tuple:
        """A layer's inputs and derivatives are columns of the examples, doubled where a trial's
        first weight is positive.
        """
        found = {}
        scale = (w[:, :1, None] > 0) + 1.0
        for layer in LAYERS:
            if layer.kind:
                outputs, inputs = layer.shape
                deltas = scale * x[None, :, -outputs:] / len(x)
                found[layer.name] = stats(x[None, :, :inputs], deltas)
        return *self.gradients(w, x, y, mask), found


def _try(own: Method, rows: Tensor) -> dict[str, Tensor]:
    """The weights and the buffers of these trials after a few steps, and their drift."""
    random = torch.Generator().manual_seed(0)
    mask = torch.ones(ROWS, P)
    mask[:, REMOVED] = 0
    start = torch.randn(ROWS, P, generator=random) * mask
    pushes = torch.randn(STEPS, ROWS, P, generator=random) * mask
    start, mask, w = start[rows], mask[rows], start[rows].clone()
    places = ((rows + 0.5) / ROWS).numpy()
    drawn = {name: torch.from_numpy(axis.at(places)) for name, axis in own.space.items()}
    drawn["batch_size"] = torch.full((len(rows),), 8.0)
    drawn = {name: values.float()[:, None] for name, values in drawn.items()}
    batch = torch.randn(8, P, generator=random), torch.zeros(8, dtype=torch.int64)

    buffers = own.begin(w, LAYERS)
    named = isinstance(buffers, dict) and all(isinstance(b, Tensor) for b in buffers.values())
    must = "return a dictionary of tensors by name"
    _require(named, f"begin: {type(buffers).__name__}", must)
    for name, buffer in buffers.items():
        what = f"begin: {name!r} of shape {tuple(buffer.shape)}"
        _require(len(buffer) == len(rows), what, "have T rows")
        apart = buffer.data_ptr() != w.data_ptr()
        _require(apart, f"begin: {name!r}, which is w itself", "be a copy")
    kinds = _kinds(buffers)
    for k, push in enumerate(pushes, start=1):
        g = push[rows].clone()
        if own.gradient:
            _, g, _ = own.gradient(_Bowl(), w, batch, mask, buffers)
        with torch.no_grad():
            own.step(w, g, buffers, drawn, k, LAYERS)
    _require(not torch.equal(w, start), "step: weights as before", "change w in place")
    same = _kinds(buffers) == kinds
    _require(same, "step: other buffers than begin made", "keep their names, shapes and types")
    found = {f"buffer {name!r}": buffer for name, buffer in buffers.items()} | {"w": w}
    if own.evaluated:
        found["evaluated"] = own.evaluated(w, buffers)
    if own.drift:
        found["drift"] = own.drift(buffers, drawn).expand(w.shape)
    found = {name: tensor.clone() for name, tensor in found.items()}
    if own.drift:
        _check_drift(own, w, buffers, drawn, found["drift"])
    return found


def _kinds(buffers: dict[str, Tensor]) -> dict[str, tuple]:
    return {name: (buffer.shape, buffer.dtype) for name, buffer in buffers.items()}


def _check_drift(
    own: Method, w: Tensor, buffers: dict[str, Tensor], drawn: dict[str, Tensor], drift: Tensor
) -> None:
    """Without gradients, weights go no further than the drift says, and not the other way."""
    before = w.double()
    for k in range(STEPS + 1, STEPS + 101):
        with torch.no_grad():
            own.step(w, torch.zeros_like(w), buffers, drawn, k, LAYERS)
    moved = w.double() - before
    room = 1e-3 * drift.abs() + 1e-5 * (1 + before.abs())
    fine = (moved * drift.sign() >= -room) & (moved.abs() <= drift.abs() + room)
    _require(fine.all(), "drift: less than without gradients", "be a bound, with its sign")
