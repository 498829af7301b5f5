"""A reader's own network: built, and tried before any compute is spent."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib.own import Own, OwnError

PROBE = 32  # examples on which an untrained network is tried


def build(own: Own, seed: int, name: str = "") -> nn.Module:
    """The network of one trial, initialised from its seed.  Raises OwnError if the reader's code does."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            module = own.model()
        except Exception as error:
            raise OwnError(f"{name}: model: building it raised {type(error).__name__}: {error}") from error
    if not isinstance(module, nn.Module):
        raise OwnError(f"{name}: model: {type(module).__name__} is not allowed; it must build an nn.Module")
    return module


def check(name: str, own: Own) -> None:
    """Everything that can be said before any compute is spent."""

    def require(fine: bool, field: str, value: object, allowed: str) -> None:
        if not fine:
            raise OwnError(f"{name}: {field}: {value} is not allowed; it must be {allowed}")

    require(isinstance(own, Own), "returned value", type(own).__name__, "a lib.own.Own")
    for field in ("train", "validation"):
        pair = getattr(own, field)
        require(isinstance(pair, tuple) and len(pair) == 2, field, type(pair).__name__, "a pair of inputs and labels")
        x, y = pair
        require(isinstance(x, Tensor) and x.is_floating_point(), f"{field} inputs", _kind(x), "a float tensor")
        require(
            isinstance(y, Tensor) and y.dtype == torch.int64 and y.dim() == 1, f"{field} labels", _kind(y), "int64 [N]"
        )
        require(len(x) == len(y) > 0, f"{field} lengths", f"{len(x)} inputs and {len(y)} labels", "equal and not zero")
        require(bool(x.isfinite().all()), f"{field} inputs", "a value that is not finite", "finite")
        require(int(y.min()) >= 0, f"{field} labels", int(y.min()), "from 0 on")
    goals = own.goals
    errors = isinstance(goals, tuple) and len(goals) > 0 and all(isinstance(g, float | int) and 0 <= g < 1 for g in goals)
    rising = errors and list(goals) == sorted(set(goals))
    require(rising, "goals", repr(goals), "a tuple of errors in [0, 1), the hardest first")
    require(isinstance(own.title, str), "title", repr(own.title), "text")
    require(type(own.max_steps) is int and own.max_steps > 0, "max_steps", repr(own.max_steps), "a whole number from 1")
    require(own.precision in ("float32", "bfloat16"), "precision", repr(own.precision), "float32 or bfloat16")
    require(type(own.decay) is bool, "decay", repr(own.decay), "True or False")
    _check_model(name, own, require)


def _check_model(name: str, own: Own, require: Callable) -> None:
    each, held = (list(pair[0].shape[1:]) for pair in (own.train, own.validation))
    require(held == each, "validation inputs", f"of shape {held} each", f"of shape {each} each, as those to train on")
    dtype = getattr(torch, own.precision)  # as the engine has it, in memory too
    module = build(own, 0, name).to(dtype=dtype, memory_format=torch.channels_last)
    buffers = [n for n, _ in module.named_buffers()]
    require(not buffers, "model", f"with buffers ({', '.join(buffers[:3])})", "without (no batch normalisation)")
    linear = [m for m in module.modules() if isinstance(m, nn.Linear)]
    require(bool(linear), "model", type(module).__name__, "a network whose last layer is nn.Linear")
    classes, most = linear[-1].out_features, int(max(own.train[1].max(), own.validation[1].max()))
    require(most < classes, "labels", f"up to {most}", f"below {classes}, the outputs of the last layer")
    last, ends = linear[-1], []
    last.register_forward_hook(lambda *call: ends.append((call[1][0].detach(), call[2].detach())))
    for pair, which in ((own.train, ""), (own.validation, "validation ")):
        x, y = pair[0][:PROBE].to(dtype), pair[1][:PROBE]
        x = x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x
        try:
            with torch.random.fork_rng(devices=[]):
                out, again = module(x), module(x)
            loss = F.cross_entropy(out.float(), y)
            loss.backward()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            raise OwnError(f"{name}: model: on {len(x)} {which}examples it raised {problem}") from error
        require(tuple(out.shape) == (len(x), classes), "model outputs", tuple(out.shape), f"[examples, {classes}]")
        require(bool(loss.isfinite()), "loss of an untrained network", loss.item(), "finite")
        require(torch.equal(out, again), "model outputs", "other ones when asked again", "the same every time (no dropout)")
        # The engine takes the last parameters for the biases of the layer whose outputs are the network's.
        final = list(module.parameters())[-1] is last.bias and bool(ends) and torch.equal(ends[-1][1], out)
        require(final, "last layer", str(last), "the network's output, with a bias, registered after all other parameters")
        # And it takes a network in which nothing reaches the last layer for dead, as one of rectifiers then is.
        moved = any(p.grad is not None and bool(p.grad.any()) for p in module.parameters() if p is not last.bias)
        reached = bool(ends[-1][0].any()) or not moved
        require(reached, "model", "one whose last layer sees zeros only at first", "initialised so that something reaches it")


def _kind(value: object) -> str:
    return f"{value.dtype} {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
