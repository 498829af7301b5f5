"""The gradient noise scale of a job of one process, read off the gradients that it computes anyway.

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

Without it, a batch is split in two.  The gradient is the whole batch's but for rounding:

    for batch in loader:
        optimizer.zero_grad()
        meter.backward_in_parts(lambda part: loss(model(part[0]), part[1]), batch)
        meter.step()
        optimizer.step()

What is estimated is the simple noise scale tr(Sigma) / |G|^2 in examples: Sigma is the covariance
of single examples' gradients, and G their mean (McCandlish et al. 2018, equation 2.9).  What
micro-batches add to `.grad` are gradients with the same mean and independent noise, so that their
lengths and that of their sum tell both without bias (`trace_and_square`).  Both are averaged over
steps, each by itself, since a mean of ratios would be biased; the interval comes from their scatter
(`Averages`).

Training is the same as without, to the last bit.  Memory: a copy of the gradient, from a step's
first micro-batch to `step()`.  Nothing waits for a graphics processor but a loss scaler that is
asked for its scale.  So it is noticed some steps late that others have changed gradients between a
step's micro-batches (SAM, a GAN, a module's own hooks), or never zeroed them: a ValueError then
takes the estimate's place.

Lightning and Hugging Face's Trainer have callbacks, which print an estimate each `every` steps, and
what it means at the end of training; in between, it is in their `meter`.  They count each batch's
examples along the first dimension of its first tensor.  Where they cannot measure, they warn once,
say so in place of a report, and leave training alone.

    trainer = Trainer(accumulate_grad_batches=4, callbacks=[lightning_callback()])

    arguments = TrainingArguments(gradient_accumulation_steps=4, per_device_train_batch_size=32)
    Trainer(model, arguments, train_dataset=examples, callbacks=[trainer_callback()]).train()

A step in which a gradient is not finite is left out, and so is a later step of fewer than two
micro-batches; `skipped` counts them.  Several processes: each has part of the gradient; refused.
"""

import math
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist

import torch
from torch import Tensor, nn
from torch.utils import _pytree

LEVEL = 0.9  # of intervals
BLOCK = 1024  # entries whose squares are added up in single precision
KEPT = 16  # steps whose sums wait to be read, so that no step waits for its own
UNCHANGED = "zeroed before a step's first backward, and left alone to its last"
CAVEATS = """\
Steps are taken to be proportional to 1 + noise scale / batch size, with the best learning rate at
each size. What to know before you trust it:
- Curvature is left out: on six searched curves the critical batch size was 0.4 to 2.4 times it.
- Adam: this is the noise of the plain gradient, not of rescaled steps; an order of magnitude.
- Clipping: call micro_batch() before it; where most steps are clipped, the formula does not hold.
- BatchNorm ties the examples of a micro-batch together, which the estimate does not know.
- Lag: it is an average of the last {span:.0f} steps or so; noise scales mostly rise in training."""


# --- estimates and their intervals ----------------------------------------------------------------


def trace_and_square(
    small: float, big: float, groups: float, examples: float, total: int | None = None
) -> tuple[float, float]:
    """Unbiased estimates of tr(Sigma) and |G|^2 from gradients of groups of examples.

    small: mean over the groups of |g|^2, each g the mean gradient of its examples.
    big: |mean over the groups of g|^2.
    groups: how many.
    examples: in a group; the harmonic mean, if their numbers differ.
    total: size of the training set from which examples are drawn without replacement, G being the
    mean over all of it; None: so large that it does not matter.

    From E|g|^2 = |G|^2 + tr(Sigma) / examples, and likewise for the mean of all (McCandlish et al.
    2018, appendix A.1).  |G|^2 comes out as the mean inner product of two groups' gradients, so it
    may be negative.  Groups that differ in weight: see `_Step`.
    """
    trace = examples * groups / (groups - 1) * (small - big)
    square = (groups * big - small) / (groups - 1)
    return trace, square + (trace / total if total else 0.0)


def ratio(trace: float, square: float) -> float:
    """The noise scale tr(Sigma) / |G|^2 in examples; infinite where noise hides the gradient."""
    return trace / square if square > 0 else math.inf


def fieller(trace: float, square: float, margins: Sequence[float]) -> tuple[float, float]:
    """All r >= 0 for which trace - r square is no farther from zero than its margin (Fieller 1954),
    as (low, high).

    margins: of trace, of both jointly, of square: their variances and covariance times the squared
    quantile.  high is infinite where square is not clear of zero, and low zero where trace is not.
    """
    square = max(square, 0.0)  # what it estimates is no less
    a = square**2 - margins[2]
    b = trace * square - margins[1]
    c = trace**2 - margins[0]
    far = b + math.sqrt(max(b**2 - a * c, 0.0))
    low = c / far if trace > 0 and c > 0 and far > 0 else 0.0
    return low, far / a if a > 0 else math.inf


def student(share: float, freedom: float) -> float:
    """Student's t below which `share` of the distribution lies, by Wallace's (1959) approximation:
    two in a hundred too far out with two degrees of freedom, and ever closer with more.
    """
    z = NormalDist().inv_cdf(share) * (8 * freedom + 3) / (8 * freedom + 1)
    return math.sqrt(freedom * math.expm1(z**2 / freedom))


@dataclass(frozen=True)
class Estimate:
    """Of tr(Sigma) and |G|^2, averaged over the last of `steps` steps; low, high: 5 to 95 % of
    their ratio, in examples.
    """

    trace: float
    square: float
    low: float
    high: float
    steps: int
    span: float

    @property
    def noise_scale(self) -> float:
        """tr(Sigma) / |G|^2 in examples; infinite where noise hides the gradient."""
        return ratio(self.trace, self.square)

    @property
    def unbounded(self) -> bool:
        """Whether |G|^2 is not clear of zero: more steps, a longer span or more examples a step are
        needed.
        """
        return math.isinf(self.high)

    def __str__(self) -> str:
        if not self.steps:
            return "noise scale not measured yet"
        window = f"over the last {min(self.steps, round(self.span))} steps or so"
        if self.unbounded:
            return f"noise scale unbounded: at least {self.low:.2g} examples (5 %), {window}"
        interval = f"5-95 %: {self.low:.3g} to {self.high:.3g}"
        return f"noise scale {self.noise_scale:.3g} examples ({interval}), {window}"


@dataclass(frozen=True)
class Averages:
    """Exponential averages of steps' estimates, and their scatter from step to step, from which an
    interval follows.

    span: how many equally weighted steps are worth as much; a step weighs (span - 1) / (span + 1)
    of the next, and the sums here are divided by the sum of the weights, so that the first steps
    are no less without bias. The scatter is that between neighbouring steps: half their squared
    difference has the variance of one, whatever has changed over the window.  So the interval is of
    the window's average, and what moves lags by half a span.
    """

    span: float
    steps: int = 0
    skipped: int = 0
    last: tuple[float, ...] = (0.0, 0.0)  # trace and square of the last step
    # Of trace and square, and of their scatter: of trace, of both jointly, of square
    sums: tuple[float, ...] = (0.0,) * 5

    @property
    def decay(self) -> float:
        return (self.span - 1) / (self.span + 1)

    def after(self, trace: float, square: float) -> "Averages":
        """With one more step; one that is not finite is skipped: loss scaling has overflowed."""
        now = trace, square
        x = y = 0.0
        if self.steps:
            x = trace - self.last[0]
            y = square - self.last[1]
        scatter = x * x / 2, x * y / 2, y * y / 2
        shares = [self.decay] * 2 + [self.decay**2] * 3
        faded = zip(shares, self.sums, now + scatter)
        sums = tuple(share * old + new for share, old, new in faded)
        if not all(map(math.isfinite, sums)):
            return replace(self, skipped=self.skipped + 1)
        return replace(self, steps=self.steps + 1, last=now, sums=sums)

    def estimate(self) -> Estimate:
        """Averages with an interval of their ratio, by Fieller's theorem with Student's quantile;
        unbounded before the fourth step.
        """
        n, r = self.steps, self.decay
        weights = _series(r, n) or math.nan
        trace, square, *scatter = self.sums
        trace, square, bounds = trace / weights, square / weights, (0.0, math.inf)
        if n >= 4:
            differences = _series(r**2, n - 1)
            # Neighbouring differences share a step
            freedom = differences**2 / _series(r**4, n - 1) / 1.5
            squared_error = _series(r**2, n) / weights**2 / differences
            quantile = student((1 + LEVEL) / 2, freedom)
            margin = squared_error * quantile**2
            bounds = fieller(trace, square, [margin * value for value in scatter])
        return Estimate(trace, square, *bounds, n, self.span)


def _series(ratio: float, terms: int) -> float:
    """1 + ratio + ... , so many terms."""
    return (1 - ratio**terms) / (1 - ratio)


# --- what an estimate means -----------------------------------------------------------------------


def meaning(found: Estimate, batch_size: int) -> str:
    """A sentence on what an estimate means for this batch size, in examples a step, if steps are
    proportional to 1 + noise scale / batch size.
    """
    scales = [max(scale, 0.0) for scale in (found.noise_scale, found.low, found.high)]
    scale, low, high = (f"{float(f'{scale:.3g}'):,g}" for scale in scales)
    saved, least, most = (50 - 50 * batch_size / (scale + batch_size) for scale in scales)
    if found.unbounded:
        return (
            f"noise hides the gradient: the noise scale is at least {low} examples; "
            f"at {batch_size:,} doubling should save {least:.0f} to {most:.0f} % of the steps"
        )
    times = batch_size / scales[0] if scales[0] else math.inf
    return (
        f"at {batch_size:,} you are at {times:.2g} times the noise scale "
        f"({scale}, {low}–{high}): doubling should still save {saved:.0f} % of the steps "
        f"({least:.0f}–{most:.0f} %), for {100 - 2 * saved:.0f} % more examples"
    )


# --- listening ------------------------------------------------------------------------------------


class Listener:
    """The running averages of a job: the meter's here, and the hook's for several processes.

    examples: of which a gradient is the mean.
    span: of the averages, in steps; longer is surer, and lags more.
    scaler: the torch.amp.GradScaler, if there is one, by whose scale gradients are multiplied.
    """

    def __init__(self, examples: int | None, span: float, scaler: torch.amp.GradScaler | None):
        require(examples is None or examples >= 1, "examples", examples, "a number from 1")
        require(1 < span < math.inf, "span", span, "a number above 1")
        self.examples, self.scaler, self.averages = examples, scaler, Averages(float(span))
        self.waiting: list = []  # steps whose sums have not been read, the oldest first
        self.settings = {"span": float(span)}  # that a saved state has, too
        self.refusal = ""  # why there is no estimate
        # By parameter, whether all of a micro-batch's backward passes met a changed gradient
        self.looked: dict[nn.Parameter, bool | Tensor] = {}

    @property
    def skipped(self) -> int:
        """Steps that were left out, of those that have been read."""
        return self.averages.skipped

    @property
    def begun(self) -> int:
        """All steps so far."""
        return self.averages.steps + self.skipped + len(self.waiting)

    def estimate(self) -> Estimate:
        """Of the steps so far.  Raises ValueError if they cannot be measured."""
        self._read()
        if self.refusal:
            raise ValueError(self.refusal)
        return self.averages.estimate()

    def refuse(self, why: object) -> None:
        """Measure no more; warn the first time."""
        if not self.refusal:
            self.refusal = str(why)
            warnings.warn(f"noise scale not measured, because {why}", stacklevel=2)

    def look(self, p: nn.Parameter) -> None:
        """At p's gradient, before a backward pass adds to it."""
        met = self.looked.get(p, True)
        if met is not False:  # else an earlier pass has met what it should
            self.looked[p] = met & differs(p.grad, self.expected(p))

    def expected(self, p: nn.Parameter) -> Tensor | None:
        """p's gradient before a micro-batch; None: zero."""
        return None

    def state_dict(self) -> dict:
        """All that the next estimate depends on, numbers and tuples of them; between steps."""
        self._read()
        return asdict(self.averages) | self.settings

    def load_state_dict(self, saved: dict) -> None:
        """Go on from `state_dict`.

        Raises ValueError, and changes nothing, for what is none, and if its settings are others.
        """
        fits = isinstance(saved, dict) and saved.keys() == self.state_dict().keys()
        fits = fits and saved == saved | self.settings
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        require(fits, "saved", saved, f"what state_dict() has returned, with {settings}")
        self.averages = Averages(**{name: saved[name] for name in asdict(self.averages)})

    def add(self, step: object) -> None:
        """A step more, whose `estimates()` are read when others have followed."""
        self.waiting.append(step)
        self._read(but=KEPT)

    def _read(self, but: int = 0) -> None:
        """Take the steps that wait into the averages, all but the last so many."""
        while len(self.waiting) > but:
            found = math.nan, math.nan
            try:
                found = self.waiting.pop(0).estimates()
            except ValueError as error:
                self.refuse(error)
            self.averages = self.averages.after(*found)


class NoiseMeter(Listener):
    """Listens to the gradients of a model that one process trains.

    model: whose parameters' `.grad` are read; those without a gradient add nothing, and of complex
    ones both parts count.
    examples: in a micro-batch, of which its gradient is the mean, where `micro_batch` is told none.
    span, scaler: as of `Listener`.

    Gradients are zero where a step begins.  In bfloat16, what is measured is what `.grad` holds,
    rounding and all.  Raises ValueError naming field, value and what is allowed.
    """

    def __init__(
        self,
        model: nn.Module,
        examples: int | None = None,
        span: float = 200.0,
        scaler: torch.amp.GradScaler | None = None,
    ):
        super().__init__(examples, span, scaler)
        require(isinstance(model, nn.Module), "model", type(model).__name__, "an nn.Module")
        self.model = model
        self.under_way: _Step | None = None
        self.watched: set[nn.Parameter] = set()

    def expected(self, p: nn.Parameter) -> Tensor | None:
        return self.under_way.before.get(p) if self.under_way else None

    @torch.no_grad()
    def micro_batch(self, examples: int | None = None, scale: float = 1.0) -> None:
        """Take what a backward pass has added to the gradients, before anything else changes them.

        examples: of this micro-batch, if it has another number: a last one of 20 after others of
        32, say, has examples=20.
        scale: by what the mean over them is multiplied.  The noise scale is the same without, if
        all are multiplied alike, as where a loss is divided by the number of micro-batches.

        Raises ValueError with several processes, for sparse gradients, and for none.
        """
        size = self.examples if examples is None else examples
        require((size or 0) >= 1, "examples", size, "a number from 1")
        if self.under_way is None:
            meet = torch.distributed.is_available() and torch.distributed.is_initialized()
            count = torch.distributed.get_world_size() if meet else 1
            allowed = "1; DistributedDataParallel has hooks for it"
            require(count == 1, "processes", count, allowed)
            self.under_way = _Step(scale_of(self.scaler))
        self.under_way.take(self, size, scale)

    def backward_in_parts(
        self, loss: Callable[[object], Tensor], batch: object, parts: int = 2
    ) -> Tensor:
        """Backward passes of the parts of a batch, whose gradients add up to the whole batch's.

        loss: of a part, the mean over its examples.
        batch: a tensor, or tuples, lists and dictionaries of tensors, all with the examples along
        their first dimension; what is no tensor is given to each part as it is.
        parts: how many, as equal as can be; each one's loss counts by its share of the examples.
        Returns the batch's mean loss, detached.

        The gradient is that of one backward pass on the whole batch, but for rounding, if the loss
        is a mean over examples and the model treats them one by one.  BatchNorm does not: in
        training it then normalises by a part's statistics, and updates its running ones once a
        part.  Dropout draws other masks.  A mean over tokens is none over examples where their
        numbers differ.  Raises ValueError for a batch that has no such parts.
        """
        tensors = [leaf for leaf in _pytree.tree_leaves(batch) if isinstance(leaf, Tensor)]
        sizes = {x.shape[:1] for x in tensors}
        fits = len(sizes) == 1 and max(sizes) >= (parts,)
        allowed = f"tensors of one length, {parts} examples or more"
        require(fits, "batch", [tuple(x.shape) for x in tensors], allowed)
        (total,), mean = sizes.pop(), 0.0
        for k in range(parts):
            part = _pytree.tree_map_only(Tensor, lambda x, k=k: x.tensor_split(parts)[k], batch)
            examples = total // parts + (k < total % parts)
            cost = loss(part) * (examples / total)
            (self.scaler.scale(cost) if self.scaler else cost).backward()
            self.micro_batch(examples, examples / total)
            mean = mean + cost.detach()
        return mean

    def step(self, scale: float = 1.0) -> None:
        """The micro-batches since the last call were a step's; before optimizer.step().

        scale: by what all of their gradients were multiplied, if it was not told of each.

        Raises ValueError if the first step has fewer than two of them; a later one is left out.
        """
        step, self.under_way = self.under_way, None
        sizes = step.sizes if step else []
        calls = (
            "at least 2 a step: call micro_batch() after each backward, or backward_in_parts()"
        )
        require(len(sizes) >= 2 or self.begun, "micro-batches", len(sizes), calls)
        if len(sizes) < 2:
            self.leave_out()
        else:
            step.end(scale)
            self.add(step)
        if self.refusal:
            raise ValueError(self.refusal)

    def leave_out(self) -> None:
        """The step under way."""
        self.under_way, self.averages = None, self.averages.after(math.nan, math.nan)

    def report(self, batch_size: int) -> str:
        """What the estimate means for a batch of so many examples a step, and what to know."""
        found = self.estimate()
        left_out = f", {self.skipped} left out" if self.skipped else ""
        means = meaning(found, batch_size) if found.steps else str(found)
        return f"{means}\n({found.steps} steps{left_out})\n{CAVEATS.format(span=found.span)}"


class _Step:
    """Squared lengths of what a step's micro-batches have added to the gradient.

    A micro-batch adds scale times its mean gradient.  With weights scale^2, unequal ones come to
    the same two equations as so many equal ones: their lengths' mean, the number of micro-batches
    and the harmonic mean of their examples are weighted so.
    """

    def __init__(self, loss_scale: float):
        self.loss_scale = loss_scale
        self.before: dict[nn.Parameter, Tensor] = {}  # gradients after the last micro-batch
        self.sizes: list[int] = []  # of micro-batches; sums over them:
        self.squares = self.scales = self.weights = self.inverses = 0.0
        self.changed: list[Tensor] = []  # whether gradients were, by others
        self.versions: dict[nn.Parameter, int] = {}

    def take(self, meter: NoiseMeter, examples: int, scale: float) -> None:
        """Accumulated gradients after one more micro-batch."""
        squares, watched = [], meter.watched
        for p in meter.model.parameters():
            same = self.versions.setdefault(p, p._version) == p._version
            require(same, "parameters", "changed within a step", "left alone until step()")
            if p in watched and p not in meter.looked:
                meter.look(p)  # no pass has reached it
            if p.grad is not None:
                require_dense(p.grad)
                now = real(p.grad)
                squares.append(squared(now.float() - self.before.get(p, 0)))
                self.before[p] = now.clone()
                if p not in watched:
                    watched.add(p)
                    watch(p, meter)
        allowed = "in .grad after each backward (no optimiser within it)"
        require(squares, "gradients", None, allowed)
        self.changed += filter(torch.is_tensor, meter.looked.values())
        meter.looked.clear()
        self.sizes.append(examples)
        self.squares += summed(squares)
        self.scales += scale
        self.weights += scale**2
        self.inverses += scale**2 / examples

    def end(self, scale: float) -> None:
        """Only lengths are kept, that of the whole gradient with them."""
        self.whole = summed([squared(g) for g in self.before.values()])
        self.altered = summed(self.changed) if self.changed else 0
        self.before, self.changed = {}, []
        self.loss_scale *= scale

    def estimates(self) -> tuple[float, float]:
        """tr(Sigma) and |G|^2.  Raises ValueError if others have changed the gradients."""
        require(not self.altered, "gradients", "changed by others, or never zeroed", UNCHANGED)
        small, big = (
            square.item() / self.loss_scale**2 for square in (self.squares, self.whole)
        )
        equal = self.scales**2 / self.weights
        examples = self.weights / self.inverses
        return trace_and_square(small / self.weights, big / self.scales**2, equal, examples)


def squared(x: Tensor) -> Tensor:
    """|x|^2 of x [d]: blocks in single precision, which is fast, and their sum in double, which is
    exact enough to subtract, where the device has it: Apple's have none.
    """
    x = real(x).float()
    whole = len(x) // BLOCK * BLOCK
    parts = x[:whole].view(-1, BLOCK), x[whole:].view(1, -1)
    norms = torch.cat([torch.linalg.vector_norm(part, dim=1) for part in parts])
    return norms.to(torch.float32 if x.is_mps else torch.float64).square().sum()


def real(x: Tensor) -> Tensor:
    """Its entries [d], of complex ones both parts."""
    return torch.view_as_real(x.resolve_conj()).flatten() if x.is_complex() else x.flatten()


def summed(numbers: Sequence[Tensor]) -> Tensor:
    """Their sum, on the first one's device."""
    return torch.stack([number.to(numbers[0].device) for number in numbers]).sum()


def require_dense(gradient: Tensor) -> None:
    """Raise ValueError if the gradient is a sparse tensor."""
    sparse = "a sparse tensor, as of nn.Embedding(sparse=True)"
    require(
        not gradient.is_sparse, "gradient", sparse, "dense: give the embedding sparse=False"
    )


@torch.no_grad()
def differs(gradient: Tensor | None, before: Tensor | None) -> bool | Tensor:
    """Whether it is not what it was, where None is zero.  What is not a number counts as the same:
    its step is left out anyway.
    """
    if gradient is before is None:
        return False
    zero = torch.zeros(())
    now = zero if gradient is None else real(gradient)
    was = zero if before is None else before
    return ((now != was) & (now == now)).any()


def watch(p: nn.Parameter, listener: Listener) -> None:
    """Let the listener look at p's gradient before each backward pass adds to it."""
    parameter, hearer = weakref.ref(p), weakref.ref(listener)  # either may go

    def look(_: Tensor) -> None:
        p, listener = parameter(), hearer()
        if p is not None and listener is not None and not listener.refusal:
            listener.look(p)

    p.register_hook(look)


def rows(batch: object) -> int:
    """The first dimension of a batch's first tensor; 0 without one."""
    leaves = _pytree.tree_leaves(batch)
    return next((len(x) for x in leaves if isinstance(x, Tensor) and x.ndim), 0)


class Rows:
    """Counts the rows of what a module is given, with gradients to follow."""

    def __init__(self, module: nn.Module):
        self.count = 0
        add = torch.compiler.disable(self.add)
        self.handle = module.register_forward_pre_hook(add, with_kwargs=True)

    def add(self, module: nn.Module, arguments: tuple, named: dict) -> None:
        if torch.is_grad_enabled():
            self.count += rows((arguments, named))

    def taken(self) -> int:
        """The rows since the last call."""
        count, self.count = self.count, 0
        return count


def scale_of(scaler: torch.amp.GradScaler | None) -> float:
    """By what the loss of this step is multiplied."""
    return scaler.get_scale() if scaler else 1.0


def require(fine: object, field: str, value: object, allowed: str) -> None:
    """Raise ValueError naming the field, its value and what is allowed, unless it is fine."""
    if not fine:
        raise ValueError(f"{field}: {value!r} is not allowed; it must be {allowed}")


# --- in the loops of others -----------------------------------------------------------------------


class Hearer:
    """What both callbacks do: they keep a meter for as long as its model is trained, and never stop
    a job that cannot be measured.
    """

    meter: NoiseMeter | None = None

    def begin(self, model: nn.Module, span: float, scaler: torch.amp.GradScaler | None) -> None:
        """Another fit, of the same model or another one."""
        if self.meter is None or self.meter.model is not model:
            self.meter = NoiseMeter(model, span=span)
        self.meter.scaler, self.meter.under_way, self.meter.refusal = scaler, None, ""

    def hear(self, call: Callable, *arguments, **named) -> None:
        """What the meter refuses is told once, in a warning."""
        try:
            if not self.meter.refusal:
                call(*arguments, **named)
        except ValueError as error:
            self.meter.refuse(error)

    def tell(self, ask: Callable, *arguments) -> None:
        """Print it, or why it is not known."""
        try:
            print(ask(*arguments))
        except ValueError as error:
            print(f"noise scale not measured, because {error}")


def lightning_callback(
    examples: int | Callable[[object], int] | None = None, every: int = 100, span: float = 200.0
):
    """A lightning.pytorch.Callback; its meter goes into checkpoints.

    examples: of a batch that holds no tensor; or a function that counts a batch's, where it is not
    the first dimension of its first tensor.
    span: as `NoiseMeter` takes it.  Needs automatic optimisation, gradient accumulation and one
    process.
    """
    from lightning.pytorch import Callback

    Listener(1, span, None)  # refuses what it must before training

    class NoiseCallback(Hearer, Callback):
        size = largest = 0

        def setup(self, trainer, pl_module, stage):
            if stage == "fit":
                scaler = getattr(trainer.precision_plugin, "scaler", None)
                self.begin(pl_module, span, scaler)
                self.largest = 0
                automatic = pl_module.automatic_optimization
                self.hear(require, automatic, "automatic_optimization", automatic, True)

        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            self.size = examples(batch) if callable(examples) else rows(batch) or examples
            self.largest = max(self.largest, self.size or 0)

        def on_after_backward(self, trainer, pl_module):
            scale = 1 / trainer.accumulate_grad_batches
            self.hear(self.meter.micro_batch, self.size, scale)

        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            self.hear(self.meter.step)
            if not self.meter.refusal and trainer.global_step % every == every - 1:
                self.tell(self.meter.estimate)

        def on_train_end(self, trainer, pl_module):
            self.tell(self.meter.report, self.largest * trainer.accumulate_grad_batches)

        def state_dict(self):
            return self.meter.state_dict() if self.meter else {}

        def load_state_dict(self, state_dict):
            try:
                if self.meter:  # else it is no fit
                    self.meter.load_state_dict(state_dict)
            except ValueError as error:
                warnings.warn(f"the noise scale starts anew: {error}", stacklevel=2)

    return NoiseCallback()


def trainer_callback(every: int = 100, span: float = 200.0):
    """A transformers.TrainerCallback.

    span: as `NoiseMeter` takes it.  Needs one process.  A step of unequal micro-batches is left
    out, since models differ in how they weigh them.  Callbacks see a step's last micro-batch only
    after clipping: it is left out, unless max_grad_norm is 0, so that clipping needs three
    micro-batches a step.  Checkpoints do not hold the averages, which go on if `train` is called
    again.
    """
    from transformers import TrainerCallback

    Listener(1, span, None)  # refuses what it must before training

    class NoiseCallback(Hearer, TrainerCallback):
        rows = None

        def on_train_begin(self, args, state, control, model=None, optimizer=None, **kwargs):
            self.begin(model, span, getattr(optimizer, "scaler", None))
            if self.rows:
                self.rows.handle.remove()
            self.rows = Rows(model)

        def on_substep_end(self, args, state, control, **kwargs):
            # No more than the loader gives, where the first dimension is another
            size = state.train_batch_size
            self.hear(self.meter.micro_batch, min(self.rows.taken() or size, size))

        def on_pre_optimizer_step(self, args, state, control, **kwargs):
            if not args.max_grad_norm:
                self.on_substep_end(args, state, control)

        def on_step_end(self, args, state, control, **kwargs):
            step = self.meter.under_way
            if step and len(set(step.sizes)) > 1:
                self.meter.leave_out()
            else:
                count = (len(step.sizes) if step else 0) + bool(args.max_grad_norm)
                # Reads no `.grad`, so that it may come after the optimiser's step
                self.hear(self.meter.step, 1 / max(count, 1))
            self.rows.taken()
            if not self.meter.refusal and state.global_step % every == 0:
                self.tell(self.meter.estimate)

        def on_train_end(self, args, state, control, **kwargs):
            batch_size = state.train_batch_size * args.gradient_accumulation_steps
            self.tell(self.meter.report, batch_size)

    return NoiseCallback()
