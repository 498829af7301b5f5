"""The gradient noise scale of a running job, from the gradients that it computes (not with FSDP).

This file needs PyTorch and nothing else: copy it into your project.  With gradient accumulation:

    meter = NoiseMeter(model)
    for micro_batches in loader:
        optimizer.zero_grad()
        for x, y in micro_batches:
            loss(model(x), y).backward()
            meter.micro_batch(len(x))  # after each backward; the loss is a mean over x
        meter.step()  # before optimizer.step()
        optimizer.step()
    print(meter.report(batch_size=512))

Without it, `meter.backward_in_parts(lambda part: loss(model(part[0]), part[1]), batch)` replaces
the backward pass, and splits the batch in two.  With DistributedDataParallel, which the meter finds
around the model, workers' gradients are compared, so one backward pass per step is enough.  For
Lightning and Hugging Face's Trainer there are callbacks, which print an estimate every `every`
steps, and what it means at the end of training:

    trainer = Trainer(accumulate_grad_batches=4, callbacks=[lightning_callback()])

    arguments = TrainingArguments(gradient_accumulation_steps=4, per_device_train_batch_size=32)
    Trainer(model, arguments, train_dataset=examples, callbacks=[trainer_callback()]).train()

The meter estimates the simple noise scale tr(Sigma) / |G|^2 in examples: Sigma is the covariance of
single examples' gradients, and G their mean (McCandlish et al. 2018, equation 2.9).  Micro-batches
add gradients with the same mean and independent noise to `.grad`, so that their lengths and that of
their sum give unbiased estimates of both (`trace_and_square`).

Training stays the same to the last bit.  A hook on each parameter reads what a backward pass is
about to add, and the sum is read at the pass's end, before clipping; nothing is copied, and
processes exchange five numbers per step.  Nothing waits for a GPU, except to read the scale of a
loss scaler.  Once a job has begun, nothing is raised: if something cannot be measured, or fails,
there is one warning, and measuring stops.  The same happens if anything else writes to gradients or
weights between a step's micro-batches (SAM, a GAN), or if gradients are never zeroed.
"""

import functools
import math
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from statistics import NormalDist

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils import _pytree

LEVEL = 0.9  # of intervals
DELAY = 16  # steps until a step's sums are read, so that no step waits for its sums
TWO = "at least 2 per step: call micro_batch() after each backward, or backward_in_parts()"
ONCE = "1 per micro-batch: call micro_batch() after each or sum losses"
UNCHANGED = "zeroed before a step's first backward, then unchanged to its last"
IN_GRAD = "in .grad after each backward (no optimiser within it)"
CAVEATS = """\
This assumes steps proportional to 1 + noise scale / batch size, at the best learning rate for each
size. Before you trust it:
- Curvature is ignored: on six searched curves the critical batch size was 0.4 to 2.4 times this.
- Adam: this is the noise of plain gradients, not of rescaled steps; an order of magnitude.
- Clipping: gradients are read before it; where most steps are clipped, the formula fails.
- BatchNorm couples the examples of a micro-batch, which the estimate ignores.
- Lag: this averages the last {span:.0f} steps or so; noise scales mostly rise in training."""


# --- estimates and their intervals ----------------------------------------------------------------


def trace_and_square(
    small: float, big: float, groups: float, examples: float, total: int | None = None
) -> tuple[float, float]:
    """Unbiased estimates of tr(Sigma) and |G|^2 from gradients of groups of examples.

    small: mean over the groups of |g|^2, each g the mean gradient of its examples.
    big: |mean over the groups of g|^2.
    groups: how many.
    examples: in a group; the harmonic mean, if their numbers differ.
    total: size of the training set from which examples are drawn without replacement, where G is
    the mean over all of it; None: so large that it does not matter.

    From E|g|^2 = |G|^2 + tr(Sigma) / examples, and likewise for the mean of all (McCandlish et al.
    2018, appendix A.1).  |G|^2 is estimated by the mean inner product of two groups' gradients, so
    it may be negative.
    """
    trace = examples * groups / (groups - 1) * (small - big)
    square = (groups * big - small) / (groups - 1)
    return trace, square + (trace / total if total else 0.0)


def ratio(trace: float, square: float) -> float:
    """The noise scale tr(Sigma) / |G|^2 in examples; infinite if noise hides the gradient."""
    return trace / square if square > 0 else math.inf


def fieller(trace: float, square: float, margins: Sequence[float]) -> tuple[float, float]:
    """(low, high) of all r >= 0 for which trace - r square is no farther from zero than its margin
    (Fieller 1954); high is infinite if square does not differ clearly from zero.

    margins: of trace, of both jointly, of square: their variances and covariance times the squared
    quantile.
    """
    square = max(square, 0.0)  # what it estimates is not negative
    a = square**2 - margins[2]
    b = trace * square - margins[1]
    c = trace**2 - margins[0]
    far = b + math.sqrt(max(b**2 - a * c, 0.0))
    low = c / far if trace > 0 and c > 0 and far > 0 else 0.0
    return low, far / a if a > 0 else math.inf


def student(share: float, freedom: float) -> float:
    """Student's t below which `share` of the distribution lies, by Wallace's (1959) approximation:
    2 % too large with two degrees of freedom, and ever closer with more.
    """
    z = NormalDist().inv_cdf(share) * (8 * freedom + 3) / (8 * freedom + 1)
    return math.sqrt(freedom * math.expm1(z**2 / freedom))


@dataclass(frozen=True)
class Estimate:
    """Estimates of tr(Sigma) and |G|^2, averaged over the last of `steps` steps.

    low, high: 5 to 95 % of their ratio, in examples; high is infinite if |G|^2 does not differ
    clearly from zero: more steps, a longer span or more examples per step are then needed.
    refusal: why there is no estimate.
    """

    trace: float = math.nan
    square: float = math.nan
    low: float = 0.0
    high: float = math.inf
    steps: int = 0
    span: float = math.nan
    refusal: str = ""

    @property
    def noise_scale(self) -> float:
        """tr(Sigma) / |G|^2 in examples; infinite if noise hides the gradient."""
        return ratio(self.trace, self.square)

    def __str__(self) -> str:
        if self.refusal:
            return f"noise scale not measured, because {self.refusal}"
        if not self.steps:
            return "noise scale not measured yet"
        window = f"over the last {min(self.steps, round(self.span))} steps or so"
        if math.isinf(self.high):
            return f"noise scale unbounded: at least {self.low:.2g} examples (5 %), {window}"
        interval = f"5-95 %: {self.low:.3g} to {self.high:.3g}"
        return f"noise scale {self.noise_scale:.3g} examples ({interval}), {window}"

    def advice(self, batch_size: int) -> str:
        """What doubling this batch size (examples per step) saves, if steps are proportional to
        1 + noise scale / batch size.
        """
        scales = (max(scale, 0.0) for scale in (self.noise_scale, self.low, self.high))
        saved, least, most = (50 - 50 * batch_size / (scale + batch_size) for scale in scales)
        return (
            f"at {batch_size:,} examples a step, doubling should save {saved:.0f} % of the steps "
            f"({least:.0f}–{most:.0f} %), for {100 - 2 * saved:.0f} % more examples: {self}"
        )


@dataclass(frozen=True)
class Averages:
    """Exponential averages of steps' estimates of tr(Sigma) and |G|^2, separate, since a mean of
    ratios would be biased; and their scatter, from which an interval follows.

    span: the equivalent number of equally weighted steps; a step weighs (span - 1) / (span + 1) of
    the next.  The scatter is that between neighbouring steps: half their squared difference has the
    variance of one, whatever has changed over the window.  So the interval is for the window's
    average, which lags changes by half a span.
    """

    span: float
    steps: int = 0
    skipped: int = 0
    last: tuple[float, ...] = (0.0, 0.0)  # trace and square of the last step
    # Sums of trace and square, then of their scatter: of trace, of both jointly, of square
    sums: tuple[float, ...] = (0.0,) * 5

    @property
    def decay(self) -> float:
        return (self.span - 1) / (self.span + 1)

    def after(self, trace: float, square: float) -> "Averages":
        """The averages after one more step, skipped if not finite: loss scaling has overflowed."""
        x = y = 0.0
        if self.steps:
            x = trace - self.last[0]
            y = square - self.last[1]
        scatter = x * x / 2, x * y / 2, y * y / 2
        decays = [self.decay] * 2 + [self.decay**2] * 3
        terms = zip(decays, self.sums, (trace, square, *scatter))
        sums = tuple(decay * old + new for decay, old, new in terms)
        if not all(map(math.isfinite, sums)):
            return replace(self, skipped=self.skipped + 1)
        return replace(self, steps=self.steps + 1, last=(trace, square), sums=sums)

    def estimate(self) -> Estimate:
        """The averages with an interval for their ratio, by Fieller's theorem with Student's
        quantile; unbounded before the fourth step.
        """
        n, decay = self.steps, self.decay
        weights = _series(decay, n) or math.nan
        trace, square, *scatter = self.sums
        trace, square, bounds = trace / weights, square / weights, (0.0, math.inf)
        if n >= 4:
            differences = _series(decay**2, n - 1)
            # Neighbouring differences share a step
            freedom = differences**2 / _series(decay**4, n - 1) / 1.5
            squared_error = _series(decay**2, n) / weights**2 / differences
            margin = squared_error * student((1 + LEVEL) / 2, freedom) ** 2
            bounds = fieller(trace, square, [margin * value for value in scatter])
        return Estimate(trace, square, *bounds, n, self.span)


def _series(ratio: float, terms: int) -> float:
    """1 + ratio + ..., with this many terms."""
    return (1 - ratio**terms) / (1 - ratio)


# --- listening ------------------------------------------------------------------------------------


def harmless(method: Callable) -> Callable:
    """Make a meter's method never stop a job: if it fails, the meter is switched off."""

    @functools.wraps(method)
    def guarded(meter, *arguments, **options):
        try:
            if not meter.refusal:
                return method(meter, *arguments, **options)
        except Exception as error:
            meter.refuse(error)

    return guarded


def weakly(method: Callable) -> Callable:
    """Turn a method into a hook that does not keep its object alive."""
    reference = weakref.WeakMethod(method)

    def hook(*arguments):
        if (listen := reference()) is not None:
            listen(*arguments)

    return hook


@dataclass
class _Step:
    """What is known about a step's gradients."""

    loss_scale: float
    spoilt: bool = False  # to be left out
    task: int = -1  # the current backward pass
    whole: Tensor | None = None  # squared length of the whole gradient
    parts: list[tuple[int, float]] = field(default_factory=list)  # examples and scales
    heard: set[nn.Parameter] = field(default_factory=set)  # in the current micro-batch
    versions: list[tuple] = field(default_factory=list)  # after the last backward pass
    stale: list[Tensor] = field(default_factory=list)  # counts of entries never zeroed
    lengths: list[Tensor] = field(default_factory=list)  # of what micro-batches add
    random: list[Tensor] = field(default_factory=list)  # sums of parts of the gradient

    def sums(self) -> Tensor:
        """Sums to add up over workers: squared lengths; entries never zeroed; scales, their
        squares, these over the sizes; random sums of the whole gradient.
        """
        small = summed(self.lengths)
        weights = [(scale, scale**2, scale**2 / size) for size, scale in self.parts]
        numbers = small, sum(self.stale), *map(sum, zip(*weights))
        sums = torch.stack([torch.as_tensor(number).to(small) for number in numbers])
        return torch.cat([sums, sum(self.random)]) if self.random else sums


def _estimates(
    sums: Tensor, work, whole: Tensor | None, loss_scale: float, workers: int, total: int | None
) -> tuple[float, float]:
    """tr(Sigma) and |G|^2 from a step's sums; whole: squared length of the workers' mean gradient.

    Micro-batches add s g to the gradient, where g is the mean of n examples' gradients.  Over all,
    E sum |s g|^2 = |G|^2 sum s^2 + tr(Sigma) sum s^2 / n, and
    E |sum s g|^2 = |G|^2 (sum s)^2 + tr(Sigma) sum s^2 / n.
    Raises ValueError if gradients have never been zeroed.
    """
    if work:
        work.wait()
    small, stale, scales, weights, inverses = sums[:5].tolist()
    if math.isnan(small):
        return small, small
    require(not stale, "gradients", "never zeroed", UNCHANGED)
    big = summed([sums[5:]]) if whole is None else whole * workers**2
    small, big = (float(square) / loss_scale**2 for square in (small, big))
    square = (big - small) / (scales**2 - weights)
    trace = (small - weights * square) / inverses
    return trace, square + (trace / total if total else 0.0)


class NoiseMeter:
    """Measures the gradients of a model that is trained by one process, or by several with
    DistributedDataParallel.

    model: its parameters' gradients are read; those without one add nothing, and both parts of
    complex ones count.
    examples: in a micro-batch, over which its gradient is averaged, if not passed to `micro_batch`.
    span: of the averages, in steps; longer is more precise, but lags more.
    scaler: the torch.amp.GradScaler, if any, whose scale multiplies gradients.

    Gradients must be zero at the beginning of a step.  A step in which a gradient is not finite is
    left out (`skipped`).  Raises ValueError naming field, value and what is allowed; the methods
    below raise nothing, and refuse what they cannot measure (`refusal`).
    """

    total: int | None = None  # as for `trace_and_square`
    width = 0  # number of random sums, if the gradient is not exchanged as it is

    def __init__(
        self,
        model: nn.Module,
        examples: int | None = None,
        span: float = 200.0,
        scaler: torch.amp.GradScaler | None = None,
    ):
        require(isinstance(model, nn.Module), "model", type(model).__name__, "an nn.Module")
        require(examples is None or examples >= 1, "examples", examples, "at least 1")
        require(1 < span < math.inf, "span", span, "a number above 1")
        self.model, self.examples, self.scaler = model, examples, scaler
        self.averages = Averages(float(span))
        self.settings = {"span": float(span)}  # must be equal in a saved state
        self.waiting: list[Callable] = []  # functions that return steps' estimates, oldest first
        self.under_way: _Step | None = None
        self.refusal = ""  # why there is no estimate
        self.largest = 0  # examples in a step, over all workers
        self.fewest = 0  # micro-batches in any step so far; the first ones need no sum
        self.rows: int | None = None  # passed to the model, if they are counted
        # It averages its workers' gradients; None: a single process
        self.ddp = model if isinstance(model, DistributedDataParallel) else None
        self.watched: dict[nn.Parameter, None] = {}
        self.watch()

    def watch(self) -> None:
        """Read each parameter's gradient before a backward pass adds it."""
        for p in self.model.parameters():
            if p not in self.watched and p.requires_grad and p.numel():
                self.watched[p] = None
                p.register_hook(functools.partial(weakly(self.hear), weakref.ref(p)))

    @property
    def skipped(self) -> int:
        """Number of steps left out, of those that have been read."""
        return self.averages.skipped

    @property
    def shared(self) -> bool:
        """Whether all workers take every step, so that none leaves early, as in join()."""
        return bool(self.ddp) and not self.ddp._join_config.enable

    @property
    def workers(self) -> int:
        """Number of workers that take a step together."""
        return torch.distributed.get_world_size(self.ddp.process_group) if self.shared else 1

    def estimate(self) -> Estimate:
        """The estimate from the steps so far; if they cannot be measured, an empty one with why."""
        self._read()
        return Estimate(refusal=self.refusal) if self.refusal else self.averages.estimate()

    def report(self, batch_size: int | None = None) -> str:
        """What the estimate means for a batch size (examples per step; None: the largest so far),
        and what to keep in mind.
        """
        estimate = self.estimate()
        if not estimate.steps:
            return str(estimate)
        advice = estimate.advice(batch_size or self.largest)
        counts = f"({estimate.steps} steps, {self.skipped} left out)"
        return f"{advice}\n{counts}\n{CAVEATS.format(span=estimate.span)}"

    def refuse(self, why: object) -> None:
        """Stop measuring; warn the first time."""
        if not self.refusal:
            self.refusal = str(why) if isinstance(why, ValueError | str) else repr(why)
            warnings.warn(f"noise scale not measured, because {self.refusal}", stacklevel=2)

    def state_dict(self) -> dict:
        """All that the next estimate depends on, as numbers and tuples; call it between steps."""
        self._read()
        return asdict(self.averages) | self.settings

    def load_state_dict(self, saved: dict) -> None:
        """Continue from `state_dict`.

        Raises ValueError, and changes nothing, if it is not one, or has other settings.
        """
        fits = isinstance(saved, dict) and saved.keys() == self.state_dict().keys()
        allowed = f"what state_dict() has returned, with {self.settings}"
        require(fits and saved == saved | self.settings, "saved", saved, allowed)
        self.averages = Averages(**{name: saved[name] for name in asdict(self.averages)})

    def _read(self, delay: int = 0) -> None:
        """Add waiting steps to the averages, except for the last `delay`."""
        while len(self.waiting) > delay:
            estimates = math.nan, math.nan
            try:
                estimates = self.waiting.pop(0)(total=self.total)
            except Exception as error:
                self.refuse(error)
            self.averages = self.averages.after(*estimates)

    @harmless
    def hear(self, parameter: weakref.ref, gradient: Tensor) -> None:
        """Read what a backward pass is about to add to a parameter's gradient."""
        step = self.under_way = self.under_way or self.new_step()
        p = parameter()
        allowed = "dense: use nn.Embedding(sparse=False)"
        require(not gradient.is_sparse, "gradient", "a sparse tensor, of nn.Embedding", allowed)
        require(p not in step.heard, "backward passes", 2, ONCE)
        if not step.heard and step.parts:
            # In the first step, DistributedDataParallel may move gradients to other buckets
            same = step.versions == versions(self.watched) or (self.ddp and not self.fewest)
            require(same, "gradients or parameters", "changed within a step", UNCHANGED)
        elif not step.heard:
            left = [p.grad for p in self.watched if p.grad is not None]
            step.stale = [g.flatten()[:: g.numel() // 8 + 1].count_nonzero() for g in left]
        step.heard.add(p)
        step.lengths.append(norms(gradient))
        if step.task != torch._C._current_graph_task_id():
            step.task = torch._C._current_graph_task_id()
            after_backward(self.sum_up)

    @harmless
    def sum_up(self) -> None:
        """Called at the end of a backward pass, before anything clips the gradient."""
        step, ddp = self.under_way, self.ddp
        require(all(p.grad is not None for p in step.heard), "gradients", None, IN_GRAD)
        step.versions = versions(self.watched)
        if ddp.require_backward_grad_sync if ddp else len(step.parts) + 1 >= self.fewest:
            gradients = [p.grad for p in self.watched if p.grad is not None]
            step.whole = summed(list(map(norms, gradients)))

    @harmless
    def micro_batch(self, examples: int | None = None, scale: float = 1.0) -> None:
        """Count what a backward pass has added to the gradients as a micro-batch.

        examples: of this micro-batch, if different from the usual number: examples=20 for a last
        one of 20 after others of 32, say.
        scale: factor of the mean over them.  Not needed for the noise scale if it is the same for
        all, as when a loss is divided by the number of micro-batches.
        """
        size = self.examples if examples is None else examples
        require((size or 0) >= 1, "examples", size, "at least 1")
        allowed = "1, unless the model is DistributedDataParallel (not FSDP) outside join()"
        require(processes() == 1 or self.shared, "processes", processes(), allowed)
        require(self.under_way and self.under_way.heard, "gradients", None, IN_GRAD)
        self.under_way.parts.append((size, scale))
        self.under_way.heard = set()

    def backward_in_parts(
        self, loss: Callable[[object], Tensor], batch: object, parts: int = 2
    ) -> Tensor:
        """Run backward passes of the parts of a batch, whose gradients add up to the whole batch's.

        loss: maps a part to the mean over its examples.
        batch: a tensor, or tuples, lists and dictionaries of tensors, all with the examples along
        their first dimension; everything else is passed to each part as it is.
        parts: how many, of sizes as equal as possible.
        Returns the batch's mean loss, detached.

        The gradient is that of one backward pass, up to rounding, if the loss is a mean over
        examples and the model treats them one by one.  BatchNorm does not; dropout draws other
        masks; a mean over tokens is not one over examples if their numbers differ.  A batch that
        cannot be split so is not split.
        """
        leaves, structure = _pytree.tree_flatten(batch)
        total, mean, pieces = rows(batch), 0.0, [batch]
        lengths = {tuple(x.shape[:1]) for x in leaves if isinstance(x, Tensor)}
        if lengths != {(total,)}:
            self.refuse(f"batch: {lengths} is not allowed; it must be tensors of one length")
        elif not self.refusal:
            parts = max(1, min(parts, total))
            split = [
                x.tensor_split(parts) if isinstance(x, Tensor) else [x] * parts for x in leaves
            ]
            pieces = [_pytree.tree_unflatten(piece, structure) for piece in zip(*split)]
        for piece in pieces:
            share = rows(piece) / total if total else 1.0
            cost = loss(piece) * share
            (self.scaler.scale(cost) if self.scaler else cost).backward()
            self.micro_batch(rows(piece), share)
            mean = mean + cost.detach()
        return mean

    def step(self, scale: float = 1.0) -> None:
        """End a step of all micro-batches since the last call; call it before optimizer.step().

        scale: factor of all their gradients, if not passed with each.

        A first step with fewer than two, over all workers, is refused; a later one is left out.
        """
        step, self.under_way = self.under_way or self.new_step(), None
        sums, work = self.complete(step), None
        if sums is None:  # sent nevertheless, since other workers wait for it
            device = next(self.model.parameters()).device
            sums = torch.full((5 + self.width,), math.nan, dtype=exact(device), device=device)
        if self.shared:
            group = self.ddp.process_group
            work = torch.distributed.all_reduce(sums, group=group, async_op=True)
        arguments = sums, work, step.whole, step.loss_scale * scale, self.workers
        self.waiting.append(functools.partial(_estimates, *arguments))
        self._read(DELAY)
        self.watch()

    def new_step(self) -> _Step:
        return _Step(self.scaler.get_scale() if self.scaler else 1.0)

    @harmless
    def complete(self, step: _Step) -> Tensor | None:
        """The step's sums, if it has two gradients or more, as a first step must."""
        passes = len(step.parts)
        require(passes * self.workers >= 2 or self.fewest, "micro-batches", passes, TWO)
        self.fewest = min(self.fewest or passes, passes) or self.fewest
        self.largest = max(self.largest, self.workers * sum(size for size, _ in step.parts))
        lacking = passes * self.workers < 2 or (step.whole is None and not self.width)
        return None if lacking or step.spoilt else step.sums()

    def count_rows(self) -> None:
        """Count in `rows` the rows passed to the model while gradients are enabled; and find the
        DistributedDataParallel around it.
        """
        if self.rows is None:
            self.rows = 0
            look = torch.compiler.disable(weakly(self.look))
            self.model.register_forward_pre_hook(look, with_kwargs=True)

    @harmless
    def look(self, module: nn.Module, arguments: tuple, options: dict) -> None:
        if torch.is_grad_enabled():
            self.rows += rows((arguments, options))
        if not isinstance(module, DistributedDataParallel):
            self.ddp = getattr(DistributedDataParallel, "_active_ddp_module", None)

    def taken_rows(self) -> int:
        """The rows counted since the last call."""
        taken, self.rows = self.rows, 0
        return taken


def norms(x: Tensor) -> Tensor:
    """Lengths of rows of x, short enough for single precision to add up their squares."""
    kind = torch.promote_types(x.dtype, torch.float32)
    return torch.linalg.vector_norm(x.detach(), dim=tuple(range(1, x.ndim)) or None, dtype=kind)


def summed(lengths: Sequence[Tensor]) -> Tensor:
    """The sum of the squares of all lengths, on the first one's device."""
    device = lengths[0].device
    lengths = torch.cat([length.flatten().to(device) for length in lengths])
    return lengths.to(exact(device)).square().sum()


def exact(device: torch.device) -> torch.dtype:
    """Double precision, if the device has it (Apple's do not)."""
    return torch.float32 if device.type == "mps" else torch.float64


def versions(parameters: Iterable[nn.Parameter]) -> list[tuple]:
    """Values that change whenever anything is written to parameters or their gradients."""
    pairs = ((p, p.grad) for p in parameters)
    return [(p._version, id(g), g is not None and g._version) for p, g in pairs]


def processes() -> int:
    """Number of processes that train together, or might."""
    group = torch.distributed
    return group.get_world_size() if group.is_available() and group.is_initialized() else 1


def after_backward(call: Callable[[], None]) -> None:
    """Run `call` at the end of the current backward pass."""
    # Queued twice, to run after DistributedDataParallel's callback, which waits for other workers
    queue = torch.autograd.Variable._execution_engine.queue_callback
    queue(lambda: queue(call))


def rows(batch: object) -> int:
    """The first dimension of a batch's first tensor; 0 without one."""
    leaves = _pytree.tree_leaves(batch)
    return next((len(x) for x in leaves if isinstance(x, Tensor) and x.ndim), 0)


def require(fine: object, field: str, value: object, allowed: str) -> None:
    """Raise ValueError naming the field, its value and what is allowed, unless `fine`."""
    if not fine:
        raise ValueError(f"{field}: {value!r} is not allowed; it must be {allowed}")


# --- in the loops of others -----------------------------------------------------------------------


class MeterKeeper:
    """Base of both callbacks: keeps a meter as long as its model is trained."""

    meter: NoiseMeter | None = None

    def begin(self, model: nn.Module, span: float, scaler: torch.amp.GradScaler | None) -> None:
        """Begin a fit, of the same model or another one."""
        if self.meter is None or self.meter.model is not model:
            self.meter = NoiseMeter(model, span=span)
        self.meter.scaler, self.meter.under_way, self.meter.refusal = scaler, None, ""
        self.meter.largest = self.meter.fewest = 0

    def tell(self, text: object) -> None:
        """Print `text`, once for all workers, unless measuring has stopped."""
        first = processes() == 1 or torch.distributed.get_rank() == 0
        if first and not self.meter.refusal:
            print(text)


def lightning_callback(
    examples: int | Callable[[object], int] | None = None, every: int = 100, span: float = 200.0
):
    """A lightning.pytorch.Callback; its meter goes into checkpoints.

    examples: per batch, if it holds no tensor; or a function that counts a batch's examples, if
    they are not the first dimension of its first tensor.
    span: as for `NoiseMeter`.  Needs automatic optimisation, and gradient accumulation or several
    processes (strategy "ddp").
    """
    from lightning.pytorch import Callback

    count = examples if callable(examples) else lambda batch: rows(batch) or examples

    class NoiseCallback(MeterKeeper, Callback):
        saved: dict | None = None

        def on_train_start(self, trainer, pl_module):  # after a batch size finder
            self.begin(pl_module, span, getattr(trainer.precision_plugin, "scaler", None))
            model = trainer.strategy.model
            self.meter.ddp = model if isinstance(model, DistributedDataParallel) else None
            if not pl_module.automatic_optimization:
                self.meter.refuse("automatic_optimization: False is not allowed; it must be True")
            with suppress(ValueError):  # saved with another span: it starts anew
                self.meter.load_state_dict(self.saved)
            self.saved = None

        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            self.size = harmless(lambda meter: count(batch))(self.meter)

        def on_after_backward(self, trainer, pl_module):
            self.meter.micro_batch(self.size, 1 / trainer.accumulate_grad_batches)

        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            self.meter.step()
            if trainer.global_step % every == every - 1:
                self.tell(self.meter.estimate())

        def on_train_end(self, trainer, pl_module):
            self.tell(self.meter.report())

        def state_dict(self):
            return self.meter.state_dict() if self.meter else {}

        def load_state_dict(self, state_dict):
            self.saved = state_dict

    return NoiseCallback()


def trainer_callback(every: int = 100, span: float = 200.0):
    """A transformers.TrainerCallback.

    span: as for `NoiseMeter`.  Needs gradient accumulation or several processes.  A step with
    unequal micro-batches is left out, since models weigh them differently.  Checkpoints do not
    hold the averages, which continue if `train` is called again.
    """
    from transformers import TrainerCallback

    class NoiseCallback(MeterKeeper, TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, optimizer=None, **kwargs):
            self.begin(model, span, getattr(optimizer, "scaler", None))
            self.meter.count_rows()

        def on_substep_end(self, args, state, control, **kwargs):
            # No more than the loader's, in case the first dimension is not that of examples
            size = state.train_batch_size
            self.meter.micro_batch(min(self.meter.taken_rows() or size, size))

        def on_pre_optimizer_step(self, args, state, control, **kwargs):
            self.on_substep_end(args, state, control)
            parts = self.meter.under_way.parts if self.meter.under_way else []
            if len(set(parts)) > 1:
                self.meter.under_way.spoilt = True
            self.meter.step(1 / max(len(parts), 1))

        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step % every == 0:
                self.tell(self.meter.estimate())

        def on_train_end(self, args, state, control, **kwargs):
            self.tell(self.meter.report())

    return NoiseCallback()
