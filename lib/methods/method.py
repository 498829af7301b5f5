"""What a training method is: how it updates weights from gradients, and what is tuned."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from lib.methods.intervals import Interval

SIDE = 16  # float32 numbers in a cache line


@dataclass(frozen=True)
class Layer:
    """A parameter's name, its place in the flat vector, and its shape there (a kernel's: outputs,
    height, width, inputs); a complex number takes two places.

    kind: "linear", "last" or "convolution" for the real weight of a linear layer, of the last one,
    or of a convolution of one group; else "".
    """

    name: str
    where: slice
    shape: tuple[int, ...]
    kind: str = ""

    def matrix(self, values):
        """This layer's part of values [T, P], as matrices [T, outputs, the rest]."""
        return values[:, self.where].unflatten(1, (self.shape[0], -1))


@dataclass(frozen=True, eq=False)
class Method:
    """A training method, in one file; weights, gradients and buffers have a row per trial.

    Attributes:
        name: as in searches; a reader's own method is called "path/to/file.py:function" (a name set
            by the function is overwritten).
        title: as pages spell it.
        space: the intervals from which hyperparameters, "learning_rate" among them, are drawn; an
            interval equal to that of `LEE2021` follows the workload's named space.
        begin(w, layers): the buffers [T, ...] before the first step, by name; w [T, P], layers: the
            network's parameters in P (`Layer`).
        step(w, g, buffers, drawn, k, layers): take update number k (from 1) in place, on w and the
            buffers, with gradients g [T, P], which may be overwritten.  drawn: name -> [T, 1], with
            the learning rate already decayed, if it decays, and batch_size, examples per step.
            Where g and the weight have always been zero (a removed weight), the weight must stay
            zero; no row may depend on another.
        gradient(executor, w, batch, mask, buffers): losses [T], gradients [T, P] and which trials
            are alive [T], if not `executor.gradients(w, *batch, mask)`; batch: inputs and labels.
            No trial is then proved dead.  An executor also has `gradients_with_norms`, for methods
            that use norms of per-example gradients.
        drift(buffers, drawn): an upper bound [T, P] (or what broadcasts to it) on how far each
            weight still moves, with its sign, if every later gradient is zero; every step is in
            that direction.  It allows trials to be proved dead; without it none is dropped.
        evaluated(w, buffers): the weights [T, P] that are validated, if not w (an average, say).
        source: digest of the reader's file that defines the method, if one does.
        optimiser: a `lib.methods.optimisers.Optimiser`, if the method is one; begin and step must
            then not be called.
    """

    name: str
    title: str
    space: dict[str, Interval]
    begin: Callable
    step: Callable
    gradient: Callable | None = None
    drift: Callable | None = None
    evaluated: Callable | None = None
    source: str = ""
    optimiser: object | None = None


def aligned(m):
    """Matrices m [T, rows, columns], padded with zeros to multiples of 16 rows and columns.

    Each matrix then starts on a cache line; otherwise the library sums small products in another
    order, and a trial's weights would depend on which others still train.
    """
    from torch.nn import functional as F  # slow to import, and not needed to read records

    rows, columns = (-side % SIDE for side in m.shape[1:])
    return F.pad(m, (0, columns, 0, rows)) if rows or columns else m


def eigen(m):
    """Eigenvalues [n], ascending, and eigenvectors [n, n] of a symmetric matrix m; None if the
    library raises or returns NaN, as it may for diverging trials and denormal numbers, which must
    not stop other trials.
    """
    import torch

    with contextlib.suppress(torch.linalg.LinAlgError):
        decomposition = torch.linalg.eigh(m)
        if decomposition[1].isfinite().all():
            return decomposition
    return None
