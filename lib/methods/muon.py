"""Muon (Jordan et al. 2024): hidden matrices move by their averaged gradient, orthogonalised; all
else by Adam.

Hidden matrices are the weights of convolutions and of linear layers but the last, as [outputs, the
rest].  If one has more rows than columns, its step is multiplied by the square root of their ratio;
the authors' code does so for linear layers only.
"""

from __future__ import annotations

from lib.methods import adam
from lib.methods.intervals import Interval
from lib.methods.method import Method, aligned

HIDDEN = ("linear", "convolution")  # of `Layer.kind`
# Of X, X X^T X and (X X^T)^2 X: steepest at zero, the authors' choice
COEFFICIENTS = 3.4445, -4.7750, 2.0315
ROUNDS = 5
SMALLEST = 1e-7  # added to the norm
# Of Adam in Muon, the authors' choice
BETAS = (0.9, 0.95)
EPSILON = 1e-10


def orthogonal(u):
    """U S' V^T for matrices u = U S V^T [T, rows, columns], with S' around one (five rounds of a
    quintic Newton-Schulz iteration).
    """
    import torch  # slow to import, and not needed to read records

    x = aligned(u.mT if u.shape[1] > u.shape[2] else u)
    x = x / (x.norm(dim=(1, 2), keepdim=True) + SMALLEST)
    first, third, fifth = COEFFICIENTS
    for _ in range(ROUNDS):
        a = x.bmm(x.mT)
        x = torch.baddbmm(x, torch.baddbmm(a, a, a, beta=third, alpha=fifth), x, beta=first)
    x = x.mT if u.shape[1] > u.shape[2] else x
    return x[:, : u.shape[1], : u.shape[2]]


def _begin(w, layers):
    """Averages of the gradient, Adam's of its square, and which weights of a hidden matrix are
    kept.

    A weight that is initially zero counts as removed until it has a gradient.
    """
    return adam.begin(w, layers) | {"kept": w != 0}


def _step(w, g, buffers, drawn, k, layers):
    rate = drawn["learning_rate"]
    buffers["kept"].logical_or_(g != 0)
    for layer in layers:
        part = slice(None), layer.where
        mean, square, kept = (buffers[name][part] for name in ("mean", "square", "kept"))
        if layer.kind in HIDDEN:
            update = _hidden(g[part], mean, drawn["momentum"], layer.shape[0])
            w[part].addcmul_(update.mul_(kept), rate, value=-1)
        else:
            update = _adam(g[part], mean, square, k)
            w[part].addcmul_(update, drawn["aux_ratio"] * rate, value=-1)


def _hidden(g, mean, momentum, rows):
    """mean = momentum mean + (1 - momentum) g; the update [T, n] is the same mixture of g and this
    mean, orthogonalised.
    """
    mean.lerp_(g, 1 - momentum)
    u = g.lerp(mean, momentum).unflatten(1, (rows, -1))
    return orthogonal(u).mul(max(1, rows / u.shape[2]) ** 0.5).flatten(1)


def _adam(g, mean, square, k):
    beta1, beta2 = BETAS
    mean.lerp_(g, 1 - beta1)
    square.lerp_(g.square(), 1 - beta2)
    scale = square.div(1 - beta2**k).sqrt_().add_(EPSILON)
    return mean.div(1 - beta1**k).div_(scale)


SPACE = {
    "learning_rate": Interval(1e-3, 1.0),
    "momentum": Interval(0.5, 0.999, "reverse-log"),
    "aux_ratio": Interval(1e-3, 1.0),
}
METHOD = Method("muon", "Muon", SPACE, _begin, _step)
