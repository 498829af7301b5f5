"""Pruning at initialisation: a score per parameter, then a global mask with an exact count."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules.batchnorm import _BatchNorm

from lib import require
from lib.engine.flattening import Executor, cast, layers, outputs
from lib.engine.vocabulary import PRUNINGS
from lib.workloads.tasks import TASKS, Task

PASS_BATCH = 100  # batch size with which Lee et al. (2021) sum gradients over the training set
# Examples per class from which GraSP takes gradient and curvature, and the temperature that divides
# the outputs before the loss; "grasp-200" as in the published code of Wang et al. (2020).  GraSP's
# scores alone may be negative.
GRASP = {"grasp": (100, 1.0), "grasp-200": (25, 200.0)}
SYNFLOW_ROUNDS = 100
BELOW = 2.0**-26  # a relative change that float32 does not resolve
# Equal nonzero scores: among millions drawn in float32, no more coincide
BY_CHANCE = 16


class ScoresError(ValueError):
    """Scores that violate their method's assumptions, or are so equal that position decides."""


def scores(
    method: str,
    w: Tensor,
    executor: Executor,
    x: Tensor,
    y: Tensor,
    seed: int,
    sparsity: float = 0.9,
) -> Tensor:
    """Scores [P] of the parameters of one freshly initialised network; the largest are kept.

    Args:
        method: "connection-sensitivity": |sum over batches of dL/dm| at an all-ones mask m, which
            is |w * sum of dL/dw| (Lee et al. 2019; accumulated over one pass of the training set as
            in the code of Lee et al. 2021). Biases are scored like weights.  They start at zero, so
            their sensitivity is exactly zero: at any sparsity that removes at least as many
            parameters as there are biases, the network trains without biases.
            "random": uniform, from a separate random stream (torch's stream with this seed has
            drawn the weights).
            "magnitude": |w|, hence biases go first here too.
            "grasp": w * H g, how much of the gradient norm each weight's removal would take away
            (Wang et al. 2020, who remove the largest -w * H g), with g and H computed on a
            class-balanced sample of the training set.
            "grasp-200": the same with outputs divided by 200 before the loss, on fewer examples, as
            in their code.
            "synflow": |w * dR/dw| in the last of 100 rounds, with the parameters that the rounds
            before have left (Tanaka et al. 2020, and their code); needs the sparsity, but no data.
        w: [P].
        executor: of the network.
        x: the training set [N, ...], as `Executor.inputs` returns it.
        y: its targets [N, ...].
        seed: of the network.

    Raises ValueError for another method, and for synflow if inputs are indices.
    """
    if method == "random":
        uniform = np.random.default_rng(seed).random(len(w), dtype=np.float32)
        return torch.from_numpy(uniform).to(w.device)
    if method == "magnitude":
        return w.abs()
    if method in GRASP:
        per_class, temperature = GRASP[method]
        pick = class_balanced(y, per_class, seed)
        sample = cast(x[pick], torch.float32)
        return grasp(executor.module, w, sample, y[pick], executor.task, temperature)
    if method == "synflow":
        ones = "another method for inputs that are indices"
        require(x.is_floating_point(), "pruning", method, ones)
        return synflow(executor.module, w, x[:1].double(), sparsity)
    require(method == "connection-sensitivity", "pruning", method, PRUNINGS)
    total = torch.zeros_like(w)
    for batch in zip(x.split(PASS_BATCH), y.split(PASS_BATCH), strict=True):
        total += executor.gradients(w[None], *batch)[1][0]
    return (w * total).abs()


def class_balanced(y: Tensor, per_class: int, seed: int) -> Tensor:
    """Up to `per_class` examples of every class in y [N], or in all if y has several targets."""
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed)).to(y.device)
    if y.dim() > 1:
        return order[:per_class]
    return torch.cat([order[y[order] == c][:per_class] for c in y.unique()])


def grasp(
    module: nn.Module,
    w: Tensor,
    x: Tensor,
    y: Tensor,
    task: Task = TASKS["classification"],
    temperature: float = 1.0,
) -> Tensor:
    """w * H g [P] for the task's mean loss on x [N, ...], y [N] (Wang et al. 2020, equation 8, with
    the opposite sign).

    temperature: divides the outputs before the loss.
    """
    w = w.detach().clone().requires_grad_()
    with sdpa_kernel(SDPBackend.MATH):  # which has second derivatives
        loss = task.loss(outputs(module, w, x) / temperature, y)
    (g,) = torch.autograd.grad(loss, w, create_graph=True)
    (hg,) = torch.autograd.grad(g @ g.detach(), w)
    return w.detach() * hg


def synflow(
    module: nn.Module, w: Tensor, x: Tensor, sparsity: float, rounds: int = SYNFLOW_ROUNDS
) -> Tensor:
    """Scores [P] of the last round; zero for what earlier rounds removed (Tanaka et al. 2020,
    algorithm 1).

    R is the sum of the outputs for an all-ones input when every parameter is replaced by its
    absolute value; round r keeps a share density^(r / rounds).  Computed in double precision, since
    R multiplies whole layers.  In a ReLU network R rises with every weight; with normalisation or
    attention it may fall, so a score is the absolute value of a weight's part in it.

    Weights that lie on one path only have equal scores up to rounding, which depends on the order
    of units, so scores equal in single precision count as equal.  Equal scores are kept or removed
    together in every round; the final scores break ties by |w|.
    """
    size = w.abs().double()
    left = torch.ones_like(size)
    for r in range(1, rounds + 1):
        v = (size * left).requires_grad_()
        with _unnormalised(module):
            flow = outputs(module, v, torch.ones_like(x)).sum()
        (slope,) = torch.autograd.grad(flow, v)
        mantissa, exponent = (v * slope).detach().abs().frexp()
        score = torch.ldexp(mantissa.float().double(), exponent)
        count = kept(len(w), 1 - (1 - sparsity) ** (r / rounds))
        left = (score >= score.topk(count).values[-1]).double()
    return score * (1 + BELOW * size / size.max())


@contextlib.contextmanager
def _unnormalised(module: nn.Module) -> Iterator[None]:
    """Within the block, batch normalisation without running statistics uses mean 0 and variance 1:
    one example has no batch statistics, and these are the initial running ones, with which the
    authors' code prunes.
    """

    def scaled(layer: _BatchNorm, x: Tensor) -> Tensor:
        zeros = x.new_zeros(layer.num_features)
        weights = layer.weight, layer.bias
        return functional.batch_norm(x, zeros, zeros + 1, *weights, eps=layer.eps)

    norms = [layer for layer in module.modules() if isinstance(layer, _BatchNorm)]
    norms = [layer for layer in norms if not layer.track_running_stats]
    for layer in norms:
        layer.forward = functools.partial(scaled, layer)
    try:
        yield
    finally:
        for layer in norms:
            del layer.forward


def layer_densities(mask: Tensor, module: nn.Module) -> list[tuple[str, int, int]]:
    """Per parameter tensor: name, number of scalars that a mask [P] keeps, number in all."""
    parts = ((layer.name, mask[layer.where]) for layer in layers(module))
    return [(name, int(part.sum()), len(part)) for name, part in parts]


def kept(parameters: int, sparsity: float) -> int:
    """How many parameters a sparsity in [0, 1) leaves: P (1 - sparsity), at least one."""
    require(0 <= sparsity < 1, "sparsity", sparsity, "in [0, 1)")
    return max(1, round(parameters * (1 - sparsity)))


def global_mask(scores: Tensor, sparsity: float) -> Tensor:
    """Mask [..., P] of zeros and ones that keeps exactly the `kept(P, sparsity)` largest scores of
    each row, the first among equal ones; `chosen` refuses if that matters.
    """
    count = kept(scores.shape[-1], sparsity)
    order = scores.argsort(dim=-1, descending=True, stable=True)[..., :count]
    return torch.zeros_like(scores).scatter_(-1, order, 1.0)


def chosen(method: str, scores: Tensor, sparsity: float) -> Tensor:
    """`global_mask` [P] of a method's scores [P], if these scores really decide.

    Raises ScoresError for scores that are not finite, or negative where the method's cannot be, and
    if removed parameters share the last score kept: more of them than chance explains, or any if it
    is zero.
    """
    signed = method in GRASP
    bad = scores[~(scores.isfinite() & ((scores >= 0) | signed))]
    if len(bad):
        must = "finite" if signed else "finite and not negative"
        raise ScoresError(
            f"pruning: {method!r} gives {len(bad)} of {len(scores)} parameters scores such as "
            f"{bad[0]:g}; scores must be {must}: choose another method"
        )
    mask = global_mask(scores, sparsity)
    left = mask > 0
    last = scores[left].min()
    tied = scores == last
    if (last == 0 or tied.sum() > BY_CHANCE) and (tied & ~left).any():
        raise ScoresError(
            f"pruning: {method!r} gives {scores.count_nonzero()} of {len(scores)} parameters "
            f"nonzero scores; sparsity {sparsity:g} keeps {left.sum()}, of which "
            f"{(tied & left).sum()} are picked by position from {tied.sum()} with score {last:g}; "
            "choose a higher sparsity or another method"
        )
    return mask
