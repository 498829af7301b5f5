"""A network's parameters as one vector and back, and the base class of what computes gradients.

Convolution kernels are stored with the input channel last, the fastest layout for convolutions.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

from lib import require
from lib.methods.method import Layer
from lib.workloads.tasks import TASKS, Task


def layers(module: nn.Module, chosen: dict[str, Tensor] | None = None) -> tuple[Layer, ...]:
    """The module's parameters in the order of `flatten`, or those in `chosen`, laid out as is."""
    if chosen is None:
        chosen = {name: memory_order(p) for name, p in module.named_parameters()}
    named = []
    start = 0
    for name, p in chosen.items():
        end = start + p.numel() * (1 + p.is_complex())
        named.append(Layer(name, slice(start, end), tuple(p.shape), _kind_of(module, name)))
        start = end
    return tuple(named)


def _kind_of(module: nn.Module, name: str) -> str:
    """`Layer.kind` of the module's parameter with this name."""
    owner, _, leaf = name.rpartition(".")
    layer = module.get_submodule(owner)
    if leaf != "weight" or layer.weight.is_complex():
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
    """Gradients g multiplied, in place, by the mask; None: as they are."""
    return g if mask is None else g.mul_(mask)


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Inputs x [N, ...] in a network's dtype; indices (of words, say) stay as they are."""
    return x.to(dtype) if x.is_floating_point() else x


def flatten(module: nn.Module) -> Tensor:
    """The module's parameters as one vector [P] (a copy)."""
    return torch.cat([memory_order(p.detach()).reshape(-1) for p in module.parameters()])


def unflatten(w: Tensor, module: nn.Module) -> list[Tensor]:
    """Views of w [..., P] with the shapes of the module's parameters: a list of [..., *shape]."""
    views = []
    for layer in layers(module):
        view = w[..., layer.where].unflatten(-1, layer.shape)
        views.append(view.movedim(-1, -3) if len(layer.shape) == 4 else view)
    return views


def outputs(module: nn.Module, w: Tensor, x: Tensor) -> Tensor:
    """Outputs [B, ..., classes] at parameters w [P], differentiable to any order."""
    names = [name for name, _ in module.named_parameters()]
    return functional_call(module, dict(zip(names, unflatten(w, module), strict=True)), x)


def head(module: nn.Module) -> nn.Linear:
    """The last linear layer.  Raises ValueError if the network has none."""
    linear = [m for m in module.modules() if isinstance(m, nn.Linear)]
    require(linear, "model", type(module).__name__, "a network whose last layer is linear")
    return linear[-1]


class Executor:
    """Computes losses and gradients of many trials of one network.

    Attributes:
        normalised: whether it has batch normalisation: outputs then depend on the whole batch.
        classes: outputs of the last layer.
    """

    def __init__(
        self,
        module: nn.Module,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        smoothing: float = 0,
        task: Task = TASKS["classification"],
    ):
        """
        module: the network.
        dtype: of its arithmetic; outside, weights are float32.
        device: where it is computed.
        smoothing: the share of a target that label smoothing spreads evenly over all classes.
        task: what the network is trained for.
        """
        self.module = module.to(device)
        self.dtype = dtype
        self.device = device
        self.smoothing = smoothing
        self.task = task
        self.classes = head(module).out_features
        self.normalised = any(isinstance(layer, _BatchNorm) for layer in module.modules())

    def inputs(self, x: Tensor) -> Tensor:
        """x in the network's dtype (`cast`) and on its device; convert a data set once."""
        return cast(x, self.dtype).to(self.device)

    @torch.no_grad()
    def all_off(self, w: Tensor, x: Tensor) -> bool:
        """Whether the last layer's inputs are zero for all x [N, ...] at weights w [P]."""
        return not any(self._features(w, part).any() for part in x.split(1024))
