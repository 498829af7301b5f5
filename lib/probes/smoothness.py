"""How smooth the loss is along a training path: the local Lipschitz constant of its gradient.

Two estimates.  `path_lipschitz` is that of Lee et al. (2021): gradients at nine points between
consecutive iterates. `spectral_norm` needs a few Hessian-vector products instead, and bounds it
where the Hessian changes little.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib.engine.flattening import outputs

FRACTIONS = tuple(i / 10 for i in range(1, 10))  # of the way from one iterate to the next


def path_lipschitz(gradient: Callable[[Tensor], Tensor], before: Tensor, after: Tensor) -> float:
    """Largest |gradient(w) - gradient(before)| / |w - before| over nine points w between two
    iterates [P].

    From the code of Lee et al. (2021).  NaN if the iterates are equal.
    """
    step, base = after - before, gradient(before)
    length = step.norm()
    if length == 0:
        return float("nan")
    return max(
        ((gradient(before + f * step) - base).norm() / (f * length)).item() for f in FRACTIONS
    )


def hessian_product(
    module: nn.Module, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None
) -> Callable:
    """v [P] -> H v [P] for the mean cross-entropy of `module` at w [P] on x [N, ...], y [N].

    With a mask [P], the Hessian of the weights that are left.
    """
    w = w.detach().clone().requires_grad_()
    (g,) = torch.autograd.grad(F.cross_entropy(outputs(module, w, x), y), w, create_graph=True)

    def product(v: Tensor) -> Tensor:
        v = v if mask is None else v * mask
        (hv,) = torch.autograd.grad(g, w, v, retain_graph=True)
        return hv if mask is None else hv * mask

    return product


def spectral_norm(
    product: Callable[[Tensor], Tensor], start: Tensor, iterations: int = 20
) -> tuple[float, float]:
    """|H v| / |v| for v = start [P], and after so many power iterations: along the start, and the
    largest |eigenvalue|.

    Power iteration approaches the largest absolute eigenvalue from below.
    """
    v, norms = start, []
    for _ in range(iterations):
        v = v / v.norm().clamp(min=torch.finfo(v.dtype).tiny)
        v = product(v)
        norms.append(v.norm().item())
    return norms[0], norms[-1]
