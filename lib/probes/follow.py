"""A trial trained again, with smoothness and gradient noise measured along its path."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.engine import flattening, lockstep, looped
from lib.measuring import one_cell
from lib.methods import method
from lib.probes import noise_scale, smoothness
from lib.probes.tracks import POWER_ITERATIONS, SAMPLE, Track, last_step
from lib.records.places import DATA
from lib.workloads import datasets, models
from lib.workloads.catalogue import workload
from lib.workloads.tasks import TASKS


def follow(track: Track, data: Path = DATA) -> pd.DataFrame:
    """Train the trial again and measure at each of its points; a row per point.  Up to rounding, if
    the engine has changed.

    step: the update looked at, from w to w'.  error: validation error, or what else the task
    counts, at w', or at what the method evaluates.  loss, square (|G|^2), trace (tr Sigma),
    noise_scale with noise_low and noise_high: of training examples at w.  distance: |w' - w|.
    lipschitz: between w and w'.  along, spectral: the Hessian at w on a sample, along the step and
    its largest absolute eigenvalue.  A track without smoothness lacks the last three. What is
    measured is in single precision; the training is in the cell's own.
    """
    cell, work = track.cell, workload(track.workload)
    examples, validation = work.train(), datasets.load(work.dataset).validation
    executor, trial = one_cell.executor(cell), one_cell.start(cell, [track.trial])
    x, y = executor.inputs(examples.x), examples.y
    points = set(
        np.unique(np.geomspace(1, last_step(track, data), track.points).round().astype(int))
    )
    how, parameters, rows = method(cell.algorithm), flattening.layers(executor.module), []
    w, buffers = trial.w.clone(), how.begin(trial.w, parameters)
    for step, pick in enumerate(lockstep.batches(len(y), cell.batch_size, cell.replicate), start=1):
        before = w.clone()
        lockstep.update(how, executor, parameters, trial, w, buffers, step, (x[pick], y[pick]))
        if step in points:
            asked = lockstep.validated(how, w, buffers)
            cost = executor.task.cost(
                executor.logits(asked, executor.inputs(validation.x)), validation.y
            )
            rows.append(
                {
                    "step": step,
                    "error": cost.float().mean().item(),
                    **_look(track, trial.mask, before[0], w[0]),
                }
            )
        if step == max(points):
            return pd.DataFrame(rows)


def _look(track: Track, mask: Tensor | None, before: Tensor, after: Tensor) -> dict:
    """What `follow` measures at one step, from w = `before` to w' = `after` [P]."""
    work = workload(track.workload)
    data, module = work.train(), models.build(work.model)
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[
        : track.examples or len(data)
    ]
    loop, left = (
        looped.Loop(module, task=TASKS[work.task]),
        torch.ones_like(before) if mask is None else mask[0],
    )
    x, y = loop.inputs(data.x)[order], data.y[order]

    def chunk_gradients(w: Tensor) -> tuple[Tensor, Tensor]:
        """Mean loss and gradient of every chunk: [n], [n, P]; the last chunk may be smaller and is
        left out.
        """
        found = [
            loop.gradients(w[None], *part)
            for part in zip(x.split(track.chunk), y.split(track.chunk), strict=True)
        ]
        whole = len(y) // track.chunk
        return torch.cat([f[0] for f in found])[:whole], torch.cat([f[1] for f in found])[
            :whole
        ] * left

    losses, chunks = chunk_gradients(before)
    products = noise_scale.gram(chunks)
    scale = noise_scale.estimate(products, track.chunk, len(data))
    low, high = noise_scale.interval(products, track.chunk, len(data))
    found = {
        "loss": losses.mean().item(),
        "square": scale.square,
        "trace": scale.trace,
        "noise_scale": scale.simple,
        "noise_low": low,
        "noise_high": high,
        "distance": (after - before).norm().item(),
    }
    if not track.smoothness:
        return found
    plain = models.build(work.model)
    product = smoothness.hessian_product(plain, before, data.x[order[:SAMPLE]], y[:SAMPLE], left)
    along, spectral = smoothness.spectral_norm(product, after - before, POWER_ITERATIONS)
    return {
        **found,
        "along": along,
        "spectral": spectral,
        "lipschitz": smoothness.path_lipschitz(
            lambda w: chunk_gradients(w)[1].mean(0), before, after
        ),
    }
