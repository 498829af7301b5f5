"""What a training method is: how weights follow from gradients, and what is tuned of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from lib.methods.intervals import Interval

SIDE = 16  # float32 numbers in a cache line


@dataclass(frozen=True)
class Layer:
    """A parameter's name, where it lies in the flat vector, and its shape there (a kernel's:
    outputs, height, width, inputs); a complex number lies there as two.

    kind: whose it is, if it is the real weight of a "linear" layer, of the "last" of them, or of a
    "convolution" of one group.
    """

    name: str
    where: slice
    shape: tuple[int, ...]
    kind: str = ""

    def matrix(self, values):
        """Its part of values [T, P], as matrices [T, outputs, the rest]."""
        return values[:, self.where].unflatten(1, (self.shape[0], -1))


@dataclass(frozen=True, eq=False)
class Method:
    """A training method, in one file; weights, gradients and buffers are of many trials at once, a
    row each.

    Attributes:
        name: as cells know it; of a reader's own method "path/to/file.py:function" (what the
            function says is overwritten).
        title: as pages spell it.
        space: what is tuned, "learning_rate" among it, and from where it is drawn; an interval that
            is one of `LEE2021` follows the workload's named space.
        begin(w, layers): the buffers [T, ...] before the first step, by name; w [T, P], layers: the
            network's parameters in P (`Layer`).
        step(w, g, buffers, drawn, k, layers): update number k (from 1) in place, of w and of the
            buffers, for gradients g [T, P], which may be overwritten.  drawn: name -> [T, 1], the
            learning rate decayed as the workload asks; and batch_size, examples a step.  Where g
            and the weight have always been zero (a removed weight), the weight stays zero; no row
            depends on another.
        gradient(executor, w, batch, mask, buffers): losses [T], gradients [T, P] and which trials
            are alive [T], where they are not `executor.gradients(w, *batch, mask)`; batch: inputs
            and labels.  No trial is then proved dead.  An executor has `gradients_with_norms`, too,
            for what examples' own gradients measure layer by layer.
        drift(buffers, drawn): an upper bound [T, P] (or what broadcasts to it) on how far each
            weight still moves, with its sign, if every later gradient is zero; every step is in
            that direction.  It lets trials be proved dead; without it none is dropped.
        evaluated(w, buffers): the weights [T, P] that are validated, where they are not w (an
            average, say).
        source: digest of the reader's file that defines the method, if one does.
        optimiser: the `lib.methods.optimisers.Optimiser` that it is, if it is one; begin and step
            are then not to be called.
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
    """Matrices m [T, rows, columns] with rows and columns of zeros added, to multiples of 16.

    Each matrix then begins where a cache line does; elsewhere the library sums small products in
    another order, and a trial's weights would hang on which others still train.
    """
    from torch.nn import functional as F  # slow to import, and reading records does without

    rows, columns = (-side % SIDE for side in m.shape[1:])
    return F.pad(m, (0, columns, 0, rows)) if rows or columns else m


def eigen(m):
    """Eigenvalues [n], rising, and eigenvectors [n, n] of a symmetric matrix m; None where the
    library raises or returns NaN, as it may for what diverges and for denormal numbers: that must
    not stop other trials.
    """
    import torch

    with contextlib.suppress(torch.linalg.LinAlgError):
        decomposition = torch.linalg.eigh(m)
        if decomposition[1].isfinite().all():
            return decomposition
    return None
