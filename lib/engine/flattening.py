"""A network's parameters as one vector, and back.

Convolution kernels lie with their input channel last, the layout in which convolutions are fastest.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call

from lib import require
from lib.methods.method import Layer


def layers(module: nn.Module, chosen: dict[str, Tensor] | None = None) -> tuple[Layer, ...]:
    """The module's parameters, in the order in which `flatten` puts them; or some by their names,
    as they are, one after the other.
    """
    every = {name: memory_order(p) for name, p in module.named_parameters()}
    found = []
    at = 0
    for name, p in (every if chosen is None else chosen).items():
        where = slice(at, at + p.numel() * (1 + p.is_complex()))
        found.append(Layer(name, where, tuple(p.shape), _kind_of(module, name)))
        at = where.stop
    return tuple(found)


def _kind_of(module: nn.Module, name: str) -> str:
    """`Layer.kind` of the module's parameter of this name."""
    owner, _, leaf = name.rpartition(".")
    if leaf != "weight":
        return ""
    layer = module.get_submodule(owner)
    if layer.weight.is_complex():
        return ""
    if isinstance(layer, nn.Linear):
        return "last" if layer is head(module) else "linear"
    if isinstance(layer, nn.Conv2d) and layer.groups == 1:
        padded = layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
        return "convolution" if padded else ""
    return ""


def memory_order(p: Tensor) -> Tensor:
    """A kernel with its input channel last; any other parameter as it is."""
    return p.permute(0, 2, 3, 1) if p.dim() == 4 else p


def masked(g: Tensor, mask: Tensor | None) -> Tensor:
    """Gradients g with zeros, in place, where the mask has them; None: as they are."""
    return g if mask is None else g.mul_(mask)


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Inputs x [N, ...] in a network's arithmetic; indices (of words, say), which rounding would
    make others, stay.
    """
    return x.to(dtype) if x.is_floating_point() else x


def flatten(module: nn.Module) -> Tensor:
    """The module's parameters as one vector [P] (a copy)."""
    return torch.cat([memory_order(p.detach()).reshape(-1) for p in module.parameters()])


def unflatten(w: Tensor, module: nn.Module) -> list[Tensor]:
    """Views of w [..., P] with the shapes of the module's parameters: a list of [..., *shape]."""
    found = []
    for layer in layers(module):
        part = w[..., layer.where].unflatten(-1, layer.shape)
        found.append(part.movedim(-1, -3) if len(layer.shape) == 4 else part)
    return found


def outputs(module: nn.Module, w: Tensor, x: Tensor) -> Tensor:
    """Outputs [B, ..., classes] of the module with parameters w [P] in its own arithmetic,
    differentiable to any order.
    """
    names = [name for name, _ in module.named_parameters()]
    return functional_call(module, dict(zip(names, unflatten(w, module), strict=True)), x)


def head(module: nn.Module) -> nn.Linear:
    """The last linear layer.  Raises ValueError if the network has none."""
    linear = [m for m in module.modules() if isinstance(m, nn.Linear)]
    require(linear, "model", type(module).__name__, "a network whose last layer is linear")
    return linear[-1]
