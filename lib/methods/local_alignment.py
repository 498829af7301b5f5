"""Local representation alignment (LRA-E, Ororbia and Mali 2019) and feedback alignment (Lillicrap
et al. 2016).

Both train networks of linear layers z_l = W_l h_(l-1) + b_l, h_l = f(z_l), l = 1 ... L, and never
use W_l in the backward pass.  An example's error e_L = softmax(z_L) - y reaches lower layers only
through feedback matrices E_l [inputs, outputs of layer l]:

    feedback alignment   e_l = f'(z_l) * E_(l+1) e_(l+1), with matrices that never change;
    LRA                  e_l = f(z_l) - f(z_l - beta E_(l+1) e_(l+1)), the distance of a layer from
                         its target; E_l moves as W_l^T does.

Each layer moves by the batch's mean of e_l h_(l-1)^T.  With equal matrices and a small beta, the
errors of LRA are those of feedback alignment times beta^(L-l); but its matrices learn, so the two
diverge after the first step.  Feedback alignment with E_l = W_l^T would be backpropagation.  The
matrices start as the transposed weights, shuffled: of the same size, but unrelated to them.
"""

from __future__ import annotations

import functools
import itertools

from lib import require
from lib.methods import momentum
from lib.methods.method import Method

THEIRS = 0.1  # beta in the authors' code
ALLOWED = "a network of linear layers with tanh or ReLU between any two"


def _matrices(layers):
    """The weights that have a feedback matrix: those of all layers but the first."""
    return [layer for layer in layers if layer.kind][1:]


def begin(w, layers):
    """The feedback matrices [T, inputs, outputs], by the names of their weights."""
    import torch  # slow to import, and not needed to read records

    buffers = {}
    for layer in _matrices(layers):
        weights = w[:, layer.where]
        size = weights.shape[1]
        generator = torch.Generator().manual_seed(size)
        order = torch.randperm(size, generator=generator).to(w.device)
        feedback = weights[:, order].unflatten(1, layer.shape)
        buffers[layer.name] = feedback.mT.contiguous()
    return buffers


def _gradient(executor, w, batch, mask, buffers, lower):
    """Losses [T], the batch's mean of e h^T for every layer [T, P], and who is alive [T].

    lower(f, z, h, way): the errors of a hidden layer from its activation f, z, h = f(z), and the
    errors fed back to it, [T, B, out].  Raises ValueError for a network with other layers.
    """
    import torch

    x, y = batch
    linear, between = _parts(executor.module)
    sizes = [p.numel() for p in executor.module.parameters()]
    parameters = iter(w.to(executor.dtype).split(sizes, 1))
    inputs = [x.flatten(1).expand(len(w), -1, -1)]
    sums = []
    for layer, f in itertools.zip_longest(linear, between):
        weight = next(parameters).unflatten(1, layer.weight.shape)
        sums.append(next(parameters)[:, None].baddbmm(inputs[-1], weight.mT))
        if f:
            inputs.append(f(sums[-1]))
    losses, e = executor.task.derivative(sums[-1], y, executor.smoothing, 1)
    e = e.to(executor.dtype) * len(x)  # derivatives are of the mean loss
    parts = []
    for feedback, f, z, h in reversed([*zip(buffers.values(), between, sums, inputs[1:])]):
        parts = [e.mT.bmm(h).flatten(1), e.sum(1), *parts]
        e = lower(f, z, h, e.bmm(feedback.to(executor.dtype).mT))
    parts = [e.mT.bmm(inputs[0]).flatten(1), e.sum(1), *parts]
    g = torch.cat(parts, 1).float().div_(len(y))
    alive = inputs[-1].abs().amax((1, 2)) > 0
    return losses[0], g if mask is None else g.mul_(mask), alive


def _parts(module):
    """The linear layers, and the activations between them."""
    from torch import nn

    modules = [m for m in module.children() if not isinstance(m, nn.Flatten)]
    linear, between = modules[::2], modules[1::2]
    affine = all(isinstance(m, nn.Linear) and m.bias is not None for m in linear)
    supported = affine and all(isinstance(m, nn.Tanh | nn.ReLU) for m in between)
    fits = isinstance(module, nn.Sequential) and len(modules) % 2 and supported
    require(fits, "model", type(module).__name__, f"{ALLOWED}, for this training method")
    return linear, between


def _feedback_errors(f, z, h, way):
    from torch import nn

    return way * (1 - h.square() if isinstance(f, nn.Tanh) else (h > 0))


def _step(w, g, buffers, drawn, k, layers):
    """w -= rate g; E -= rate g^T, so that E - W^T stays what it was."""
    momentum.plain_step(w, g, buffers, drawn, k, layers)
    for layer in _matrices(layers):
        slope = g[:, layer.where].unflatten(1, layer.shape)
        buffers[layer.name].addcmul_(slope.mT, drawn["learning_rate"][:, :, None], value=-1)


def aligning(name: str, title: str, beta: float) -> Method:
    """LRA with this beta."""

    def lower(f, z, h, way):
        return h - f(z - beta * way)

    gradient = functools.partial(_gradient, lower=lower)
    return Method(name, title, momentum.RATE, begin, _step, gradient)


METHOD = aligning("lra", "local representation alignment", THEIRS)
FEEDBACK = Method(
    "feedback-alignment",
    "feedback alignment",
    momentum.RATE,
    begin,
    momentum.plain_step,
    functools.partial(_gradient, lower=_feedback_errors),
)
WIDE = aligning("lra-1", "local representation alignment, β = 1", 1.0)
ALL = (METHOD, WIDE, FEEDBACK)
