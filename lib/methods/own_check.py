"""A reader's own training method, tried on a tiny case before any compute is spent."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from lib.methods.intervals import Interval
from lib.methods.method import Layer, Method
from lib.own import OwnError, raised
from lib.workloads.own_network import alone

LAYERS = (
    Layer("0.weight", slice(0, 12), (3, 4), "linear"),
    Layer("0.bias", slice(12, 15), (3,)),
    Layer("2.weight", slice(15, 21), (2, 3), "last"),
    Layer("2.bias", slice(21, 23), (2,)),
)
ROWS, P, STEPS = 4, 23, 5  # trials, weights, updates
REMOVED = slice(3, 6)  # weights, as pruning leaves them: zero, and without a gradient
TAKEN = {  # columns of tables, fields of cells, and what is the engine's
    "trial",
    "seed",
    "status",
    "cause",
    "last_step",
    "best_error",
    "best_step",
    "sent",
    "steps",
    "goal",
    "workload",
    "batch_size",
    "algorithm",
    "sparsity",
    "pruning",
    "trials",
    "replicate",
    "stop",
    "checks",
    "hits",
    "precision",
    "max_steps",
    "space",
    "label_smoothing",
    "messages",
    "split",
    "race",
    "rungs",
    "staleness",
    "delays",
    "decay_steps",
    "end_factor",
}


class _Bowl:
    """An executor whose loss is half the squared distance of the weights from those of the labels'
    trials.
    """

    def gradients(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        away = (w - x.mean(0)) * (1 if mask is None else mask)
        return away.square().sum(1) / 2, away, torch.ones(len(w), dtype=torch.bool)

    def gradients_with_norms(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        each = (w[:, None] - x) * (1 if mask is None else mask[:, None])
        norms = torch.stack([each[..., layer.where].norm(dim=2).mean(1) for layer in LAYERS], 1)
        return *self.gradients(w, x, y, mask), norms

    def gradients_with_layer_stats(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None, look: Callable
    ) -> tuple:
        """A layer's inputs and derivatives are columns of the examples, doubled where a trial's
        first weight is positive.
        """
        looks, scale = {}, (w[:, :1, None] > 0) + 1.0
        for layer in (each for each in LAYERS if each.kind):
            outputs, inputs = layer.shape
            looks[layer.name] = look(x[None, :, :inputs], scale * x[None, :, -outputs:] / len(x))
        return *self.gradients(w, x, y, mask), looks


def check_fields(name: str, own: object) -> None:
    """Raise OwnError unless the function has returned a method whose fields are of the right kinds."""

    def fits(fine: object, field: str, value: object, allowed: str) -> None:
        if not fine:
            raise OwnError(f"{name}: {field}: {value!r} is not allowed; it must be {allowed}")

    fits(
        isinstance(own, Method),
        "returned value",
        type(own).__name__,
        "a lib.methods.method.Method, or a lib.methods.optimisers.Optimiser",
    )
    fits(isinstance(own.title, str) and own.title, "title", own.title, "a text")
    fits(
        isinstance(own.space, dict) and "learning_rate" in own.space,
        "space",
        own.space,
        "a dictionary of intervals with a learning_rate",
    )
    for word, interval in own.space.items():
        fine = isinstance(word, str) and word.isidentifier() and word not in TAKEN
        fits(
            fine,
            "space",
            word,
            f"named like a Python variable, and none of {', '.join(sorted(TAKEN))}",
        )
        fits(
            isinstance(interval, Interval),
            f"space[{word!r}]",
            interval,
            "a lib.methods.intervals.Interval",
        )
    for field in ("begin", "step", "gradient", "drift", "evaluated"):
        value = getattr(own, field)
        fine = callable(value) or value is None and field not in ("begin", "step")
        fits(
            fine,
            field,
            value,
            "a function" if field in ("begin", "step") else "a function, or None",
        )


def check_steps(own: Method) -> None:
    """Raise OwnError unless a few steps end, in place, in finite weights that do not hang on chance
    or on other trials.
    """
    rows, each = torch.arange(ROWS), []
    with _telling(own):
        for chosen, seed in ((rows, 1), (rows, 2), (rows[1:3], 1)):
            with alone(seed):
                each.append(_tried(own, chosen))
    whole, again, part = each

    def fits(fine: object, what: str, allowed: str) -> None:
        if not fine:
            raise OwnError(f"{own.name}: step: {what} is not allowed; it must be {allowed}")

    for kind, tensor in whole.items():
        fits(
            tensor.isfinite().all(),
            f"a value that is not finite in {kind}",
            "finite for gradients of about one",
        )
        fits(
            torch.equal(tensor, again[kind]),
            f"another result in {kind} when it is called again",
            "the same whenever it is called, with all that it remembers in its buffers",
        )
        fits(
            torch.allclose(tensor[1:3], part[kind], rtol=1e-4, atol=1e-6),
            f"another result in {kind} for fewer trials",
            "the same for a trial whatever others there are",
        )
    placed = torch.stack([whole[kind] for kind in ("w", "evaluated") if kind in whole])
    fits(
        not placed[..., REMOVED].any(),
        "a removed weight that moves",
        "zero where weight and gradient always were",
    )


@contextlib.contextmanager
def _telling(own: Method) -> Iterator[None]:
    try:
        yield
    except OwnError:
        raise
    except (Exception, SystemExit) as error:
        raise OwnError(f"{own.name}: on a tiny case it raised {raised(error)}") from error


def _tried(own: Method, rows: Tensor) -> dict[str, Tensor]:
    """The weights and the buffers of these trials after a few steps, and their drift."""

    def fits(fine: object, field: str, allowed: str) -> None:
        if not fine:
            raise OwnError(f"{own.name}: {field} is not allowed; it must {allowed}")

    random = torch.Generator().manual_seed(0)
    mask = torch.ones(ROWS, P)
    mask[:, REMOVED] = 0
    start, pushes = (
        torch.randn(ROWS, P, generator=random) * mask,
        torch.randn(STEPS, ROWS, P, generator=random) * mask,
    )
    w, mask, places = (
        start[rows].clone(),
        mask[rows],
        ((torch.arange(ROWS) + 0.5) / ROWS)[rows].numpy(),
    )
    drawn = {
        name: torch.from_numpy(axis.at(places)).float()[:, None] for name, axis in own.space.items()
    }
    drawn["batch_size"] = torch.full((len(rows), 1), 8.0)
    batch = torch.randn(8, P, generator=random), torch.zeros(8, dtype=torch.int64)

    buffers = own.begin(w, LAYERS)
    named = isinstance(buffers, dict) and all(
        isinstance(k, str) and isinstance(v, Tensor) for k, v in buffers.items()
    )
    fits(named, f"begin: {type(buffers).__name__}", "return a dictionary of tensors by name")
    for name, buffer in buffers.items():
        fits(
            len(buffer) == len(rows),
            f"begin: {name!r} of shape {tuple(buffer.shape)}",
            "have a row for each trial",
        )
        fits(buffer.data_ptr() != w.data_ptr(), f"begin: {name!r}, which is w itself", "be a copy")
    fits(torch.equal(w, start[rows]), "begin: other weights", "leave them alone")
    kinds = {name: (buffer.shape, buffer.dtype) for name, buffer in buffers.items()}
    for k, push in enumerate(pushes, start=1):
        g = push[rows].clone()
        if own.gradient:
            losses, g, alive = own.gradient(_Bowl(), w, batch, mask, buffers)
            shapes = losses.shape, g.shape, alive.shape
            fine = shapes == ((len(rows),), w.shape, (len(rows),))
            fits(
                fine,
                f"gradient: shapes {shapes}",
                "return losses [T], gradients [T, P] and who is alive [T]",
            )
        with torch.no_grad():
            own.step(w, g, buffers, drawn, k, LAYERS)
    fits(not torch.equal(w, start[rows]), "step: weights as before", "change w in place")
    same = {name: (buffer.shape, buffer.dtype) for name, buffer in buffers.items()} == kinds
    fits(same, "step: other buffers than begin made", "keep their names, shapes and types")
    found = {
        "w": w.clone(),
        **{f"buffer {name!r}": buffer.clone() for name, buffer in buffers.items()},
    }
    if own.evaluated:
        found["evaluated"] = own.evaluated(w, buffers).clone()
        fits(
            found["evaluated"].shape == w.shape, "evaluated: another shape", "return weights [T, P]"
        )
    if own.drift:
        found["drift"] = own.drift(buffers, drawn).expand(w.shape)
        _check_drift(own, w, buffers, drawn, found["drift"].clone())
    return found


def _check_drift(
    own: Method, w: Tensor, buffers: dict[str, Tensor], drawn: dict[str, Tensor], drift: Tensor
) -> None:
    """Raise OwnError if, without gradients, weights go further than the drift says, or the other
    way.
    """
    before = w.double()
    for k in range(STEPS + 1, STEPS + 101):
        with torch.no_grad():
            own.step(w, torch.zeros_like(w), buffers, drawn, k, LAYERS)
    moved = w.double() - before
    room = 1e-3 * drift.abs() + 1e-5 * (1 + before.abs())
    if not ((moved * drift.sign() >= -room) & (moved.abs() <= drift.abs() + room)).all():
        raise OwnError(
            f"{own.name}: drift: less than without gradients is not allowed; it must be a bound, with its sign"
        )
