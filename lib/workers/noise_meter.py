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

Without it, a batch is split in two.  The gradient is the whole batch's but for rounding:

    for batch in loader:
        optimizer.zero_grad()
        meter.backward_in_parts(lambda part: loss(model(part[0]), part[1]), batch)
        meter.step()
        optimizer.step()

With DistributedDataParallel, whose worker's gradients are compared, one backward pass a step is
enough; the meter finds it around the model.  FSDP's gradients are in parts, and are refused.

What is estimated is the simple noise scale tr(Sigma) / |G|^2 in examples: Sigma is the covariance
of single examples' gradients, and G their mean (McCandlish et al. 2018, equation 2.9).  What
micro-batches add to `.grad` are gradients with the same mean and independent noise, so that their
lengths and that of their sum tell both without bias (`trace_and_square`).  Both are averaged over
steps, each by itself, since a mean of ratios would be biased; the interval comes from their scatter
(`Averages`).

Training is the same as without, to the last bit.  A hook on each parameter reads what a backward
pass is about to add, and at the pass's end its sum is read, before clipping; nothing is copied but
a few entries, and several processes exchange five numbers a step.  Nothing waits for a graphics
processor but a loss scaler that is asked for its scale.  Once a job has begun, nothing is raised:
what cannot be measured, or fails, is warned of once, and no more is measured.  So it is where
others change gradients between a step's micro-batches (SAM, a GAN), or never zero them, which a few
entries of each show some steps late.

Lightning and Hugging Face's Trainer have callbacks, which print an estimate each `every` steps, and
what it means at the end of training; in between, it is in their `meter`.  They count each batch's
examples along the first dimension of its first tensor.

    trainer = Trainer(accumulate_grad_batches=4, callbacks=[lightning_callback()])

    arguments = TrainingArguments(gradient_accumulation_steps=4, per_device_train_batch_size=32)
    Trainer(model, arguments, train_dataset=examples, callbacks=[trainer_callback()]).train()

A step in which a gradient is not finite is left out, and so is a later step of fewer than two
micro-batches; `skipped` counts them.
"""

import functools
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
EXACT = 2**20  # entries whose squares single precision adds up to within a millionth
KEPT = 16  # steps whose sums wait to be read, so that no step waits for its own
UNCHANGED = "zeroed before a step's first backward, and left alone to its last"
IN_GRAD = "in .grad after each backward (no optimiser within it)"
CAVEATS = """\
Steps are taken to be proportional to 1 + noise scale / batch size, with the best learning rate at
each size. What to know before you trust it:
- Curvature is left out: on six searched curves the critical batch size was 0.4 to 2.4 times it.
- Adam: this is the noise of the plain gradient, not of rescaled steps; an order of magnitude.
- Clipping: it is of gradients before it; where most steps are clipped, the formula does not hold.
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
    their ratio, in examples; refusal: why there is none.
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
        """tr(Sigma) / |G|^2 in examples; infinite where noise hides the gradient."""
        return ratio(self.trace, self.square)

    @property
    def unbounded(self) -> bool:
        """Whether |G|^2 is not clear of zero: more steps, a longer span or more examples a step are
        needed.
        """
        return math.isinf(self.high)

    def __str__(self) -> str:
        if self.refusal:
            return f"noise scale not measured, because {self.refusal}"
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


def harmless(method: Callable) -> Callable:
    """A listener's method that never stops a job: if it fails, the listener is switched off."""

    @functools.wraps(method)
    @torch.no_grad()
    def guarded(listener, *arguments, **named):
        try:
            if not listener.refusal:
                return method(listener, *arguments, **named)
        except Exception as error:
            listener.refuse(error)

    return guarded


class NoiseMeter:
    """Listens to the gradients of a model that one process trains, or several with
    DistributedDataParallel.

    model: whose parameters' gradients are read; those without one add nothing, and of complex ones
    both parts count.
    examples: in a micro-batch, of which its gradient is the mean, where `micro_batch` is told none.
    span: of the averages, in steps; longer is surer, and lags more.
    scaler: the torch.amp.GradScaler, if there is one, by whose scale gradients are multiplied.

    Gradients are zero where a step begins.  Raises ValueError naming field, value and what is
    allowed; the methods below raise nothing, and refuse what they cannot measure (`refusal`).
    """

    total: int | None = None  # as of `trace_and_square`
    width = 0  # random sums of a gradient that is not what is exchanged

    def __init__(
        self,
        model: nn.Module,
        examples: int | None = None,
        span: float = 200.0,
        scaler: torch.amp.GradScaler | None = None,
    ):
        require(isinstance(model, nn.Module), "model", type(model).__name__, "an nn.Module")
        require(examples is None or examples >= 1, "examples", examples, "a number from 1")
        require(1 < span < math.inf, "span", span, "a number above 1")
        self.model, self.examples, self.scaler = model, examples, scaler
        self.averages = Averages(float(span))
        self.settings = {"span": float(span)}  # that a saved state has, too
        self.waiting: list[_Step] = []  # whose sums have not been read, the oldest first
        self.under_way: _Step | None = None
        self.refusal = ""  # why there is no estimate
        self.largest = 0  # examples of a step of all workers
        self.fewest = 0  # micro-batches of a step so far; in earlier ones no sum is needed
        # Whose workers' gradients are averaged; None: a single process
        self.ddp = model if isinstance(model, nn.parallel.DistributedDataParallel) else None
        self.watched: set[nn.Parameter] = set()
        self.watch()

    def watch(self) -> None:
        """Hear each parameter's gradient before a backward pass adds it."""
        for p in self.model.parameters():
            if p.requires_grad and p.numel() and p not in self.watched:
                self.watched.add(p)
                p.register_hook(functools.partial(hear, weakref.ref(p), weakref.ref(self)))

    @property
    def skipped(self) -> int:
        """Steps that were left out, of those that have been read."""
        return self.averages.skipped

    @property
    def begun(self) -> int:
        """All steps so far."""
        return self.averages.steps + self.skipped + len(self.waiting)

    @property
    def shared(self) -> bool:
        """Whether all workers take every step: none leaves early, as in join()."""
        return bool(self.ddp) and not self.ddp._join_config.enable

    def estimate(self) -> Estimate:
        """Of the steps so far; none, which says why, if they cannot be measured."""
        self._read()
        if self.refusal:
            return Estimate(refusal=self.refusal)
        return self.averages.estimate()

    def refuse(self, why: object) -> None:
        """Measure no more; warn the first time."""
        if not self.refusal:
            self.refusal = str(why) if isinstance(why, ValueError | str) else repr(why)
            warnings.warn(f"noise scale not measured, because {self.refusal}", stacklevel=2)

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

    def _read(self, but: int = 0) -> None:
        """Take the steps that wait into the averages, all but the last so many."""
        while len(self.waiting) > but:
            found = math.nan, math.nan
            try:
                found = self.waiting.pop(0).estimates(self.total)
            except Exception as error:
                self.refuse(error)
            self.averages = self.averages.after(*found)

    @harmless
    def hear(self, p: nn.Parameter, gradient: Tensor) -> None:
        """What a backward pass is about to add to p's gradient."""
        self.under_way = self.under_way or self.new_step()
        if self.under_way.begins(p, gradient):
            after_backward(self.sum_up)

    @harmless
    def sum_up(self) -> None:
        """At the end of a backward pass, before others clip what it has come to."""
        step, ddp = self.under_way, self.ddp
        step.look()
        if ddp.require_backward_grad_sync if ddp else len(step.sizes) + 1 >= self.fewest:
            gradients = [p.grad for p in (self.model.parameters() if ddp else step.left)]
            step.whole = squared(*[gradient for gradient in gradients if gradient is not None])

    @harmless
    def micro_batch(self, examples: int | None = None, scale: float = 1.0) -> None:
        """Take what a backward pass has added to the gradients.

        examples: of this micro-batch, if it has another number: a last one of 20 after others of
        32, say, has examples=20.
        scale: by what the mean over them is multiplied.  The noise scale is the same without, if
        all are multiplied alike, as where a loss is divided by the number of micro-batches.
        """
        size = self.examples if examples is None else examples
        require((size or 0) >= 1, "examples", size, "a number from 1")
        allowed = "1, or the model a DistributedDataParallel (not FSDP), outside its join()"
        require(processes() == 1 or self.shared, "processes", processes(), allowed)
        require(self.under_way and self.under_way.lengths, "gradients", None, IN_GRAD)
        self.under_way.take(size, scale)

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
        numbers differ.  A batch that has no such parts is not split.
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
        """The micro-batches since the last call were a step's; before optimizer.step().

        scale: by what all of their gradients were multiplied, if it was not told of each.

        A first step of fewer than two of them, of all workers, is refused; a later one is left out.
        """
        step, self.under_way = self.under_way or self.new_step(), None
        if not self.complete(step):
            step.sums[0] = math.nan  # sent all the same: other workers wait for it
        step.end(scale, self.ddp if self.shared else None)
        self.waiting.append(step)
        self._read(but=KEPT)
        self.watch()

    def new_step(self) -> "_Step":
        device = next(self.model.parameters()).device
        return _Step(scale_of(self.scaler), device, self.width)

    @harmless
    def complete(self, step: "_Step") -> bool:
        """Whether it has two gradients or more; a first step must."""
        count = len(step.sizes)
        self.fewest = min(self.fewest, count) if self.begun else count
        count *= processes() if self.shared else 1
        call = (
            "at least 2 a step: call micro_batch() after each backward, or backward_in_parts()"
        )
        require(count >= 2 or self.begun, "micro-batches", count, call)
        self.largest = max(self.largest, sum(step.sizes) * count // max(len(step.sizes), 1))
        return count >= 2 and (step.whole is not None or self.width > 0)

    def report(self, batch_size: int | None = None) -> str:
        """What the estimate means for a batch of so many examples a step, None: the largest so far,
        and what to know.
        """
        found = self.estimate()
        if not found.steps:
            return str(found)
        left_out = f", {self.skipped} left out" if self.skipped else ""
        means = meaning(found, batch_size or self.largest)
        return f"{means}\n({found.steps} steps{left_out})\n{CAVEATS.format(span=found.span)}"


class _Step:
    """Squared lengths of what a step's micro-batches have added to the gradient.

    A micro-batch adds scale times its mean gradient.  With weights scale^2, unequal ones come to
    the same two equations as so many equal ones: their lengths' mean, the number of micro-batches
    and the harmonic mean of their examples are weighted so.
    """

    def __init__(self, loss_scale: float, device: torch.device, width: int):
        self.loss_scale = loss_scale
        self.lengths: dict[nn.Parameter, Tensor] = {}  # of what this micro-batch adds
        self.left: dict[nn.Parameter, Tensor] = {}  # a few entries of gradients, after the last
        self.met: list[Tensor] = []  # and before this one, each beside what they should be
        self.task = -1  # the backward pass that is under way
        self.versions: dict[nn.Parameter, int] = {}
        self.sizes: list[int] = []  # of micro-batches
        # Sums over them, and over workers: squared lengths; gradients that others changed; scales,
        # their squares, these over the sizes; random sums of the whole gradient
        self.sums = torch.zeros(5 + width, dtype=exact(device), device=device)
        self.whole: Tensor | None = None  # squared length of the whole gradient

    def begins(self, p: nn.Parameter, gradient: Tensor) -> bool:
        """Whether a backward pass begins with p's gradient."""
        require_dense(gradient)
        once = "1 a micro-batch: call micro_batch() after each, or add the losses"
        require(p not in self.lengths, "backward passes", 2, once)
        same = self.versions.setdefault(p, p._version) == p._version
        require(same, "parameters", "changed within a step", "left alone until step()")
        self.lengths[p] = norms(gradient)
        if p.grad is not None or p in self.left:
            zero = torch.zeros_like(few(gradient))
            self.met += few(zero if p.grad is None else p.grad), self.left.get(p, zero)
        before, self.task = self.task, torch._C._current_graph_task_id()
        return self.task != before

    def look(self) -> None:
        """At the end of a backward pass."""
        for p in self.lengths:
            require(p.grad is not None, "gradients", None, IN_GRAD)
            self.left[p] = few(p.grad)

    def take(self, examples: int, scale: float) -> None:
        """A micro-batch ends."""
        self.sums[0] += summed(list(self.lengths.values())).to(self.sums.device)
        if self.met:
            changed = differs(on_one_device(self.met[::2]), on_one_device(self.met[1::2]))
            self.sums[1] += changed.to(self.sums.device)
        for k, number in enumerate((scale, scale**2, scale**2 / examples), 2):
            self.sums[k] += number
        self.lengths, self.met = {}, []
        self.sizes.append(examples)

    def end(self, scale: float, ddp: nn.parallel.DistributedDataParallel | None) -> None:
        """Only lengths are kept, and added up over the workers."""
        self.left, self.met, self.versions = {}, [], {}
        self.loss_scale *= scale
        self.workers, self.work = 1, None
        if ddp:
            group = ddp.process_group
            self.workers = torch.distributed.get_world_size(group)
            self.work = torch.distributed.all_reduce(self.sums, group=group, async_op=True)

    def estimates(self, total: int | None) -> tuple[float, float]:
        """tr(Sigma) and |G|^2.  Raises ValueError if others have changed the gradients."""
        if self.work:
            self.work.wait()
        small, altered, scales, weights, inverses = self.sums[:5].tolist()
        require(not altered, "gradients", "changed by others, or never zeroed", UNCHANGED)
        if math.isnan(small):
            return small, small
        big = squared(self.sums[5:] / self.workers) if self.whole is None else self.whole
        small, big = (float(square) / self.loss_scale**2 for square in (small, big))
        mean = (scales / self.workers) ** 2
        equal = scales**2 / weights
        return trace_and_square(small / weights, big / mean, equal, weights / inverses, total)


def squared(*tensors: Tensor) -> Tensor:
    """The sum of their squares."""
    return summed(list(map(norms, tensors)))


def norms(x: Tensor) -> Tensor:
    """Lengths of parts of x, so short that single precision is exact enough to subtract."""
    x = real(x) if x.is_complex() else x
    parts = [x] if x.numel() <= EXACT else x.flatten().split(EXACT)
    kind = torch.promote_types(x.dtype, torch.float32)
    return torch.stack([torch.linalg.vector_norm(part, dtype=kind) for part in parts])


def real(x: Tensor) -> Tensor:
    """Its entries [d], of complex ones both parts."""
    return torch.view_as_real(x.resolve_conj()).flatten() if x.is_complex() else x.flatten()


def on_one_device(tensors: Sequence[Tensor]) -> Tensor:
    """All their entries, on the first one's device."""
    return torch.cat([x.flatten().to(tensors[0].device) for x in tensors])


def exact(device: torch.device) -> torch.dtype:
    """Double precision where the device has it: Apple's have none."""
    return torch.float32 if device.type == "mps" else torch.float64


def summed(lengths: Sequence[Tensor]) -> Tensor:
    """The sum of their squares."""
    lengths = on_one_device(lengths)
    return lengths.to(exact(lengths.device)).square().sum()


def few(x: Tensor) -> Tensor:
    """A copy of a few entries, which change where all do."""
    while x.ndim > 1:
        x = x[len(x) // 2]
    return real(x.detach())[:8].clone()


def differs(now: Tensor, was: Tensor) -> Tensor:
    """Whether it has changed.  What is not a number counts as the same: its step is left out
    anyway.
    """
    return ((now != was) & (now == now)).any()


def processes() -> int:
    """How many train together, or might."""
    group = torch.distributed
    return group.get_world_size() if group.is_available() and group.is_initialized() else 1


def after_backward(call: Callable[[], None]) -> None:
    """Call it at the end of the backward pass that is under way."""
    # Twice, to come after DistributedDataParallel's, which waits for other workers
    queue = torch.autograd.Variable._execution_engine.queue_callback
    queue(lambda: queue(call))


def hear(parameter: weakref.ref, listener: weakref.ref, gradient: Tensor) -> None:
    """A parameter's hook.  Either may go."""
    p, meter = parameter(), listener()
    if p is not None and meter is not None:
        meter.hear(p, gradient)


def require_dense(gradient: Tensor) -> None:
    """Raise ValueError if the gradient is a sparse tensor."""
    allowed = "dense: give the embedding sparse=False"
    require(not gradient.is_sparse, "gradient", "a sparse tensor, of nn.Embedding", allowed)


def rows(batch: object) -> int:
    """The first dimension of a batch's first tensor; 0 without one."""
    leaves = _pytree.tree_leaves(batch)
    return next((len(x) for x in leaves if isinstance(x, Tensor) and x.ndim), 0)


class Rows:
    """Counts the rows of what a module is given, with gradients to follow.

    meter: that is told what is around the module.
    """

    def __init__(self, module: nn.Module, meter: NoiseMeter | None = None):
        self.count, self.meter = 0, meter
        add = torch.compiler.disable(self.add)
        self.handle = module.register_forward_pre_hook(add, with_kwargs=True)

    def add(self, module: nn.Module, arguments: tuple, named: dict) -> None:
        if torch.is_grad_enabled():
            self.count += rows((arguments, named))
            if self.meter:
                around = nn.parallel.DistributedDataParallel
                self.meter.ddp = getattr(around, "_active_ddp_module", None)

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
        self.meter.largest = 0

    def hear(self, call: Callable, *arguments) -> object:
        """What fails switches the meter off, and leaves training alone."""
        try:
            return call(*arguments)
        except Exception as error:
            self.meter.refuse(error)

    def tell(self, what: object) -> None:
        """Print it, once for all workers, unless there is nothing to tell."""
        first = processes() == 1 or torch.distributed.get_rank() == 0
        if first and not self.meter.refusal:
            print(what)


def lightning_callback(
    examples: int | Callable[[object], int] | None = None, every: int = 100, span: float = 200.0
):
    """A lightning.pytorch.Callback; its meter goes into checkpoints.

    examples: of a batch that holds no tensor; or a function that counts a batch's, where it is not
    the first dimension of its first tensor.
    span: as `NoiseMeter` takes it.  Needs automatic optimisation, and gradient accumulation or
    several processes (strategy "ddp").
    """
    from lightning.pytorch import Callback

    class NoiseCallback(Hearer, Callback):
        def setup(self, trainer, pl_module, stage):
            self.saved = None

        def on_train_start(self, trainer, pl_module):  # after a batch size finder
            self.begin(pl_module, span, getattr(trainer.precision_plugin, "scaler", None))
            model = trainer.strategy.model
            ddp = isinstance(model, nn.parallel.DistributedDataParallel)
            self.meter.ddp = model if ddp else None
            automatic = pl_module.automatic_optimization
            self.hear(require, automatic, "automatic_optimization", automatic, True)
            try:
                if self.saved:
                    self.meter.load_state_dict(self.saved)
            except ValueError as error:
                warnings.warn(f"the noise scale starts anew: {error}", stacklevel=2)

        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            count = examples if callable(examples) else lambda x: rows(x) or examples
            self.size = self.hear(count, batch)

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

    span: as `NoiseMeter` takes it.  Needs gradient accumulation or several processes.  A step of
    unequal micro-batches is left out, since models differ in how they weigh them.  Checkpoints do
    not hold the averages, which go on if `train` is called again.
    """
    from transformers import TrainerCallback

    class NoiseCallback(Hearer, TrainerCallback):
        rows = None

        def on_train_begin(self, args, state, control, model=None, optimizer=None, **kwargs):
            self.begin(model, span, getattr(optimizer, "scaler", None))
            if self.rows:
                self.rows.handle.remove()
            self.rows = Rows(model, self.meter)

        def on_substep_end(self, args, state, control, **kwargs):
            # No more than the loader gives, where the first dimension is another
            size = state.train_batch_size
            self.meter.micro_batch(min(self.rows.taken() or size, size))

        def on_pre_optimizer_step(self, args, state, control, **kwargs):
            self.on_substep_end(args, state, control)
            sizes = self.meter.under_way.sizes if self.meter.under_way else []
            if len(set(sizes)) > 1:
                self.meter.under_way.sums[0] = math.nan  # left out
            self.meter.step(1 / max(len(sizes), 1))

        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step % every == 0:
                self.tell(self.meter.estimate())

        def on_train_end(self, args, state, control, **kwargs):
            self.tell(self.meter.report())

    return NoiseCallback()
