"""A trial trained again: how the gradients along its path point to where it ends, and how those of
random walks do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.engine import flattening, lockstep, sequential
from lib.engine.training_state import Trials
from lib.measuring import one_cell
from lib.methods import method
from lib.methods.method import Layer, Method
from lib.probes import noise_scale
from lib.probes.noise_scale import NoiseScale
from lib.probes.paths import Walk
from lib.probes.trained_again import met_at
from lib.records.store import DATA
from lib.workloads import datasets, models
from lib.workloads.catalogue import workload
from lib.workloads.tasks import TASKS

OTHER_ORDER = (
    10_000  # added to the seed of the order of examples, for the twin; above all replicates
)


@dataclass
class Trace:
    """What a path leaves: its end [P]; at some steps the weights before them and the gradient taken
    there, each [P].

    lengths, norms: of every step, and of every gradient.
    """

    end: Tensor
    seen: dict[int, tuple[Tensor, Tensor]]
    lengths: np.ndarray
    norms: np.ndarray


def walked(
    how: Method,
    layers: tuple[Layer, ...],
    trial: Trials,
    steps: int,
    at: set[int],
    gradient: Callable[[int, Tensor], Tensor],
) -> Trace:
    """Take so many steps from the trial's weights [1, P]; gradient: of a step (from 1) and the
    weights before it.
    """
    w, seen, lengths, norms = trial.w.clone(), {}, [], []
    buffers = how.begin(trial.w, layers)
    for step in range(1, steps + 1):
        g, before = gradient(step, w), w.clone()
        if step in at:
            seen[step] = before[0].float(), g[0].float().clone()
        norms.append(g.float().norm().item())
        with torch.no_grad():
            how.step(w, g, buffers, trial.at(step), step, layers)
        lengths.append((w - before).float().norm().item())
    return Trace(w[0].float(), seen, np.array(lengths), np.array(norms))


def cosine(a: Tensor, b: Tensor) -> float:
    """Of the angle between two vectors [P]; NaN if one is zero."""
    return (a @ b / (a.norm() * b.norm())).item()


def toward(g: Tensor, w: Tensor, end: Tensor) -> dict[str, float]:
    """secant, bound, cosine of a gradient g at weights w, each [P], on a path to `end`.

    secant: <g, w - end> / |w - end|^2, the restricted secant.  bound: |g| / |w - end|, the error
    bound.  cosine: their ratio, positive if a small step against g leads nearer to the end.
    """
    d = w - end
    square = d @ d
    return {
        "secant": (g @ d / square).item(),
        "bound": (g.norm() / square.sqrt()).item(),
        "cosine": cosine(g, d),
    }


def random_walk(
    lengths: np.ndarray, free: Tensor, at: set[int], random: torch.Generator
) -> dict[int, float]:
    """At some steps (from 1), the cosine of a step with all that is left of a walk whose steps
    point anywhere.

    lengths: of its steps.  free [P]: 1 where weights may move, else 0.
    """
    ahead, found = torch.zeros_like(free), {}
    for step in range(len(lengths), 0, -1):
        drawn = torch.randn(free.shape, generator=random) * free
        drawn *= lengths[step - 1] / drawn.norm()
        ahead += drawn
        if step in at:
            found[step] = cosine(drawn, ahead)
    return found


def measured(walk: Walk, data: Path = DATA) -> pd.DataFrame:
    """Train the trial and its twins, and look at each of its points; a row per point.

    step: from w to w'.  left: steps from w to the end w*, this one included.  distance: |w - w*|.
    secant, bound, cosine: of `toward`, for the mean gradient over the training examples;
    batch_secant, batch_bound, batch_cosine: for that of the step's batch.  between: cosine of the
    two gradients.  square, trace: |G|^2 and tr(Sigma) of `noise_scale` at w. random: batch_cosine
    along a path of the same method and hyperparameters whose gradients point anywhere, as long as
    the real ones.  walk: of `random_walk` with the same step lengths; walk_theory: what it is
    expected to be. twin_cosine, twin_batch_cosine: with w* from the same start by another order of
    examples; apart: |w* - that end|. error, twin_error: validation error, or what else the task
    counts, at w* and at the twin's end. rate: learning rate / (1 - momentum). What is measured is
    in single precision; the training is in the cell's own.
    """
    cell, work = walk.cell, workload(walk.workload)
    examples, trial = work.train(cell.split), one_cell.start(cell, [walk.trial])
    steps = met_at(walk, data)
    at = set(np.linspace(1, steps, min(walk.points, steps)).round().astype(int).tolist())
    how, executor = method(cell.algorithm), one_cell.executor(cell)
    layers = flattening.layers(executor.module)
    free = torch.ones_like(trial.w[0]) if trial.mask is None else trial.mask[0].float()
    x, y = executor.inputs(examples.x), examples.y

    def from_batches(seed: int) -> Callable[[int, Tensor], Tensor]:
        order = lockstep.batches(len(y), cell.batch_size, seed)

        def gradient(step: int, w: Tensor) -> Tensor:
            pick = next(order)
            return executor.gradients(w, x[pick], y[pick], trial.mask)[1]

        return gradient

    path = walked(how, layers, trial, steps, at, from_batches(cell.replicate))
    twin = walked(how, layers, trial, steps, set(), from_batches(cell.replicate + OTHER_ORDER)).end
    random = torch.Generator().manual_seed(walk.trial)

    def anywhere(step: int, w: Tensor) -> Tensor:
        drawn = torch.randn(free.shape, generator=random) * free
        return (drawn * (path.norms[step - 1] / drawn.norm())).to(w.dtype)[None]

    lost = walked(how, layers, trial, steps, at, anywhere)
    plain = random_walk(path.lengths, free, at, random)
    ahead = np.sqrt(np.cumsum(path.lengths[::-1] ** 2)[::-1])
    full = _full_gradient(walk)
    rows = [
        {
            "step": step,
            "left": steps - step + 1,
            **_look(w, full(w, free), g_batch, path.end, twin),
            "random": cosine(lost.seen[step][1], lost.seen[step][0] - lost.end),
            "walk": plain[step],
            "walk_theory": path.lengths[step - 1] / ahead[step - 1],
        }
        for step, (w, g_batch) in path.seen.items()
    ]
    drawn = {name: values.item() for name, values in trial.drawn.items()}
    return pd.DataFrame(rows).assign(
        rate=drawn["learning_rate"] / (1 - drawn.get("momentum", 0.0)),
        error=_error(walk, executor, path.end, trial.w.dtype),
        twin_error=_error(walk, executor, twin, trial.w.dtype),
        apart=(path.end - twin).norm().item(),
    )


def _look(
    w: Tensor, full: tuple[Tensor, NoiseScale], g_batch: Tensor, end: Tensor, twin: Tensor
) -> dict[str, float]:
    """What `measured` says of weights w and the batch's gradient there on a path to `end`; full:
    the full gradient, its noise.
    """
    g, scale = full
    return {
        "distance": (w - end).norm().item(),
        **toward(g, w, end),
        **{f"batch_{name}": value for name, value in toward(g_batch, w, end).items()},
        "between": cosine(g, g_batch),
        "square": scale.square,
        "trace": scale.trace,
        "twin_cosine": cosine(g, w - twin),
        "twin_batch_cosine": cosine(g_batch, w - twin),
    }


def _error(walk: Walk, executor: one_cell.Executor, w: Tensor, dtype: torch.dtype) -> float:
    """Validation error, or what else the task counts, at weights w [P]; dtype: of the weights in
    training.
    """
    asked = datasets.load(workload(walk.workload).dataset, walk.split).validation
    logits = executor.logits(w[None].to(dtype), executor.inputs(asked.x))
    return executor.task.cost(logits, asked.y).float().mean().item()


def _full_gradient(walk: Walk) -> Callable[[Tensor, Tensor], tuple[Tensor, NoiseScale]]:
    """A function of weights and free, each [P]: the mean gradient [P] of the walk's training
    examples, and its noise.
    """
    work = workload(walk.workload)
    data = work.train(walk.cell.split)
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[
        : walk.examples or len(data)
    ]
    order = order[: len(order) // walk.chunk * walk.chunk]
    loop = sequential.SequentialExecutor(models.build(work.model), task=TASKS[work.task])
    chunks = list(
        zip(
            loop.inputs(data.x)[order].split(walk.chunk),
            data.y[order].split(walk.chunk),
            strict=True,
        )
    )

    def full(w: Tensor, free: Tensor) -> tuple[Tensor, NoiseScale]:
        gradients = torch.cat([loop.gradients(w[None], *chunk)[1] for chunk in chunks]) * free
        return gradients.mean(0), noise_scale.estimate(
            noise_scale.gram(gradients), walk.chunk, len(data)
        )

    return full
