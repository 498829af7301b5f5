"""A reader's own network: built, and tried before any compute is spent."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import random
import threading
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from lib.own import Own, OwnError, Training, raised
from lib.workloads.tasks import TASKS, Task

# What else a reader may do
OTHERWISE = "; or return a lib.own.Training, which takes any module, in place of a lib.own.Own"
PROBE = 32  # examples on which an untrained network is tried
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# Held by whoever seeds the global random numbers, which all threads of the process share
ALONE = threading.RLock()


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
    with ALONE, torch.random.fork_rng(devices=[]):
        drawn, before = (random.getstate(), np.random.get_state()), [get() for get, *_ in SETTINGS]
        _set([fresh for *_, fresh in SETTINGS])
        if seed is not None:
            torch.manual_seed(seed)
            np.random.seed(seed)
            random.seed(seed)
        try:
            yield
        finally:
            random.setstate(drawn[0])
            np.random.set_state(drawn[1])
            _set(before)


def _surroundings() -> list:
    """All that `alone` restores, to be compared."""
    states = [
        torch.get_rng_state().tolist(),
        [str(part) for part in np.random.get_state()],
        random.getstate(),
    ]
    return states + [get() for get, *_ in SETTINGS]


def build(own: Own | Training, seed: int, name: str = "") -> nn.Module:
    """The network of one trial, initialised from its seed, in single precision.  Raises OwnError if
    the reader's code does.
    """
    with alone(seed):
        return made(own, name)


def made(own: Own | Training, name: str) -> nn.Module:
    """As `build`, from the global random numbers where they are."""
    try:
        module = own.model()
    except (Exception, SystemExit) as error:
        raise OwnError(f"{name}: model: building it raised {raised(error)}") from error
    if not isinstance(module, nn.Module):
        raise OwnError(
            f"{name}: model: {type(module).__name__} is not allowed; it must build an nn.Module"
        )
    module.forward = _staying(module.forward, name)
    return module.float()


def _staying(forward: Callable, name: str) -> Callable:
    """The function, which raises OwnError where it would end the process."""

    @functools.wraps(forward)
    def stays(*inputs, **named):
        try:
            return forward(*inputs, **named)
        except SystemExit as error:
            raise OwnError(f"{name}: model: asked for outputs it raised {raised(error)}") from error

    return stays


def fingerprints(own: Own) -> dict[str, str]:
    """Digest of the type, the shape and the numbers of every tensor."""
    tensors = {
        "train inputs": own.train[0],
        "train labels": own.train[1],
        "validation inputs": own.validation[0],
        "validation labels": own.validation[1],
    }
    return {part: _fingerprint(t.detach().contiguous()) for part, t in tensors.items()}


def _fingerprint(tensor: Tensor) -> str:
    whole = hashlib.sha256(kind(tensor).encode())
    whole.update(tensor.view(-1).view(torch.uint8).numpy())
    return whole.hexdigest()


def requiring(name: str) -> Callable:
    """`lib.require` for this workload's fields: its values are words."""

    def require(fine: object, field: str, value: object, allowed: str) -> None:
        if not fine:
            raise OwnError(f"{name}: {field}: {value} is not allowed; it must be {allowed}")

    return require


def check_fields(name: str, own: Own) -> None:
    """All that can be said of what the function returned before the network is built.  Raises
    OwnError.
    """
    require = requiring(name)
    for field in ("train", "validation"):
        pair = getattr(own, field)
        require(
            isinstance(pair, tuple) and len(pair) == 2,
            field,
            type(pair).__name__,
            "a pair of inputs and labels",
        )
        x, y = pair
        fine = is_plain(x) and x.dtype in (*FLOATS, torch.int64) and x.dim() > 0
        require(
            fine,
            f"{field} inputs",
            kind(x),
            "a float tensor, or one of indices (int64), on the CPU",
        )
        fine = is_plain(y) and y.dtype == torch.int64 and y.dim() == 1
        require(fine, f"{field} labels", kind(y), "int64 [N], on the CPU")
        require(
            len(x) == len(y) > 0,
            f"{field} lengths",
            f"{len(x)} inputs and {len(y)} labels",
            "equal and not zero",
        )
        require(
            x.float().isfinite().all(),
            f"{field} inputs",
            "a value that is not finite",
            "finite in single precision",
        )
        require(int(y.min()) >= 0, f"{field} labels", int(y.min()), "from 0 on")
    known = isinstance(own.task, str) and own.task in TASKS
    require(known, "task", repr(own.task), "one of " + ", ".join(TASKS))
    goals, below = own.goals, TASKS[own.task].below
    errors = (
        isinstance(goals, tuple)
        and len(goals) > 0
        and all(isinstance(g, float | int) and 0 <= g < below for g in goals)
    )
    rising = errors and list(goals) == sorted(set(goals))
    require(rising, "goals", repr(goals), f"a tuple of errors in [0, {below:g}), the hardest first")
    apart = len({f"{g:g}" for g in goals}) == len(goals)  # as records name their columns
    require(apart, "goals", repr(goals), "of errors that differ in their first six digits")
    check_plain(own, require)
    require(type(own.decay) is bool, "decay", repr(own.decay), "True or False")
    each, held = (list(pair[0].shape[1:]) for pair in (own.train, own.validation))
    require(
        held == each,
        "validation inputs",
        f"of shape {held} each",
        f"of shape {each} each, as those to train on",
    )
    check_rounding(name, own, own.precision)


def check_plain(own: Own | Training, require: Callable) -> None:
    """Fields that every workload has.  Raises OwnError."""
    require(isinstance(own.title, str), "title", repr(own.title), "text")
    require(
        own.title.isprintable(), "title", repr(own.title), "of printable characters, in one line"
    )
    require(
        type(own.max_steps) is int and own.max_steps > 0,
        "max_steps",
        repr(own.max_steps),
        "a whole number from 1",
    )
    require(
        own.precision in ("float32", "bfloat16"),
        "precision",
        repr(own.precision),
        "float32 or bfloat16",
    )


def _check_chance(name: str, own: Own) -> None:
    """No goal is met by an answer that is the same for every example.  Raises OwnError."""
    task, labels = TASKS[own.task], own.validation[1]
    chance, most = task.constant(labels), int(labels.bincount().argmax())
    require = requiring(name)
    require(chance > 0, "validation labels", f"class {most} alone", "of two classes or more")
    met = [goal for goal in own.goals if goal >= chance]
    always = f"what the validation set costs if every answer is class {most}"
    if not task.counted:
        always = "what the shares of the classes in the validation set cost as every answer"
    accuracy = " (goals are errors: for an accuracy of 0.95 write 0.05)" * task.counted
    allowed = f"below {chance:.4g}, {always}{accuracy}"
    require(not met, "goals", ", ".join(f"{g:g}" for g in met), allowed)


def check_rounding(name: str, own: Own, precision: str) -> None:
    """Inputs that are whole numbers stay themselves in this precision.  Raises OwnError."""
    dtype = getattr(torch, precision)
    for field, (x, _) in (("train", own.train), ("validation", own.validation)):
        # Numbers of classes, words or places, which rounding would make others; integers are never
        # rounded.
        numbering = x.is_floating_point() and torch.equal(x, x.round())
        kept = not numbering or torch.equal(x.to(dtype).to(x.dtype), x)
        requiring(name)(
            kept,
            f"{field} inputs",
            f"whole numbers up to {x.abs().max():g}",
            f"such as {precision} keeps",
        )


def check(name: str, own: Own) -> None:
    """All that can be said of the network before any compute is spent, of fields that fit.  Raises
    OwnError.
    """
    _check_chance(name, own)
    require = requiring(name)
    dtype = getattr(torch, own.precision)  # as the engine has it, in memory too
    module, again, other = (build(own, seed, name) for seed in (0, 0, 1))
    buffers = [n for n, _ in module.named_buffers()]
    require(
        not buffers,
        "model",
        f"with buffers ({', '.join(buffers[:3])})",
        "without (no batch normalisation)" + OTHERWISE,
    )
    linear = [m for m in module.modules() if isinstance(m, nn.Linear)]
    allowed = "a network whose last layer is nn.Linear" + OTHERWISE
    require(linear, "model", type(module).__name__, allowed)
    _check_parameters(module, again, other, require)
    classes, most = linear[-1].out_features, int(max(own.train[1].max(), own.validation[1].max()))
    require(
        most < classes, "labels", f"up to {most}", f"below {classes}, the outputs of the last layer"
    )
    for network in (module, other):
        network.to(dtype=dtype, memory_format=torch.channels_last)
    last, ends = linear[-1], []
    last.register_forward_hook(lambda *call: ends.append((call[1][0].detach(), call[2].detach())))
    task = TASKS[own.task]
    first, _ = _tried(module, own.train, task, "", name, require)
    for pair, which in ((own.train, ""), (own.validation, "validation ")):
        out, loss = _tried(module, pair, task, which, name, require)
        require(
            tuple(out.shape) == (len(out), classes),
            "model outputs",
            tuple(out.shape),
            f"[examples, {classes}]",
        )
        require(bool(loss.isfinite()), "loss of an untrained network", loss.item(), "finite")
        # The engine takes the last parameters for the biases of the layer whose outputs are the
        # network's.
        final = (
            list(module.parameters())[-1] is last.bias
            and bool(ends)
            and torch.equal(ends[-1][1], out)
        )
        require(
            final,
            "last layer",
            str(last),
            "the network's output, with a bias, registered after all other parameters" + OTHERWISE,
        )
        # And it takes a network in which nothing reaches the last layer for dead, as one of
        # rectifiers then is.
        moved = any(
            p.grad is not None and bool(p.grad.any())
            for p in module.parameters()
            if p is not last.bias
        )
        reached = bool(ends[-1][0].any()) or not moved
        require(
            reached,
            "model",
            "one whose last layer sees zeros only at first",
            "initialised so that something reaches it",
        )
    x = _inputs(own.train[0], dtype)
    same, allowed = (
        functools.partial(_near, first),
        "the same every time, whatever was asked before",
    )
    with alone(0), torch.no_grad():
        require(same(module(x)), "model outputs", "other ones after other inputs", allowed)
        other(_inputs(own.validation[0], dtype))  # which would stay, had the first inputs been kept
        borrowed = functional_call(other, dict(module.named_parameters()), x)
        require(
            same(borrowed),
            "model",
            "one that keeps more than its parameters",
            "the same function of its inputs and parameters for every trial",
        )
    _check_single(module, x, first, name, require)


SEEDED = (
    "drawn from the numbers of torch, of numpy's global generator or of Python's, which are seeded "
    "for every trial"
)


def check_built(modules: list[nn.Module], require: Callable) -> None:
    """Modules of two seeds, the first of them twice, each anew from the seed alone.  Raises
    OwnError.
    """
    module, again, other = modules
    named = dict(module.named_parameters())
    lazy = [n for n, p in named.items() if nn.parameter.is_lazy(p)]
    require(
        not lazy,
        "model",
        f"with parameters that have no shape yet ({', '.join(lazy[:3])})",
        "one that knows its shapes",
    )
    away = [f"{n} on {p.device}" for n, p in named.items() if not is_plain(p)]
    require(
        not away, "model", f"with {', '.join(away[:3])}", "built of dense parameters on the CPU"
    )
    held = [_held(network) for network in (module, again, other)]
    apart = not (
        held[0].keys() & held[1].keys()
        or held[0].keys() & held[2].keys()
        or held[1].keys() & held[2].keys()
    )
    require(
        apart,
        "model",
        "a network that shares its parameters with an earlier one",
        "built anew each time",
    )
    shapes = [
        [(n, p.shape) for n, p in network.named_parameters()] for network in (module, again, other)
    ]
    require(
        shapes[0] == shapes[1] == shapes[2],
        "model",
        "of other parameters when built again",
        "the same network",
    )
    require(
        _equal(module, again),
        "model",
        "another initialisation from the same seed",
        SEEDED,
    )


def _check_parameters(
    module: nn.Module, again: nn.Module, other: nn.Module, require: Callable
) -> None:
    """Two networks of one seed and one of another: trained whole, each its own, and drawn from the
    seed alone.
    """
    check_built([module, again, other], require)
    named = dict(module.named_parameters())
    fixed = [n for n, p in named.items() if not p.requires_grad or not p.is_floating_point()]
    require(
        not fixed,
        "model",
        f"with parameters that are not trained ({', '.join(fixed[:3])})",
        "trained whole" + OTHERWISE,
    )
    held = _held(module)
    overlaps = any(begin < end for at in held.values() for (_, end), (begin, _) in zip(at, at[1:]))
    require(
        not overlaps,
        "model",
        "with parameters that share memory",
        "with each in its own, or one parameter used twice",
    )
    require(
        not _equal(module, other),
        "model",
        "the same initialisation from every seed",
        SEEDED,
    )


def _held(module: nn.Module) -> dict[int, list[tuple[int, int]]]:
    """The stretches of memory, in bytes, that the parameters take: address -> begin and end, in
    order.
    """
    stretches: dict[int, list[tuple[int, int]]] = {}
    for p in module.parameters():
        if p.numel():
            begin = p.storage_offset() * p.element_size()
            stretches.setdefault(p.untyped_storage().data_ptr(), []).append(
                (begin, begin + p.numel() * p.element_size())
            )
    return {at: sorted(parts) for at, parts in stretches.items()}


def _equal(module: nn.Module, other: nn.Module) -> bool:
    return all(
        torch.equal(p, q) for p, q in zip(module.parameters(), other.parameters(), strict=True)
    )


def _tried(
    module: nn.Module, pair: tuple, task: Task, which: str, name: str, require: Callable
) -> tuple[Tensor, Tensor]:
    """Outputs and loss for a few examples; the gradients are in the parameters."""
    given, y = _inputs(pair[0], next(module.parameters()).dtype), pair[1][:PROBE]
    x, weights = given.clone(), [p.detach().clone() for p in module.parameters()]
    with alone(0):
        before = _surroundings()
        try:
            out, again = module(x), module(given.clone())
            require(
                isinstance(out, Tensor),
                "model outputs",
                _told(out),
                f"a tensor [examples, classes]{_instead(out)}",
            )
            loss = task.loss(out.float(), y)
            loss.backward()
        except OwnError:
            raise
        except Exception as error:
            raise OwnError(
                f"{name}: model: on {len(x)} {which}examples it raised {raised(error)}"
            ) from error
        after = _surroundings()
    require(
        torch.equal(x, given),
        "model",
        "one that changes its inputs in place",
        "one that leaves them as they are",
    )
    require(
        torch.equal(out, again),
        "model outputs",
        "other ones when asked again",
        "the same every time (no dropout)" + OTHERWISE,
    )
    kept = all(torch.equal(p, w) for p, w in zip(module.parameters(), weights, strict=True))
    require(
        kept,
        "model",
        "one that changes its parameters when asked for outputs",
        "one that leaves them as they are",
    )
    quiet = (
        "one that draws no random numbers and leaves torch's settings alone when asked for outputs"
    )
    require(after == before, "model", "one that changes global random numbers or settings", quiet)
    return out.detach(), loss.detach()


def _check_single(
    module: nn.Module, x: Tensor, whole: Tensor, name: str, require: Callable
) -> None:
    """Which examples are asked together is the engine's business; only of batch normalisation it
    knows.
    """
    if any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in module.modules()):
        return
    with alone(0), torch.no_grad():
        try:
            found = module(x[:1].clone())
        except Exception as error:
            raise OwnError(f"{name}: model: on 1 example it raised {raised(error)}") from error
    fine = found.shape == whole[:1].shape and _near(whole[:1], found)
    require(
        fine, "model outputs", "others for an example alone than among others", "each example's own"
    )


def _near(expected: Tensor, found: Tensor) -> bool:
    """Whether two outputs are the same up to rounding."""
    least = max(1e-3, 16 * torch.finfo(expected.dtype).eps) * float(expected.abs().max())
    return bool((expected - found).abs().max() <= least)


def _inputs(x: Tensor, dtype: torch.dtype) -> Tensor:
    """A few examples as the engine passes them on (a copy)."""
    x = x[:PROBE].detach().to(dtype if x.is_floating_point() else x.dtype, copy=True)
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x.contiguous()


def is_plain(value: object) -> bool:
    """Whether it is a dense tensor on the CPU, of rows that are all of one length."""
    return (
        isinstance(value, Tensor)
        and not value.is_nested
        and value.device.type == "cpu"
        and value.layout == torch.strided
    )


def kind(value: object) -> str:
    """What a value is, in words."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    if value.is_nested:  # has no shape to tell
        return f"a nested tensor, {value.dtype}, whose rows may differ in length (pad them)"
    layout = "" if value.layout == torch.strided else f", {value.layout}"
    return f"{value.dtype} {list(value.shape)} on {value.device}{layout}"


def _told(out: object) -> str:
    """What a network returned in place of a tensor, with its keys or its length."""
    more = ""
    if isinstance(out, Mapping):
        more = f" with {', '.join(map(repr, list(out)[:4])) or 'no keys'}"
    elif isinstance(out, tuple | list):
        more = f" of {len(out)}"
    return type(out).__name__ + more


def _instead(out: object) -> str:
    """What the reader may write to have a tensor returned."""
    if out is None:
        return "; its forward returns nothing"
    scores = [at for at in _entries(out) if isinstance(at[1], Tensor)]
    chosen = next((at for at, _ in scores if "logits" in at), scores[0][0] if scores else "")
    taken = f"network(x){chosen}" if chosen else "one"
    return f"; wrap it in a module whose forward returns {taken}"


def _entries(out: object) -> list[tuple[str, object]]:
    """The parts of what a network returned, each as Python writes it after the value."""
    if isinstance(out, Mapping):
        return [(f"[{key!r}]", value) for key, value in out.items()]
    if isinstance(out, tuple | list):
        return [(f"[{place}]", value) for place, value in enumerate(out)]
    return [(f".{key}", value) for key, value in getattr(out, "__dict__", {}).items()]
