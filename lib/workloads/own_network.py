"""A reader's own network: built, and tried before any compute is spent."""

from __future__ import annotations

import contextlib
import hashlib
import math
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from lib import is_number
from lib.fields import shown
from lib.own import Own, OwnError, Training, raised, require, telling
from lib.workloads import batches, kinds
from lib.workloads.tasks import TASKS

# What else a reader may do
OTHERWISE = "; or return a lib.own.Training, which takes any module, in place of a lib.own.Own"
SEEDED = (
    "drawn from the numbers of torch, of numpy's global generator or of Python's, which are seeded "
    "for every trial"
)
PROBE = 32  # examples on which an untrained network is tried
INPUTS = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64)
# Held by whoever seeds the global random numbers, which all threads of the process share
ALONE = threading.RLock()


@dataclass(frozen=True)
class Facts:
    """What the checks have found out: examples to train on; numbers in one of them; values of the
    metric on the validation set; chance, an error that asks for nothing: that of an answer that is
    always the same, or of an untrained module where the metric is the reader's.
    """

    examples: int
    numbers: int
    values: int
    chance: float


def _flushing() -> bool:
    """Whether denormal numbers are zeros; torch does not tell."""
    return not (torch.full((1,), 1e-310, dtype=torch.float64, device="cpu") * 1).any()


# of torch, kept for a thread or for the process: how to read and to set them, and what a reader's
# code begins with
SETTINGS = (
    (torch.get_default_dtype, torch.set_default_dtype, torch.float32),
    (torch.get_num_threads, torch.set_num_threads, 1),
    (torch.is_grad_enabled, torch.set_grad_enabled, True),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, False),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest"),
    (
        lambda: str(torch.get_default_device()),
        lambda d: torch.set_default_device(None if d == "cpu" else d),
        "cpu",
    ),
    (_flushing, torch.set_flush_denormal, False),
)


def _settings() -> list:
    return [get() for get, *_ in SETTINGS]


def _set(values: list) -> None:
    for (get, put, _), value in zip(SETTINGS, values, strict=True):
        if get() != value:
            put(value)


@contextlib.contextmanager
def alone(seed: int | None = None) -> Iterator[None]:
    """A block in which a reader's code finds the same surroundings in every thread and process, and
    leaves none behind.

    No other thread draws or seeds global random numbers meanwhile; they and torch's settings are
    restored after it.  seed: where the numbers of torch, numpy and Python begin; None: where they
    are.
    """
    with ALONE, batches.restored():
        before = _settings()
        _set([fresh for *_, fresh in SETTINGS])
        if seed is not None:
            batches.seeded(seed)
        try:
            yield
        finally:
            _set(before)


def _left() -> list:
    """What would show that random numbers were drawn, or settings changed."""
    return [*_settings(), torch.rand(1).item(), np.random.rand(), random.random()]


def build(own: Own | Training, seed: int) -> nn.Module:
    """The network of one trial, initialised from its seed, in single precision.  Raises OwnError if
    the reader's code does.
    """
    with alone(seed):
        return made(own)


def made(own: Own | Training) -> nn.Module:
    """As `build`, from the global random numbers where they are."""
    with telling("model: building it raised"):
        module = own.model()
    if not isinstance(module, nn.Module):
        raise OwnError(f"model: {type(module).__name__} is not allowed; it must build an nn.Module")
    module.forward = _staying()(module.forward)
    return module.float()


@contextlib.contextmanager
def _staying() -> Iterator[None]:
    """A block that raises OwnError where it would end the process."""
    try:
        yield
    except SystemExit as error:
        raise OwnError(f"model: asked for outputs it raised {raised(error)}") from error


def fingerprints(own: Own) -> dict[str, str]:
    """Digest of the type, the shape and the numbers of every tensor."""
    pairs = {"train": own.train, "validation": own.validation}
    return {
        f"{field} {part}": _fingerprint(tensor.detach().contiguous())
        for field, pair in pairs.items()
        for part, tensor in zip(("inputs", "labels"), pair)
    }


def _fingerprint(tensor: Tensor) -> str:
    whole = hashlib.sha256(kind(tensor).encode())
    whole.update(tensor.view(-1).view(torch.uint8).numpy())
    return whole.hexdigest()


def check_fields(own: Own) -> None:
    """All that can be said of what the function returned before the network is built.  Raises
    OwnError.
    """
    for field in ("train", "validation"):
        pair = getattr(own, field)
        fine = isinstance(pair, tuple) and len(pair) == 2
        require(fine, field, type(pair).__name__, "a pair of inputs and labels")
        x, y = pair
        check_tensors(field, {f"{field} inputs": x, f"{field} labels": y})
        allowed = "a float tensor, or one of indices (int64)"
        require(x.dtype in INPUTS, f"{field} inputs", kind(x), allowed)
        fine = y.dtype == torch.int64 and y.dim() == 1
        require(fine, f"{field} labels", kind(y), "int64 [N]")
        require(int(y.min()) >= 0, f"{field} labels", int(y.min()), "from 0 on")
    check_each(own, FIELDS)
    check_goals(own)
    each, held = (list(pair[0].shape[1:]) for pair in (own.train, own.validation))
    allowed = f"of shape {each} each, as those to train on"
    require(held == each, "validation inputs", f"of shape {held} each", allowed)
    check_rounding(own, own.precision)


def check_tensors(field: str, parts: dict[str, object]) -> None:
    """Tensors of data, by what messages call them.  Raises OwnError."""
    for name, part in parts.items():
        fine = is_plain(part) and part.dim() > 0
        require(fine, name, kind(part), "a dense tensor on the CPU")
        if part.is_floating_point():
            finite = part.float().isfinite().all()
            told = "a value that is not finite"
            require(finite, name, told, "finite in single precision")
    sizes = [len(part) for part in parts.values()]
    same = len(set(sizes)) == 1 and sizes[0] > 0
    require(same, f"{field} lengths", sizes, "equal and not zero")


def is_count(value: object) -> bool:
    """Whether it is a whole number from 1."""
    return type(value) is int and value > 0


# Fields of every workload: whether a value fits, and what is allowed
SHARED = {
    "model": (callable, "a function"),
    "title": (lambda v: isinstance(v, str) and v.isprintable(), "text of printable characters"),
    "max_steps": (is_count, "a whole number from 1"),
    "precision": (("float32", "bfloat16").__contains__, "float32 or bfloat16"),
}
FIELDS = {
    **SHARED,
    "task": (lambda v: isinstance(v, str) and v in TASKS, f"one of {', '.join(TASKS)}"),
    "decay": (lambda v: type(v) is bool, "True or False"),
}


def check_each(own: Own | Training, fields: dict[str, tuple[Callable, str]]) -> None:
    """Fields, each for itself.  Raises OwnError."""
    for field, (fits, allowed) in fields.items():
        value = getattr(own, field)
        require(fits(value), field, shown(value), allowed)


def check_goals(own: Own | Training) -> None:
    """Goals of a metric that fits.  Raises OwnError."""
    given, asked = own.goals, kinds.of(own)
    up = asked.highest is not None
    allowed = f"a tuple of numbers, the hardest ({'highest' if up else 'lowest'}) first"
    numbers = isinstance(given, tuple) and given and all(map(is_finite, given))
    require(numbers, "goals", repr(given), allowed)
    errors = kinds.errors(own)
    require(list(errors) == sorted(set(errors)), "goals", repr(given), allowed)
    if up or asked.never_negative:
        most = 1.0 if asked.counted else math.inf
        inside = all(0 <= error < most for error in errors)
        allowed = f"in [0, {most:g}){_hint(asked)}"
        if up:
            allowed = f"up to {asked.highest:g}"
        require(inside, "goals", repr(given), allowed)
    apart = len({f"{error:g}" for error in errors}) == len(errors)  # as records name their columns
    require(apart, "goals", repr(given), "of numbers that differ in their first six digits")


def _hint(asked: kinds.Kind) -> str:
    return " (goals are errors: for an accuracy of 0.95 write 0.05)" * asked.counted


def is_finite(value: object) -> bool:
    """Whether it is a finite number of Python's."""
    return is_number(value) and math.isfinite(value)


def check_chance(own: Own | Training, chance: float, who: str) -> None:
    """No goal is met by what costs this much without any training.  Raises OwnError."""
    asked = kinds.of(own)
    met = [goal for goal, error in zip(own.goals, kinds.errors(own)) if error >= chance]
    better = "below" if asked.highest is None else "above"
    allowed = f"{better} {asked.given(chance):.4g}, which asks for nothing: {who} has it"
    require(not met, "goals", ", ".join(f"{goal:g}" for goal in met), allowed + _hint(asked))


def check_rounding(own: Own, precision: str) -> None:
    """Inputs that are whole numbers stay themselves in this precision.  Raises OwnError."""
    dtype = getattr(torch, precision)
    for field, (x, _) in (("train", own.train), ("validation", own.validation)):
        # Numbers of classes, words or places, which rounding would make others; integers are never
        # rounded.
        numbering = x.is_floating_point() and torch.equal(x, x.round())
        kept = not numbering or torch.equal(x.to(dtype).to(x.dtype), x)
        told = f"whole numbers up to {x.abs().max():g}"
        require(kept, f"{field} inputs", told, f"such as {precision} keeps")


def check(own: Own) -> Facts:
    """All that can be said of the network before any compute is spent, of fields that fit.  Raises
    OwnError.
    """
    labels = own.validation[1]
    chance = kinds.of(own).constant(labels)
    told = f"class {labels[0]} alone"
    require(chance > 0, "validation labels", told, "of two classes or more")
    check_chance(own, chance, "an answer that is always the same")
    module, again, other = (build(own, seed) for seed in (0, 0, 1))
    last = _check_layers(module)
    check_built(module, again, other)
    _check_parameters(module, other)
    most = max(int(own.train[1].max()), int(labels.max()))
    allowed = f"below {last.out_features}, the outputs of the last layer"
    require(most < last.out_features, "labels", f"up to {most}", allowed)
    for network in (module, other):  # as the engine has it, in memory too
        network.to(dtype=getattr(torch, own.precision), memory_format=torch.channels_last)
    ends: list[tuple[Tensor, Tensor]] = []
    last.register_forward_hook(lambda _, x, out: ends.append((x[0].detach(), out.detach())))
    first, _ = (_tried(own, module, last, which, ends) for which in ("train", "validation"))
    x = _inputs(own.train[0], module)
    parameters = dict(module.named_parameters())
    with alone(0), torch.no_grad():
        # Which would stay in a network that keeps its first inputs
        other(_inputs(own.validation[0], module))
        borrowed = functional_call(other, parameters, x)
    same = _near(first, borrowed)
    allowed = "the same function of its inputs and parameters for every trial"
    require(same, "model", "one that keeps more than its parameters", allowed)
    _check_single(module, x, first)
    numbers = own.train[0][0].numel()
    return Facts(len(own.train[1]), numbers, len(labels), chance)


def _none(found: list[str], told: str, allowed: str) -> None:
    """Require of a model that nothing like this was found in it."""
    require(not found, "model", f"{told} ({', '.join(found[:3])})", allowed)


def _check_layers(module: nn.Module) -> nn.Linear:
    """The last linear layer of a network without buffers."""
    buffers = [name for name, _ in module.named_buffers()]
    _none(buffers, "with buffers", "without (no batch normalisation)" + OTHERWISE)
    linear = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    allowed = "a network whose last layer is nn.Linear" + OTHERWISE
    require(linear, "model", type(module).__name__, allowed)
    return linear[-1]


def check_built(module: nn.Module, again: nn.Module, other: nn.Module) -> None:
    """Two modules of one seed and one of another, each built anew from the seed alone.  Raises
    OwnError.
    """
    named = dict(module.named_parameters())
    lazy = [name for name, p in named.items() if nn.parameter.is_lazy(p)]
    _none(lazy, "with parameters that have no shape yet", "one that knows its shapes")
    away = [f"{name} on {p.device}" for name, p in named.items() if not is_plain(p)]
    _none(away, "with parameters elsewhere", "built of dense parameters on the CPU")
    shapes = {name: p.shape for name, p in named.items()}
    held = set(_memory(module))
    for network in (again, other):
        told = "a network that shares its parameters with an earlier one"
        apart = held.isdisjoint(_memory(network))
        require(apart, "model", told, "built anew each time")
        held.update(_memory(network))
        same = {name: p.shape for name, p in network.named_parameters()} == shapes
        told = "of other parameters when built again"
        require(same, "model", told, "the same network")
    same = _equal(module, again)
    told = "another initialisation from the same seed"
    require(same, "model", told, SEEDED)


def _memory(module: nn.Module) -> list[int]:
    """Where the parameters lie."""
    return [p.untyped_storage().data_ptr() for p in module.parameters() if p.numel()]


def _equal(module: nn.Module, other: nn.Module) -> bool:
    return all(map(torch.equal, module.parameters(), other.parameters()))


def _check_parameters(module: nn.Module, other: nn.Module) -> None:
    """The network is trained whole, and another seed's begins elsewhere."""
    named = module.named_parameters()
    fixed = [name for name, p in named if not p.requires_grad or not p.is_floating_point()]
    _none(fixed, "with parameters that are not trained", "trained whole" + OTHERWISE)
    held = _memory(module)
    apart = len(held) == len(set(held))
    told = "with parameters that share memory"
    require(apart, "model", told, "with each in its own, or one parameter used twice")
    same = _equal(module, other)
    told = "the same initialisation from every seed"
    require(not same, "model", told, SEEDED)


def _tried(
    own: Own, module: nn.Module, last: nn.Linear, field: str, ends: list[tuple[Tensor, Tensor]]
) -> Tensor:
    """Outputs for a few examples of a field.

    ends: filled by each call of the last layer, with its inputs and outputs.
    """
    examples, labels = getattr(own, field)
    given = _inputs(examples, module)
    x = given.clone()
    weights = [p.detach().clone() for p in module.parameters()]
    with alone(0):
        before = _left()
    which = "" if field == "train" else "validation "
    with alone(0), telling(f"model: on {len(x)} {which}examples it raised"):
        out = module(x)
        again = module(given.clone())
        allowed = "a tensor [examples, classes]" + OTHERWISE
        require(isinstance(out, Tensor), "model outputs", type(out).__name__, allowed)
        loss = TASKS[own.task].loss(out.float(), labels[:PROBE])
        loss.backward()
        after = _left()
    leaves = "one that leaves them as they are"
    told = "one that changes its inputs in place"
    require(torch.equal(x, given), "model", told, leaves)
    allowed = "the same every time (no dropout)" + OTHERWISE
    same = torch.equal(out, again)
    require(same, "model outputs", "other ones when asked again", allowed)
    kept = all(map(torch.equal, module.parameters(), weights))
    told = "one that changes its parameters when asked for outputs"
    require(kept, "model", told, leaves)
    told = "one that changes global random numbers or settings when asked for outputs"
    require(after == before, "model", told, leaves)
    require(loss.isfinite(), "loss of an untrained network", loss.item(), "finite")
    # The engine takes the last parameters for the biases of the layer whose outputs are the
    # network's.
    *others, bias = module.parameters()
    final = bias is last.bias and ends and torch.equal(ends[-1][1], out)
    allowed = "the network's output, with a bias, registered after all other parameters"
    require(final, "last layer", str(last), allowed + OTHERWISE)
    # And it takes a network in which nothing reaches the last layer for dead, as one of
    # rectifiers then is.
    reached = ends[-1][0].any() or not has_gradient(others)
    told = "one whose last layer sees zeros only at first"
    require(reached, "model", told, "initialised so that something reaches it")
    return out.detach()


def has_gradient(parameters: list[nn.Parameter]) -> bool:
    """Whether the loss changes with any of them."""
    return any(p.grad is not None and bool(p.grad.any()) for p in parameters)


def _check_single(module: nn.Module, x: Tensor, whole: Tensor) -> None:
    """Which examples are asked together is the engine's business; only of batch normalisation it
    knows.
    """
    together = nn.modules.batchnorm._BatchNorm
    if any(isinstance(layer, together) for layer in module.modules()):
        return
    with alone(0), torch.no_grad(), telling("model: on 1 example it raised"):
        found = module(x[:1].clone())
    same = found.shape == whole[:1].shape and _near(whole[:1], found)
    told = "others for an example alone than among others"
    allowed = "each example's own"
    require(same, "model outputs", told, allowed)


def _near(expected: Tensor, found: Tensor) -> bool:
    """Whether two outputs are the same up to rounding."""
    least = max(1e-3, 16 * torch.finfo(expected.dtype).eps) * float(expected.abs().max())
    return bool((expected - found).abs().max() <= least)


def _inputs(x: Tensor, module: nn.Module) -> Tensor:
    """A few examples as the engine passes them on (a copy)."""
    dtype = next(module.parameters()).dtype if x.is_floating_point() else x.dtype
    x = x[:PROBE].detach().to(dtype, copy=True)
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x.contiguous()


def is_plain(value: object) -> bool:
    """Whether it is a dense tensor on the CPU, of rows that are all of one length."""
    if not isinstance(value, Tensor) or value.is_nested:
        return False
    return value.device.type == "cpu" and value.layout == torch.strided


def kind(value: object) -> str:
    """What a value is, in words."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    if value.is_nested:  # has no shape to tell
        return f"a nested tensor, {value.dtype}, whose rows may differ in length (pad them)"
    layout = "" if value.layout == torch.strided else f", {value.layout}"
    return f"{value.dtype} {list(value.shape)} on {value.device}{layout}"
