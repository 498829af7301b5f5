"""The gradient noise scale of a job of one process, read off the gradients that it computes anyway.

This file needs PyTorch and nothing else: copy it into your project.  With gradient accumulation:

    meter = NoiseMeter(model, examples=32)  # of a micro-batch, whose loss is a mean
    for micro_batches in loader:
        optimizer.zero_grad()
        for x, y in micro_batches:
            loss(model(x), y).backward()
            meter.micro_batch()  # after each backward
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
asked for its scale.

Lightning and Hugging Face's Trainer have callbacks, which print an estimate each `every` steps, and
what it means at the end of training; in between, it is in their `meter`.

    trainer = Trainer(accumulate_grad_batches=4, callbacks=[lightning_callback(examples=32)])

    arguments = TrainingArguments(gradient_accumulation_steps=4, per_device_train_batch_size=32)
    Trainer(model, arguments, train_dataset=examples, callbacks=[trainer_callback()]).train()

A step in which a gradient is not finite is left out, and so is a later step of fewer than two
micro-batches; `skipped` counts them.  Several processes: each has part of the gradient; refused.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist

import torch
from torch import Tensor, nn
from torch.utils import _pytree

LEVEL = 0.9  # of intervals
BLOCK = 1024  # entries whose squares are added up in single precision
KEPT = 16  # steps whose sums wait to be read, so that no step waits for its own
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

    def __init__(self, examples: int, span: float, scaler: torch.amp.GradScaler | None):
        require(examples >= 1, "examples", examples, "a number from 1")
        require(1 < span < math.inf, "span", span, "a number above 1")
        self.examples, self.scaler, self.averages = examples, scaler, Averages(float(span))
        self.waiting: list = []  # steps whose sums have not been read, the oldest first

    @property
    def skipped(self) -> int:
        """Steps that were left out, of those that have been read."""
        return self.averages.skipped

    @property
    def begun(self) -> int:
        """All steps so far."""
        return self.averages.steps + self.skipped + len(self.waiting)

    def estimate(self) -> Estimate:
        """Of the steps so far."""
        self._read()
        return self.averages.estimate()

    def state_dict(self) -> dict:
        """All that the next estimate depends on, numbers and tuples of them; between steps."""
        self._read()
        return asdict(self.averages)

    def load_state_dict(self, saved: dict) -> None:
        """Go on from `state_dict`.

        Raises ValueError, and changes nothing, for what is none, and if its span is another.
        """
        span = self.averages.span
        fits = isinstance(saved, dict) and saved.keys() == self.state_dict().keys()
        fits = fits and saved["span"] == span
        require(fits, "saved", saved, f"what state_dict() has returned, with span {span}")
        self.averages = Averages(**saved)

    def add(self, step: object) -> None:
        """A step more, whose `estimates()` are read when others have followed."""
        self.waiting.append(step)
        self._read(but=KEPT)

    def _read(self, but: int = 0) -> None:
        """Take the steps that wait into the averages, all but the last so many."""
        while len(self.waiting) > but:
            self.averages = self.averages.after(*self.waiting.pop(0).estimates())


class NoiseMeter(Listener):
    """Listens to the gradients of a model that one process trains.

    model: whose parameters' `.grad` are read; those without a gradient add nothing.
    examples: in a micro-batch, of which its gradient is the mean.
    span, scaler: as of `Listener`.

    Gradients are zero where a step begins.  In bfloat16, what is measured is what `.grad` holds,
    rounding and all.  Raises ValueError naming field, value and what is allowed.
    """

    def __init__(
        self,
        model: nn.Module,
        examples: int,
        span: float = 200.0,
        scaler: torch.amp.GradScaler | None = None,
    ):
        super().__init__(examples, span, scaler)
        self.model = model
        self.under_way: _Step | None = None

    @torch.no_grad()
    def micro_batch(self, examples: int | None = None, scale: float = 1.0) -> None:
        """Take what a backward pass has added to the gradients, before anything else changes them.

        examples: of this micro-batch, if it has another number: a last one of 20 after others of
        32, say, has examples=20.
        scale: by what the mean over them is multiplied.  The noise scale is the same without, if
        all are multiplied alike, as where a loss is divided by the number of micro-batches.

        Raises ValueError with several processes.
        """
        if self.under_way is None:
            meet = torch.distributed.is_available() and torch.distributed.is_initialized()
            count = torch.distributed.get_world_size() if meet else 1
            allowed = "1; DistributedDataParallel has hooks for it"
            require(count == 1, "processes", count, allowed)
            self.under_way = _Step(scale_of(self.scaler))
        self.under_way.take(self.model, examples or self.examples, scale)

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

    def step(self) -> None:
        """The micro-batches since the last call were a step's; before optimizer.step().

        Raises ValueError if the first step has fewer than two of them; a later one is left out.
        """
        step, self.under_way = self.under_way, None
        count = step.count if step else 0
        calls = "at least 2 a step: call micro_batch() after each backward, or backward_in_parts()"
        require(count >= 2 or self.begun, "micro-batches", count, calls)
        if count < 2:
            self.averages = self.averages.after(math.nan, math.nan)
            return
        step.end()
        self.add(step)

    def report(self, batch_size: int) -> str:
        """What the estimate means for a batch of so many examples a step, and what to know."""
        found = self.estimate()
        left_out = f", {self.skipped} left out" if self.skipped else ""
        caveats = CAVEATS.format(span=found.span)
        return f"{meaning(found, batch_size)}\n({found.steps} steps{left_out})\n{caveats}"


class _Step:
    """Squared lengths of what a step's micro-batches have added to the gradient.

    A micro-batch adds scale times its mean gradient.  With weights scale^2, unequal ones come to
    the same two equations as so many equal ones: their lengths' mean, the number of micro-batches
    and the harmonic mean of their examples are weighted so.
    """

    def __init__(self, loss_scale: float):
        self.loss_scale = loss_scale
        self.before: dict[nn.Parameter, Tensor] = {}  # gradients after the last micro-batch
        self.count = 0  # of micro-batches; sums over them:
        self.squares = self.scales = self.weights = self.inverses = 0.0

    def take(self, model: nn.Module, examples: int, scale: float) -> None:
        """Accumulated gradients after one more micro-batch."""
        squares = []
        for p in model.parameters():
            if p.grad is not None:
                now = p.grad.flatten()
                squares.append(squared(now.float() - self.before.get(p, 0)))
                self.before[p] = now.clone()
        self.count += 1
        self.squares += _total(squares)
        self.scales += scale
        self.weights += scale**2
        self.inverses += scale**2 / examples

    def end(self) -> None:
        """Only lengths are kept, that of the whole gradient with them."""
        self.whole = _total([squared(g) for g in self.before.values()])
        self.before = {}

    def estimates(self) -> tuple[float, float]:
        """tr(Sigma) and |G|^2."""
        small, big = (square.item() / self.loss_scale**2 for square in (self.squares, self.whole))
        equal = self.scales**2 / self.weights
        examples = self.weights / self.inverses
        return trace_and_square(small / self.weights, big / self.scales**2, equal, examples)


def squared(x: Tensor) -> Tensor:
    """|x|^2 of x [d]: blocks in single precision, which is fast, and their sum in double, which is
    exact enough to subtract, where the device has it: Apple's have none.
    """
    x = x.float()
    whole = len(x) // BLOCK * BLOCK
    parts = x[:whole].view(-1, BLOCK), x[whole:].view(1, -1)
    norms = torch.cat([torch.linalg.vector_norm(part, dim=1) for part in parts])
    return norms.to(torch.float32 if x.is_mps else torch.float64).square().sum()


def _total(squares: Sequence[Tensor]) -> Tensor:
    """Their sum, on the first one's device."""
    return torch.stack([square.to(squares[0].device) for square in squares]).sum()


def scale_of(scaler: torch.amp.GradScaler | None) -> float:
    """By what the loss of this step is multiplied."""
    return scaler.get_scale() if scaler else 1.0


def require(fine: object, field: str, value: object, allowed: str) -> None:
    """Raise ValueError naming the field, its value and what is allowed, unless it is fine."""
    if not fine:
        raise ValueError(f"{field}: {value!r} is not allowed; it must be {allowed}")


# --- in the loops of others -----------------------------------------------------------------------


def lightning_callback(examples: int, every: int = 100, span: float = 200.0):
    """A lightning.pytorch.Callback; its meter goes into checkpoints.

    examples, span: as `NoiseMeter` takes them.  Needs automatic optimisation, gradient accumulation
    and one process.  Raises ValueError in training, as `NoiseMeter.step`, without accumulation.
    """
    from lightning.pytorch import Callback

    class NoiseCallback(Callback):
        def setup(self, trainer, pl_module, stage):
            scaler = getattr(trainer.precision_plugin, "scaler", None)
            self.meter = NoiseMeter(pl_module, examples, span, scaler)

        def on_after_backward(self, trainer, pl_module):
            self.meter.micro_batch(scale=1 / trainer.accumulate_grad_batches)

        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            self.meter.step()
            if trainer.global_step % every == every - 1:
                print(self.meter.estimate())

        def on_train_end(self, trainer, pl_module):
            print(self.meter.report(examples * trainer.accumulate_grad_batches))

        def state_dict(self):
            return self.meter.state_dict()

        def load_state_dict(self, state_dict):
            self.meter.load_state_dict(state_dict)

    return NoiseCallback()


def trainer_callback(every: int = 100, span: float = 200.0):
    """A transformers.TrainerCallback.

    span: as `NoiseMeter` takes it.  An epoch's last micro-batch counts as one of full size.
    Callbacks see a step's last micro-batch only after clipping: it is left out, unless
    max_grad_norm is 0, so that clipping needs three micro-batches a step.  Checkpoints do not hold
    the averages, which start anew.  Raises ValueError in training, as `NoiseMeter.step`, for fewer.
    """
    from transformers import TrainerCallback

    class NoiseCallback(TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, optimizer=None, **kwargs):
            scaler = getattr(optimizer, "scaler", None)
            self.meter = NoiseMeter(model, args.train_batch_size, span, scaler)

        def on_substep_end(self, args, state, control, **kwargs):
            self.meter.micro_batch(scale=1 / args.gradient_accumulation_steps)

        def on_pre_optimizer_step(self, args, state, control, **kwargs):
            if not args.max_grad_norm:
                self.on_substep_end(args, state, control)

        def on_step_end(self, args, state, control, **kwargs):
            self.meter.step()  # reads no `.grad`, so that it may come after the optimiser's step
            if state.global_step % every == 0:
                print(self.meter.estimate())

        def on_train_end(self, args, state, control, **kwargs):
            print(self.meter.report(args.train_batch_size * args.gradient_accumulation_steps))

    return NoiseCallback()
