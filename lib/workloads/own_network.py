"""Builds the network of a reader's own workload, and tries everything before training."""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import math
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Annotated, Literal

import torch
from annotated_types import Predicate
from pydantic import FiniteFloat, InstanceOf
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.data import DataLoader, Dataset

from lib import fields, shown
from lib.own import Metric, Training, Within, named, require, telling
from lib.workloads import batches, kinds

SEEDED = (
    "drawn from the global random numbers of torch, numpy or Python, which are seeded "
    "for every trial"
)
STEADY = (
    "the same whenever it is called or read (pass a random_state, a seed, or a generator created "
    "inside to whatever draws: write generator=torch.Generator().manual_seed(0))"
)
PERCENT = " (for an accuracy of 0.95 write 0.05)"  # for goals that are shares of mistakes
PROBED = 8  # examples on which an untrained network is tried
FAR = 20.0  # columns with std above FAR or below 1 / FAR, or |mean| above FAR / 2 std, train badly
READ = 10_000  # examples whose columns are examined
MOSTLY = 0.9  # columns with one value in a larger share are exempt, such as border pixels
# Layers whose outputs depend only on inputs and parameters, example by example (except batch
# normalisation, which the engine handles)
LAYERS = {
    *(nn.Sequential, nn.Identity, nn.Flatten, nn.Unflatten, nn.Linear, nn.Embedding),
    *(nn.Conv1d, nn.Conv2d, nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d),
    *(nn.ReLU, nn.Tanh, nn.Sigmoid, nn.ELU, nn.GELU, nn.SiLU, nn.LeakyReLU, nn.PReLU),
    *(nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.BatchNorm1d, nn.BatchNorm2d),
}


@dataclass(frozen=True)
class Checked:
    """A workload as it is trained, and the results of the checks.

    Attributes:
        training: in single precision.
        source: digest of the file.
        data: digest of the tensors that it made.
        within: goals still to be determined, if any.
        converted: what was converted for training, "train: float64 taken as float32".
        doubts: sentences on data that train badly.
        examples: number of training examples.
        numbers: in an example.
        values: of the metric, on the validation set.
        chance: the error of a constant answer, or of an untrained module if the metric has no
            `constant`: a goal must be harder.
        together: whether all trials can be trained at once.
    """

    training: Training
    source: str
    data: str
    within: Within | None
    converted: tuple[str, ...]
    doubts: tuple[str, ...]
    examples: int
    numbers: int
    values: int
    chance: float
    together: bool


# --- the surroundings of a reader's code ----------------------------------------------------------

# Held while seeding the global random numbers, which all threads of the process share
ALONE = threading.RLock()


def flushing() -> bool:
    """Whether denormal numbers are flushed to zero."""
    return not (torch.full((1,), 1e-310, dtype=torch.float64, device="cpu") * 1).any()


# Settings of torch, per thread or process: getter, setter, and the value with which a reader's
# code starts
SETTINGS = (
    (torch.get_default_dtype, torch.set_default_dtype, torch.float32),
    (torch.get_num_threads, torch.set_num_threads, 1),
    (torch.is_grad_enabled, torch.set_grad_enabled, True),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, False),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest"),
    (flushing, torch.set_flush_denormal, False),
)


def _set_all(values: list) -> None:
    for (get, put, _), value in zip(SETTINGS, values):
        if get() != value:  # setting some of them imports half of PyTorch
            put(value)


@contextlib.contextmanager
def alone(seed: int | None = None) -> Iterator[None]:
    """A block in which a reader's code has the same global state in every thread and process, and
    leaves no traces.

    No other thread draws or seeds global random numbers meanwhile; afterwards they and torch's
    settings are restored, and so is __main__, which a loader's processes would run once more.
    seed: of the random numbers of torch, numpy and Python; None: leave them as they are.
    """
    with ALONE, batches.restored():
        before, program = [get() for get, _, _ in SETTINGS], sys.modules["__main__"]
        _set_all([fresh for _, _, fresh in SETTINGS])
        sys.modules["__main__"] = ModuleType("__main__")
        if seed is not None:
            batches.seed_all(seed)
        try:
            yield
        finally:
            sys.modules["__main__"] = program
            _set_all(before)


# --- modules --------------------------------------------------------------------------------------


def build(training: Training, seed: int) -> nn.Module:
    """The network of one trial, initialised from its seed, in single precision.  Raises OwnError if
    the reader's code fails.
    """
    with alone(seed):
        return initialise(training)


def initialise(training: Training) -> nn.Module:
    """As `build`, from the current state of the global random numbers."""
    with telling("model: building it raised"):
        module = training.model()
    kind = type(module).__name__
    require(isinstance(module, nn.Module), "model", kind, "an nn.Module")
    fine = not any(p.is_complex() for p in module.parameters())
    allowed = "real: write torch.view_as_complex(self.w) with pairs in self.w"
    require(fine, "model", "one with complex parameters", allowed)
    return module.float()


def _fresh_copy(module: nn.Module) -> nn.Module:
    """A copy of the module, newly initialised.  Raises OwnError if a layer cannot be."""
    module = copy.deepcopy(module)
    for layer in module.modules():
        trained = [p.requires_grad for p in layer.parameters(recurse=False)]
        resets = hasattr(layer, "reset_parameters") and all(trained)
        kind = f"a module with a {type(layer).__name__} that cannot be reinitialised"
        allowed = f"a function that builds it: write model=lambda: {type(module).__name__}(...)"
        require(resets or not trained, "model", kind, allowed)
        if resets:
            layer.reset_parameters()
    return module


# --- what is handed in ----------------------------------------------------------------------------


def checked(handed: object, again: object, goals: tuple[float, ...], source: str) -> Checked:
    """The workload that a reader's function returned in two calls, with these goals, if any,
    instead of its own.  Raises OwnError.
    """
    training, again = read(handed), read(again)
    check_fields(training)
    digests = ""
    for word in ("train", "validation"):
        with alone(), telling(f"{word}: reading it raised"):
            calls = (training, again, training)
            parts = [getattr(call, word) for call in calls]
            prints = [batches.fingerprint(part) for part in parts]
        require(len({*prints}) == 1, word, "one that differs from call to call", STEADY)
        digests += prints[0]
    wanted = training.goals if isinstance(training.goals, Within) and not goals else None
    # A goal that nobody meets stands in for goals still to be determined
    goals = (kinds.metric_of(training).convert(0.0),) if wanted else goals or training.goals
    training = replace(training, goals=goals)
    _check_goals(training)
    training, converted = convert(handed, training)
    data = hashlib.sha256(digests.encode()).hexdigest()[:12]
    return Checked(
        training, source, data, wanted, converted, doubts(training), *_tried(training)
    )


WITHIN = re.compile(r"within ([\d.]+) ?% of the best after ([\d,]+) steps")


def read(training: object) -> Training:
    """What a reader's function returned, with arrays, modules and names replaced by tensors,
    functions and metrics.  Raises OwnError for what cannot be.
    """
    kind = type(training).__name__
    require(isinstance(training, Training), "returned value", kind, "a lib.own.Training")
    changes = {}
    for word in ("train", "validation"):
        with named(word):
            changes[word] = batches.read(getattr(training, word))
    if isinstance(training.model, nn.Module):
        changes["model"] = functools.partial(_fresh_copy, training.model)
    if isinstance(training.goals, list):
        changes["goals"] = tuple(training.goals)
    match = isinstance(training.goals, str) and WITHIN.fullmatch(training.goals)
    if match:
        changes["goals"] = Within(float(match[1]) / 100, int(match[2].replace(",", "")))
    if isinstance(training.metric, str):
        changes["metric"] = kinds.READY.get(training.metric, training.metric)
    return replace(training, **changes)


def convert(handed: Training, training: Training) -> tuple[Training, tuple[str, ...]]:
    """The workload in single precision, with labels as losses take them and inputs as its network
    takes them; and, in words, how it differs from what the reader's function returned.
    """
    fits = [functools.partial(kinds.fit, training, floats=floats) for floats in (False, True)]
    with alone(), telling("train: reading it raised"):
        batch = batches.map_tensors(batches.sample(training.train), lambda x: x[:PROBED])
    inputs = [x for x in batches.tensors(batch) if x is not kinds.targets(batch)]
    integers = any(map(kinds.is_integer, inputs))
    fit = next((f for f in fits if integers and _takes(training, f, batch)), fits[0])
    scaled = fit is fits[1] and any(x.dtype == torch.uint8 for x in inputs)
    changes, notes = {}, []
    if isinstance(handed.model, nn.Module):
        notes.append("model: a copy taken for every trial, initialised by reset_parameters")
    for word in ("train", "validation"):
        original, data = getattr(handed, word), getattr(training, word)
        with alone(), telling(f"{word}: reading it raised"):
            before = batches.sample(data)
            after = fit(before)
        parts = batches.tensors(before)
        if isinstance(original, DataLoader):
            notes.append(f"{word}: a DataLoader replaced by its dataset, in our order")
        elif before is data:
            parts = batches.tensors(original, batches.is_array)
        shapes, converted = (
            ", ".join(map(shown, tensors)) for tensors in (parts, batches.tensors(after))
        )
        if shapes != converted:
            notes.append(f"{word}: {shapes} taken as {converted}" + ", bytes over 255" * scaled)
        if before is data or shapes != converted:
            changes[word] = after if before is data else batches.changed(data, fit)
    return replace(training, **changes), tuple(notes)


def _takes(training: Training, fit: Callable, batch: object) -> bool:
    """Whether an untrained network has a loss on the batch converted by `fit`."""
    with contextlib.suppress(Exception), alone(0), torch.no_grad():
        kinds.loss(training, initialise(training), fit(batch))
        return True
    return False


def doubts(training: Training) -> tuple[str, ...]:
    """Sentences on columns of inputs [N, features] and of regression targets that are far from mean
    0 and standard deviation 1, unless they nearly always hold the same value.
    """
    if not batches.are_tensors(training.train):
        return ()
    tables = {"x": batches.tensors(training.train)[0]}
    if training.loss == "regression":
        tables["y"] = kinds.targets(training.train).reshape(examples(training), -1)
    sentences = []
    for name, values in tables.items():
        values = values[:READ]
        if values.dim() == 2 and values.is_floating_point():
            spread, mean = torch.std_mean(values, 0)
            off = (spread > FAR) | (spread < 1 / FAR) | (mean.abs() > FAR / 2 * spread)
            off &= (values == values.median(0).values).sum(0) < MOSTLY * len(values)
            columns = off.nonzero().flatten().tolist()
            if columns:
                numbers = ", ".join(map(str, columns[:9]))
                sentences.append(
                    f"{name}: {len(columns)} of {len(mean)} columns ({numbers}, counted from 0) are far "
                    f"from mean 0 and standard deviation 1: write {name} = ({name} - {name}.mean(0)"
                    f") / {name}.std(0), with the same numbers for validation"
                )
    return tuple(sentences)


def examples(training: Training) -> int:
    """Number of training examples."""
    return training.examples or batches.examples(training.train)


# --- fields ---------------------------------------------------------------------------------------


def _dense(x: Tensor) -> bool:
    plain = x.device.type == "cpu" and x.layout == torch.strided and not x.is_nested
    return plain and x.dim() > 0 and bool(kinds.single(x).isfinite().all())


LOSSES = ", ".join(kinds.KINDS)
METRICS = f"one of {', '.join([*kinds.READY, *kinds.KINDS])}, or a lib.own.Metric"
TEXT = fields.InWords(
    Annotated[str, Predicate(str.isprintable)], "text of printable characters"
)
COUNT = fields.Count(10**9)
DENSE = Annotated[InstanceOf[Tensor], Predicate(_dense)]
DATA = fields.InWords(
    tuple[DENSE, ...] | Mapping[str, DENSE] | InstanceOf[Dataset] | Callable,
    "dense tensors [N, ...] of finite numbers on the CPU in a tuple or a dictionary, a Dataset, or "
    "a function",
)
GOALS = fields.InWords(
    tuple[FiniteFloat, ...] | InstanceOf[Within],
    'a tuple of numbers, the hardest first, or "within 10 % of the best after 500 steps"',
)
# Fields of Training, Metric and Within
FIELDS = {
    "model": Callable,
    "train": DATA,
    "validation": DATA,
    "goals": GOALS,
    "title": TEXT,
    "max_steps": COUNT,
    "precision": Literal["float32", "bfloat16"],
    "loss": fields.InWords(Literal[*kinds.KINDS] | Callable, f"one of {LOSSES}, or a function"),
    "metric": fields.InWords(Literal[*kinds.KINDS] | InstanceOf[Metric] | None, METRICS),
    "examples": COUNT | None,
    "measure": Callable,
    "name": TEXT,
    "highest": FiniteFloat | None,
    "constant": Callable | None,
    "whole": bool,
    "share": fields.Number("(0, 1]"),
    "steps": COUNT,
}


def check_fields(training: Training) -> None:
    """Check everything that the function returned, as far as possible before a network is built,
    except the values of goals.  Raises ValueError.
    """
    for spec in (training, training.metric, training.goals):
        if isinstance(spec, Training | Metric | Within):
            for word, value in vars(spec).items():
                fields.check(word, value, FIELDS[word])
    for word in ("train", "validation"):
        data = getattr(training, word)
        if not callable(data):
            with telling(f"{word}: reading it raised"):
                parts = batches.tensors(data) if batches.are_tensors(data) else [data]
                sizes = [len(part) for part in parts]
            fine = len({*sizes}) == 1 and sizes[0]
            require(fine, f"{word} lengths", sizes, "equal and not zero: write x[:n], y[:n]")
    fine = callable(training.train) == (training.examples is not None)
    allowed = "the number of examples if train is a function, otherwise None"
    require(fine, "examples", training.examples, allowed)
    if isinstance(training.goals, Within):
        fault, allowed = (
            f"after {training.goals.steps} steps",
            f"after at most {training.max_steps}",
        )
        require(
            training.goals.steps <= training.max_steps,
            "goals",
            fault,
            f"{allowed}, its max_steps",
        )
    fine = training.metric is not None or isinstance(training.loss, str)
    require(fine, "metric", training.metric, f"{METRICS}, for a custom loss")


def _check_goals(training: Training) -> None:
    """Check that the goals fit their metric."""
    metric = kinds.metric_of(training)
    first = "lowest" if metric.highest is None else "highest"
    low = 0 if metric.cost or metric.highest is not None else -math.inf
    high = 1 if metric.counted else math.inf
    errors = [float(f"{error:g}") for error in kinds.errors(training)]
    fine = errors and errors == sorted({*errors}) and low <= errors[0] and errors[-1] < high
    allowed = f"numbers that differ in their first six digits, the hardest ({first}) first, "
    if metric.highest is None:
        allowed += f"all in [{low}, {high})" + PERCENT * metric.counted
    else:
        most = metric.highest
        allowed += f"up to {most:g}: write goals=({0.95 * most:g}, {0.9 * most:g})"
    require(fine, "goals", training.goals, allowed)


# --- trials of untrained networks -----------------------------------------------------------------


def _tried(training: Training) -> tuple[int, int, int, float, bool]:
    """Try untrained networks on a batch and on the validation set; returns examples, numbers,
    values, chance and together, as in `Checked`.  Raises OwnError.
    """
    module, _ = modules = build(training, 0), build(training, 0)
    with telling("model: comparing two copies raised"):
        same = all(map(torch.equal, *([*m.parameters(), *m.buffers()] for m in modules)))
        places = [p.data_ptr() for m in modules for p in m.parameters() if p.numel()]
    fault = "parameters that share memory with others or with an earlier network's, "
    fault += "or different initialisations from the same seed,"
    fine = same and len(places) == len({*places})
    require(fine, "model", fault, f"built anew each time, and {SEEDED}")
    total = examples(training)
    few = min(PROBED, total)
    with telling(f"train: reading {few} examples raised"), alone(0):
        if callable(training.train):
            batch = next(batches.Passes(training.train, few, 0, total))
        else:  # spread from the first to the last
            batch = batches.chosen(training.train, torch.linspace(0, total - 1, few).long())
    with telling("inputs: evaluating the model on validation raised"), alone(0):
        values, chance = _check_answers(training, module)
    _check_step(training, modules, batch)
    numbers = sum(tensor.numel() for tensor in batches.tensors(batch)) // batches.size(batch)
    together = kinds.classifies(training) and _serves_all_trials(training, module, batch[0])
    return total, numbers, values, chance, together


def _check_answers(training: Training, module: nn.Module) -> tuple[int, float]:
    """Check that labels fit the outputs and that goals are not trivial; returns how many values the
    metric has, and the trivial error (`Checked.chance`).
    """
    metric = kinds.metric_of(training)
    if metric.constant or isinstance(training.loss, str):
        outputs, targets = kinds.validated(training, module)
    if training.loss in kinds.METRICS.values():
        labels = targets.flatten()
        if batches.are_tensors(training.train):
            labels = torch.cat([labels, kinds.targets(training.train).flatten()])
        low, high = map(int, labels[labels != kinds.IGNORED].aminmax())
        fault = f"from {low} to {high} for outputs {[*outputs.shape]}"
        allowed = "from 0 to outputs - 1: write y - y.min(), a wider last layer, or, for one "
        fine = 0 <= low <= high < outputs.shape[-1]
        require(fine, "labels", fault, allowed + 'output, loss="binary"')
    chance, values = kinds.error(training, module)
    answer = "an untrained model"
    if metric.constant:
        chance = metric.convert(float(metric.constant(targets)))
        answer = "a constant answer"
    allowed = "a number for any outputs: write torch.nan_to_num"
    require(not math.isnan(chance), "metric", "nan, of an untrained model,", allowed)
    better = "below" if metric.highest is None else "above"
    allowed = f"{better} {metric.convert(chance):.4g}, which {answer} already reaches"
    allowed += f": write goals=({metric.convert(chance / 2):.3g},)" + PERCENT * metric.counted
    require(kinds.errors(training)[-1] < chance, "goals", f"{training.goals[-1]:g}", allowed)
    return values, chance


def _check_step(
    training: Training, modules: tuple[nn.Module, nn.Module], batch: object
) -> None:
    """Check that the same seed gives the same loss, and that it has a gradient."""
    word = "loss" if callable(training.loss) else "inputs"
    losses = []
    for module in modules:
        start = f"{word}: computing the loss of a few examples, {shown(batch)}, raised"
        with telling(start), alone(0):
            with kinds.arithmetic("cpu", training.precision):
                losses.append(kinds.loss(training, module, batch))
            losses[-1].backward()
    moved = any(p.grad is not None and p.grad.any() for p in modules[0].parameters())
    fine = losses[0].isfinite() and torch.equal(*losses) and moved
    fault = "one that is not finite, has no gradient or varies with the same seed"
    allowed = "finite, with a gradient, and " + SEEDED
    require(fine, "loss of an untrained model", fault, allowed)


def _serves_all_trials(training: Training, module: nn.Module, x: Tensor) -> bool:
    """Whether trials can share the module, each with its own parameters, as the engine runs it;
    tried on inputs x [N, ...].
    """
    layers = [layer for layer in module.modules() if not any(True for _ in layer.children())]
    forwards = [layer for layer in module.modules() if layer not in layers]
    parameters = [*module.parameters()]
    plain = all(
        type(layer) in LAYERS and not getattr(layer, "inplace", False) for layer in layers
    )
    plain &= not any(layer._parameters for layer in forwards)
    fresh = all(p.requires_grad for p in parameters) and not any(True for _ in module.buffers())
    # The engine assumes that the last parameters are the biases of the layer whose outputs are
    # the network's
    if not (plain and fresh and type(layers[-1]) is nn.Linear):
        return False
    ours = all(type(layer) in LAYERS for layer in forwards)
    alike = ours or _answers_by_example(module, build(training, 1), x)
    return layers[-1].bias is parameters[-1] and alike


def _answers_by_example(module: nn.Module, other: nn.Module, x: Tensor) -> bool:
    """Whether a module with a custom `forward` returns just the outputs of its last layer, agrees
    with another trial's module that runs with its parameters example by example, and leaves x
    unchanged.
    """
    *_, last = module.modules()
    inputs, ends, parameters = x.clone(), [], dict(module.named_parameters())
    with contextlib.suppress(Exception), alone(0), torch.no_grad():
        last.register_forward_hook(lambda layer, x, output: ends.append(output))
        outputs = module(x)
        single = [functional_call(other, parameters, example) for example in inputs.split(1)]
        kept = torch.equal(x, inputs) and torch.equal(ends[0], outputs)
        return kept and torch.allclose(outputs, torch.cat(single), rtol=1e-3, atol=1e-3)
    return False
