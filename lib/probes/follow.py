"""A trial trained again, with smoothness and gradient noise measured along its path."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.engine import sequential
from lib.measuring.rerun import Rerun
from lib.probes import noise_scale, smoothness
from lib.probes.tracks import POWER_ITERATIONS, SAMPLE, Track, last_step
from lib.records.store import DATA
from lib.workloads import models
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
    rerun = Rerun(track.cell, [track.trial])
    last = last_step(track, data)
    points = set(np.unique(np.geomspace(1, last, track.points).round().astype(int)))
    rows = []
    for step in range(1, last + 1):
        before = rerun.w.clone()
        rerun.update()
        if step in points:
            error = rerun.costs(rerun.validation).float().mean().item()
            looked = _look(track, rerun.trials.mask, before[0], rerun.w[0])
            rows.append({"step": step, "error": error, **looked})
    return pd.DataFrame(rows)


def _look(track: Track, mask: Tensor | None, before: Tensor, after: Tensor) -> dict:
    """What `follow` measures at one step, from w = `before` to w' = `after` [P]."""
    work = workload(track.workload)
    data, module = work.train(), models.build(work.model)
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[
        : track.examples or len(data)
    ]
    loop, left = (
        sequential.SequentialExecutor(module, task=TASKS[work.task]),
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
