"""A reader's own training method: a function in a Python file that returns a `Method` or an
`Optimiser`, named "path/to/file.py:function"; tried on a tiny case before any training.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated

import torch
from annotated_types import MinLen, Predicate
from torch import Tensor

from lib import fields
from lib.methods import optimisers
from lib.methods.intervals import Interval
from lib.methods.method import Layer, Method
from lib.own import named, require, telling
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
REMOVED = slice(3, 6)  # weights, as if pruned: zero, and without a gradient
# Columns of tables, fields of searches, and names that the engine uses
TAKEN = (
    "trial seed status cause last_step best_error best_step sent steps goal workload batch_size "
    "algorithm sparsity pruning trials replicate stop checks hits precision max_steps space "
    "label_smoothing messages split race rungs staleness delays decay_steps end_factor"
).split()
TITLE = Annotated[str, MinLen(1)]
NAME = Annotated[str, Predicate(lambda word: word.isidentifier() and word not in TAKEN)]
SPACE = fields.InWords(
    Annotated[dict[NAME, Interval], Predicate(lambda space: "learning_rate" in space)],
    "a dictionary of lib.methods.intervals.Interval with a learning_rate, whose keys are Python "
    f"names other than {', '.join(TAKEN)}",
)


def load(name: str) -> Method:
    """The method of this name, in any spelling (`own_file.canonical`), checked; read again if the
    file has changed.  Its drift is dropped, since it is unproven: no trial is declared dead.

    Raises OwnError for a file or function that is missing or fails, and for a method that the
    engine cannot use.
    """
    name = own_file.canonical(name, "algorithm")
    return _load(name, own_file.file_of(name, "algorithm").read_bytes())


@functools.lru_cache(maxsize=8)
def _load(name: str, text: bytes) -> Method:
    made = own_file.called(name, text, 1)
    if isinstance(made, optimisers.Optimiser):
        made = optimisers.method(made, name)
    check(name, made)
    return dataclasses.replace(made, name=name, source=own_file.digest(text), drift=None)


def check(name: str, method: object) -> None:
    """Raise OwnError unless what the function of this name returned is a method that the engine can
    use.

    Its fields must be of the right kinds.  If it steps from plain gradients, a few steps, in place,
    must give finite weights that depend neither on chance nor on other trials.
    """
    with named(name):
        allowed = "a lib.methods.method.Method, or a lib.methods.optimisers.Optimiser"
        require(isinstance(method, Method), "returned value", type(method).__name__, allowed)
        fields.check("title", method.title, TITLE)
        fields.check("space", method.space, SPACE)
        if method.optimiser is None and method.gradient is None:
            with telling("trying it out raised"):
                _check_steps(method)


def _check_steps(method: Method) -> None:
    rows = torch.arange(ROWS)
    results = []
    for seed, subset in ((1, rows), (2, rows), (1, rows[1:3])):
        with alone(seed):
            results.append(_try(method, subset))
    first, again, part = results
    for kind, tensor in first.items():
        fault = f"a result in {kind} that changes in a second call or with fewer trials, or "
        fine = tensor.isfinite().all() and torch.equal(tensor, again[kind])
        fine = fine and torch.allclose(tensor[1:3], part[kind], rtol=1e-4, atol=1e-6)
        allowed = "finite, and computed for each trial from its own arguments "
        allowed += "and buffers alone"
        require(fine, "step", fault + "is not finite,", allowed)
    moved = any(first[kind][:, REMOVED].any() for kind in ("w", "evaluated") if kind in first)
    require(not moved, "step", "a removed weight that moves", "zero where w and g are zero")


def _try(method: Method, rows: Tensor) -> dict[str, Tensor]:
    """The weights and the buffers of these trials (`rows`) after a few steps."""
    random = torch.Generator().manual_seed(0)
    mask = torch.ones(P)
    mask[REMOVED] = 0
    start, *pushes = (torch.randn(STEPS + 1, ROWS, P, generator=random) * mask)[:, rows]
    w = start.clone()
    places = ((rows + 0.5) / ROWS).numpy()
    drawn = {name: torch.from_numpy(axis.values(places)) for name, axis in method.space.items()}
    drawn["batch_size"] = torch.full((len(rows),), 8.0)
    drawn = {name: values.float()[:, None] for name, values in drawn.items()}

    buffers = method.begin(w, LAYERS)
    fine = isinstance(buffers, dict) and all(
        isinstance(buffer, Tensor)
        and len(buffer) == len(rows)
        and buffer.data_ptr() != w.data_ptr()
        for buffer in buffers.values()
    )
    allowed = "a dictionary of tensors with T rows each, w itself only as a copy"
    require(fine, "begin", f"a {type(buffers).__name__}", allowed)
    kinds = _kinds(buffers)
    for k, push in enumerate(pushes, start=1):
        with torch.no_grad():
            method.step(w, push.clone(), buffers, drawn, k, LAYERS)
    fine = not torch.equal(w, start) and _kinds(buffers) == kinds
    fault = "unchanged weights or buffers of another form"
    require(fine, "step", fault, "a change of w in place that keeps buffers' names and shapes")
    result = {f"buffer {name!r}": buffer for name, buffer in buffers.items()} | {"w": w}
    if method.evaluated:
        result["evaluated"] = method.evaluated(w, buffers)
    return result


def _kinds(buffers: dict[str, Tensor]) -> dict[str, tuple]:
    return {name: (buffer.shape, buffer.dtype) for name, buffer in buffers.items()}
