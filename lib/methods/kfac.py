"""K-FAC: gradients divided by a Kronecker-factored Fisher matrix (Martens and Grosse 2015), with
momentum.

For a layer with inputs h (and a one appended if it has a bias) and derivatives d of an example's
loss by its outputs, the Fisher matrix is approximated by A x G, where A and G are the averages of
h h^T and d d^T over the batch.  For a convolution (Grosse and Martens 2016) h are patches: A is
summed over places and averaged over examples, G averaged over both.  The derivatives use the
batch's labels (the "empirical" Fisher matrix), as in kfac-pytorch.  Parameters of layers that are
neither linear nor a convolution of one group (gains and biases of normalisation, embeddings) move
by SGD with momentum.
"""

from __future__ import annotations

import functools
import itertools

from lib.methods.intervals import Interval
from lib.methods.method import Method, aligned, eigen

# Of the factors' averages; in the first steps, plain means of all steps (Martens and Grosse 2015,
# section 5)
DECAY = 0.95
# The most that a step may change the network's distribution: rate^2 times the quadratic form
# (kfac-pytorch)
CLIP = 1e-3
LARGEST = 1e30  # entry of a factor; a factor with larger or non-finite ones counts as zeros
EVERY_STEP = 20  # number of first steps in which every factor is decomposed anew
# (n, k): factors with up to n rows are decomposed every k steps
INTERVALS = ((128, 1), (512, 10), (float("inf"), 20))


def _blocks(layers):
    """Pairs of a weight's layer and its bias's (or None), for all layers that have factors."""
    biases = {layer.name: layer for layer in layers if len(layer.shape) == 1}
    return [
        (layer, biases.get(layer.name.removesuffix("weight") + "bias"))
        for layer in layers
        if layer.kind
    ]


def _begin(w, layers):
    """Velocities, steps taken, which weights are kept, and the factors with their eigenvectors
    ("axes") and eigenvalues ("curves").
    """
    buffers = {"v": w.new_zeros(w.shape), "kept": w.new_ones(w.shape).bool()}
    buffers["steps"] = w.new_zeros(len(w)).long()
    for weight, bias in _blocks(layers):
        outputs, inputs = weight.matrix(w).shape[1:]
        for factor, side in (("inputs", inputs + (bias is not None)), ("outputs", outputs)):
            name = f"{weight.name} {factor}"
            buffers[name] = w.new_zeros(len(w), side, side)
            buffers[f"{name} axes"] = w.new_zeros(len(w), side, side)
            buffers[f"{name} curves"] = w.new_zeros(len(w), side)
    return buffers


def _gradient(executor, w, batch, mask, buffers):
    """The executor's gradients; also updates the factors' averages and, when due, decomposes
    them.
    """
    moments = functools.partial(_moments, answers=batch[1].numel())
    losses, g, alive, moments_by_name = executor.gradients_with_layer_stats(
        w, *batch, mask, moments
    )
    if mask is not None:
        buffers["kept"].copy_(mask)
    k = int(buffers["steps"].add_(1)[0])  # trials go in lock step
    for name, (inputs, outputs) in moments_by_name.items():
        if f"{name} inputs" in buffers:  # a shared weight has the name of its first layer
            side = buffers[f"{name} inputs"].shape[1]
            _average(buffers, f"{name} inputs", inputs[:, :side, :side], k)
            _average(buffers, f"{name} outputs", outputs, k)
    return losses, g, alive


def _moments(h, d, answers):
    """Factors of this batch [trials, side, side] for h [trials, N, inputs] and derivatives d of the
    mean loss [trials, N, outputs].

    The last row and column of the first factor are the bias's.  answers: how many terms the loss is
    the mean of.
    """
    import torch

    h, d = (values if values.dtype == torch.float64 else values.float() for values in (h, d))
    h = torch.cat([h, h.new_ones(*h.shape[:2], 1)], 2)
    return _squared(h) / answers, _squared(d) * (answers**2 / d.shape[1])


def _squared(m):
    """m^T m [T, n, n] for m [T, N, n]."""
    wide = aligned(m)
    return wide.mT.bmm(wide)[:, : m.shape[2], : m.shape[2]]


def _average(buffers, name, new, k):
    """Mix the factor of step k into its average, and decompose that if due.  new: [T, n, n], or
    [1, n, n] for all trials.
    """
    average = buffers[name]
    # A trial that diverges must not stop the others
    fine = (new.abs().amax((1, 2)) < LARGEST)[:, None, None]
    new = new.where(fine, 0).to(average.dtype)
    average.lerp_(new.expand_as(average), 1 - min(1 - 1 / k, DECAY))
    if k > EVERY_STEP and k % next(n for most, n in INTERVALS if average.shape[1] <= most):
        return
    rows = range(len(average)) if len(new) > 1 else [slice(None)]
    for row, factor in zip(rows, average):  # one by one, each aligned as by `aligned`
        # Otherwise it keeps its last axes, initially zeros, which move nothing
        if decomposed := eigen(factor):
            curves, axes = decomposed
            buffers[f"{name} curves"][row] = curves.clamp_(min=0)
            buffers[f"{name} axes"][row] = axes


def _step(w, g, buffers, drawn, k, layers, clipped=True):
    """v = momentum v + clip g', w -= rate v; g' = (A x G + damping)^-1 g, clip = min(1, sqrt(CLIP /
    |rate^2 g' . g|)), or 1.
    """
    import torch

    rate = drawn["learning_rate"]
    total = 0
    moves = g.clone()
    blocks = _blocks(layers)
    for weight, bias in blocks:
        slope = weight.matrix(g)
        if bias:  # a last column
            slope = torch.cat([slope, g[:, bias.where, None]], 2)
        move = _divide(slope, buffers, weight.name, drawn["damping"])
        total = total + (move * slope).flatten(1).sum(1, keepdim=True)
        if bias:
            off = _off(slope, buffers, weight)
            moves[:, bias.where] = move[:, :, -1].masked_fill(off, 0)
            move = move[:, :, :-1]
        moves[:, weight.where] = move.flatten(1)
    if blocks and clipped:
        change = (rate.square() * total).abs()
        clip = (CLIP / change).sqrt().clamp(max=1)
        for layer in filter(None, itertools.chain(*blocks)):
            moves[:, layer.where] *= clip
    moves.mul_(buffers["kept"])
    v = buffers["v"].mul_(drawn["momentum"]).add_(moves)
    w.addcmul_(v, rate, value=-1)


def _off(slope, buffers, weight):
    """Units [T, outputs] that no example has moved yet and whose inputs may all be zero: those of a
    blank patch, or of the weights kept.

    Their move is zero by definition.  If rounding moved the bias from zero, its sign would decide
    whether the unit is on.
    """
    silent = buffers[f"{weight.name} outputs"].diagonal(dim1=1, dim2=2) == 0
    pruned = ~weight.matrix(buffers["kept"]).all(2)
    return silent & ~slope.any(2) & (pruned | (weight.kind == "convolution"))


def _divide(slope, buffers, name, damping):
    """(A x G + damping)^-1 slope, [T, outputs, inputs], on the axes of the last decomposition."""
    right, left = (
        aligned(buffers[f"{name} {factor} axes"]) for factor in ("inputs", "outputs")
    )
    across, down = (buffers[f"{name} {factor} curves"] for factor in ("inputs", "outputs"))
    turned = left.mT.bmm(aligned(slope)).bmm(right)
    turned /= aligned(down[:, :, None] * across[:, None]) + damping[:, :, None]
    return left.bmm(turned).bmm(right.mT)[:, : slope.shape[1], : slope.shape[2]]


SPACE = {
    "learning_rate": Interval(1e-3, 1.0),
    "momentum": Interval(0.5, 0.99, "reverse-log"),
    "damping": Interval(1e-5, 1.0),
}
METHOD = Method("kfac", "K-FAC", SPACE, _begin, _step, _gradient)
# With large batches few steps remain, and clipping would limit how far each may go.
_free_step = functools.partial(_step, clipped=False)
ALL = (
    METHOD,
    Method("kfac-unclipped", "K-FAC without clip", SPACE, _begin, _free_step, _gradient),
)
