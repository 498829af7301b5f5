"""A trial trained again: how well the gradients along its path, and along random walks, point to
where the path ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.measuring.rerun import Rerun
from lib.probes.noise_scale import Chunks
from lib.probes.tracks import Again, met_at
from lib.records.store import DATA

# Added to the seed of the order of examples for the twin; larger than any replicate
OTHER_ORDER = 10_000


@dataclass
class Trace:
    """Data along a path: its end [P], and seen: at some steps, the weights before the step and the
    gradient there, each [P].

    lengths, norms: of every step, and of every gradient.
    """

    end: Tensor
    seen: dict[int, tuple[Tensor, Tensor]]
    lengths: np.ndarray
    norms: np.ndarray


class Heard:
    """An executor that keeps its last gradients [T, P]."""

    def __init__(self, executor):
        self.executor = executor
        self.last = None

    def gradients(self, w: Tensor, *batch) -> tuple[Tensor, Tensor, Tensor]:
        losses, g, alive = self.executor.gradients(w, *batch)
        self.last = g.clone()
        return losses, g, alive


class Anywhere:
    """Stands in for an executor: returns gradients of random direction with these norms.

    norms: of every step's gradient.  free [P]: 1 where weights may move, else 0.
    """

    def __init__(self, norms: np.ndarray, free: Tensor, random: torch.Generator):
        self.norms = iter(norms)
        self.free = free
        self.random = random

    def gradients(self, w: Tensor, *batch) -> tuple[Tensor, Tensor, Tensor]:
        drawn = torch.randn(self.free.shape, generator=self.random) * self.free
        g = drawn * (next(self.norms) / drawn.norm())
        none = torch.zeros(1)
        return none, g.to(w.dtype)[None], none


def walked(rerun: Rerun, steps: int, kept: set[int]) -> Trace:
    """Take `steps` updates of a single trial; kept: steps (from 1) whose weights and gradient are
    kept.
    """
    rerun.executor, executor = Heard(rerun.executor), rerun.executor
    seen, lengths, norms = {}, [], []
    for step in range(1, steps + 1):
        before = rerun.w[0].clone()
        rerun.update()
        g = rerun.executor.last[0].float()
        if step in kept:
            seen[step] = before.float(), g
        norms.append(g.norm().item())
        lengths.append((rerun.w[0] - before).float().norm().item())
    rerun.executor = executor
    return Trace(rerun.w[0].float(), seen, np.array(lengths), np.array(norms))


def cosine(a: Tensor, b: Tensor) -> float:
    """Cosine of the angle between two vectors [P]; NaN if one is zero."""
    return (a @ b / (a.norm() * b.norm())).item()


def toward(g: Tensor, w: Tensor, end: Tensor) -> dict[str, float]:
    """secant, bound, cosine of a gradient g at weights w, each [P], on a path to `end`.

    secant: <g, w - end> / |w - end|^2, the restricted secant.  bound: |g| / |w - end|, the error
    bound.  cosine: their ratio, positive if a small step against g leads nearer to the end.
    """
    d = w - end
    secant = g @ d / (d @ d)
    bound = g.norm() / d.norm()
    return {"secant": secant.item(), "bound": bound.item(), "cosine": cosine(g, d)}


def random_walk(
    lengths: np.ndarray, free: Tensor, kept: set[int], random: torch.Generator
) -> dict[int, float]:
    """The cosine between a step and the rest of the walk from there on, for a walk with steps of
    random direction; by step, for the steps in `kept` (from 1).

    lengths: of its steps.  free [P]: 1 where weights may move, else 0.
    """
    ahead = torch.zeros_like(free)
    cosines = {}
    for step in range(len(lengths), 0, -1):
        drawn = torch.randn(free.shape, generator=random) * free
        drawn *= lengths[step - 1] / drawn.norm()
        ahead += drawn
        if step in kept:
            cosines[step] = cosine(drawn, ahead)
    return cosines


def measured(walk: Again, data: Path = DATA) -> pd.DataFrame:
    """Train the trial of an `experiments.Walk` and its twins; returns a row for each point.

    step: from w to w'.
    left: steps from w to the end w*, this one included.
    distance: |w - w*|.
    secant, bound, cosine: from `toward`, for the mean gradient over the training examples;
    batch_secant, batch_bound, batch_cosine: for the gradient on the step's batch.
    between: cosine of the two gradients.
    square, trace: |G|^2 and tr(Sigma) of `noise_scale` at w.
    random: batch_cosine along a path with the same method and hyperparameters, whose gradients have
    random directions and the norms of the real ones.
    walk: from `random_walk` with the same step lengths; walk_theory: its expected value.
    twin_cosine, twin_batch_cosine: with the twin's end, from the same start by another data order.
    apart: |w* - the twin's end|.
    error, twin_error: validation error, or the task's cost instead, at w* and at the twin's end.
    rate: learning rate / (1 - momentum).

    Measures are computed in single precision; training uses the cell's precision.
    """
    cell = walk.cell
    steps = met_at(walk, data)
    points = np.linspace(1, steps, min(walk.points, steps)).round()
    kept = set(points.astype(int).tolist())
    rerun = Rerun(cell, [walk.trial])
    trial = rerun.trials
    twin = rerun.fork(trial, cell.batch_size, cell.replicate + OTHER_ORDER)
    lost = rerun.fork(trial, cell.batch_size, cell.replicate)
    path = walked(rerun, steps, kept)
    end = walked(twin, steps, set()).end
    free = torch.ones_like(trial.w[0]) if trial.mask is None else trial.mask[0].float()
    random = torch.Generator().manual_seed(walk.trial)
    lost.executor = Anywhere(path.norms, free, random)
    astray = walked(lost, steps, kept)
    plain = random_walk(path.lengths, free, kept, random)
    ahead = np.sqrt(np.cumsum(path.lengths[::-1] ** 2)[::-1])
    chunks = Chunks(walk)
    rows = []
    for step, (w, g_batch) in path.seen.items():
        w_astray, g_astray = astray.seen[step]
        row = {"step": step, "left": steps - step + 1}
        row |= _look(chunks, w, free, g_batch, path.end, end)
        row["random"] = cosine(g_astray, w_astray - astray.end)
        row["walk"] = plain[step]
        row["walk_theory"] = path.lengths[step - 1] / ahead[step - 1]
        rows.append(row)
    rate, momentum = (trial.drawn.get(name) for name in ("learning_rate", "momentum"))
    return pd.DataFrame(rows).assign(
        rate=rate.item() / (1 - (0.0 if momentum is None else momentum.item())),
        error=_error(rerun),
        twin_error=_error(twin),
        apart=(path.end - end).norm().item(),
    )


def _error(rerun: Rerun) -> float:
    return rerun.costs(rerun.validation).float().mean().item()


def _look(
    chunks: Chunks, w: Tensor, free: Tensor, g_batch: Tensor, end: Tensor, twin: Tensor
) -> dict[str, float]:
    """Columns of `measured` for weights w and the batch's gradient there, on a path to `end`."""
    gradients = chunks.gradients(w)[1] * free
    g = gradients.mean(0)
    trace, square = chunks.noise(gradients)
    return {
        "distance": (w - end).norm().item(),
        **toward(g, w, end),
        **{f"batch_{name}": value for name, value in toward(g_batch, w, end).items()},
        "between": cosine(g, g_batch),
        "square": square,
        "trace": trace,
        "twin_cosine": cosine(g, w - twin),
        "twin_batch_cosine": cosine(g_batch, w - twin),
    }
