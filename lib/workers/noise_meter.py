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
of single examples' gradients, and G their mean (McCandlish et al. 2018, equation 2.9).  What two
micro-batches add to `.grad` are two gradients with the same mean and independent noise.  So their
inner product estimates |G|^2, and half their squared distance estimates tr(Sigma) over the examples
of one, both without bias (`of_micro_batches`).  Both are averaged over steps, each by itself, since
a mean of ratios would be biased; the interval comes from their scatter (`Averages`).

Training with `micro_batch` is the same as without, to the last bit.  Memory: a copy of the
gradient, from a step's first micro-batch to `step()`, or none with `sketch=4096`: random sums of
the gradient's entries are kept instead, which scatter a little more.  Nothing waits for a graphics
processor but a loss scaler that is asked for its scale.

A step in which a gradient is not finite is left out, and so is a later step of fewer than two
micro-batches; `skipped` counts them.  Several processes: each has part of the gradient, so that
other equations hold; refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace

import torch
from torch import Tensor, nn

LEVEL = 0.9  # of intervals
MOST = 2**40  # examples
MOST_STEPS = 2**62
CHUNK = 2**22  # entries of a gradient taken at once, so that little memory is needed besides
KEPT = 16  # steps whose sums wait to be read, so that no step waits for its own
MOST_FREEDOM = 1e5  # of Student's t; beyond, it is the normal distribution but for 2e-5
NAMED = {2: "half", 3: "a third of", 4: "a quarter of", 5: "a fifth of"}
CAVEATS = """\
Steps are taken to be proportional to 1 + noise scale / batch size, with the best learning rate at
each size. What to know before you trust it:
- Curvature is left out: on six searched curves the critical batch size was 0.4 to 2.4 times it.
- Adam: this is the noise of the plain gradient, not of rescaled steps; an order of magnitude.
- Clipping: call micro_batch() before it; where most steps are clipped, the formula does not hold.
- BatchNorm ties the examples of a micro-batch together, which the estimate does not know.
- Lag: it is an average of the last {span:.0f} steps or so; noise scales mostly rise in training."""


# --- averages and their intervals -----------------------------------------------------------------


def fieller(
    trace: float, square: float, covariance: tuple[float, float, float], quantile: float
) -> tuple[float, float]:
    """All r >= 0 for which trace - r square is at most `quantile` standard errors from zero
    (Fieller 1954), as (low, high).

    trace, square: normal around what they estimate; covariance: variance of trace, covariance,
    variance of square. high is infinite where square is not clear of zero, and low zero where trace
    is not.
    """
    square = max(square, 0.0)  # what it estimates is no less
    a = square**2 - quantile**2 * covariance[2]
    b = trace * square - quantile**2 * covariance[1]
    c = trace**2 - quantile**2 * covariance[0]
    root = math.sqrt(max(b**2 - a * c, 0.0))
    low = c / (b + root) if trace > 0 and c > 0 and b + root > 0 else 0.0
    return low, (b + root) / a if a > 0 else math.inf


def student(share: float, freedom: float) -> float:
    """Student's t below which `share`, from one half to 1, of the distribution lies; freedom may be
    a fraction.
    """
    freedom = min(freedom, MOST_FREEDOM)
    low, high = 0.0, math.pi / 2  # of the angle whose tangent is t / sqrt(freedom)
    for _ in range(60):
        middle = (low + high) / 2
        inside = _incomplete_beta(math.sin(middle) ** 2, 0.5, freedom / 2)
        low, high = (middle, high) if (1 + inside) / 2 < share else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its power series."""
    if x > 0.5:
        return 1 - _incomplete_beta(1 - x, b, a)
    term = total = 1.0
    k = 0
    while term > 1e-17 * total:
        term *= x * (a + b + k) / (a + 1 + k)
        total += term
        k += 1
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    power = a * math.log(x) + b * math.log1p(-x) if x > 0 else -math.inf
    return math.exp(power - log_beta) / a * total


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
        return self.trace / self.square if self.square > 0 else math.inf

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
    trace: float = 0.0
    square: float = 0.0
    last: tuple[float, float] | None = None
    scatter: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def finite(self) -> bool:
        return all(map(math.isfinite, (self.trace, self.square, *self.scatter)))

    @property
    def decay(self) -> float:
        return (self.span - 1) / (self.span + 1)

    def after(self, trace: float, square: float) -> Averages:
        """With one more step."""
        scatter = tuple(self.decay**2 * s for s in self.scatter)
        if self.last is not None:
            x, y = trace - self.last[0], square - self.last[1]
            scatter = tuple(s + p / 2 for s, p in zip(scatter, (x * x, x * y, y * y), strict=True))
        return replace(
            self,
            steps=self.steps + 1,
            trace=self.decay * self.trace + trace,
            square=self.decay * self.square + square,
            last=(trace, square),
            scatter=scatter,
        )

    def estimate(self, level: float = LEVEL) -> Estimate:
        """Averages with a `level` interval of their ratio, by Fieller's theorem with Student's
        quantile.
        """
        n, r = self.steps, self.decay
        if n == 0:
            return Estimate(math.nan, math.nan, 0.0, math.inf, 0, self.span)
        weights, squares = _series(r, n), _series(r**2, n)
        trace, square = self.trace / weights, self.square / weights
        if n == 1:
            return Estimate(trace, square, 0.0, math.inf, 1, self.span)
        differences = _series(r**2, n - 1)
        covariance = tuple(s / differences * squares / weights**2 for s in self.scatter)
        # Neighbouring differences share a step
        freedom = differences**2 / _series(r**4, n - 1) / 1.5
        quantile = student((1 + level) / 2, freedom)
        return Estimate(trace, square, *fieller(trace, square, covariance, quantile), n, self.span)

    @classmethod
    def saved(cls, state: object) -> Averages:
        """Those that a saved state holds, as `asdict` gave them.

        Raises ValueError naming the field if it holds none.
        """
        _require_keys("averages", state, [field.name for field in fields(cls)])
        _require_whole("steps", state["steps"], 0, MOST_STEPS)
        for name, length in {"span": 1, "trace": 1, "square": 1, "last": 2, "scatter": 3}.items():
            value = state[name]
            numbers = [value] if length == 1 else value if isinstance(value, tuple | list) else []
            fine = len(numbers) == length and all(map(_is_finite, numbers))
            early = name == "last" and value is None and state["steps"] == 0
            allowed = f"finite numbers, {length} of them; load another checkpoint"
            _require(fine or early, name, value, allowed)
        return cls(**state)


def _series(ratio: float, terms: int) -> float:
    """1 + ratio + ... , so many terms."""
    return (1 - ratio**terms) / (1 - ratio)


# --- what an estimate means -----------------------------------------------------------------------


def saving(noise_scale: float, batch_size: float) -> float:
    """The share of the steps that a batch twice as large saves, if steps are proportional to
    1 + noise_scale / batch_size.
    """
    return 0.5 if math.isinf(noise_scale) else noise_scale / (2 * (noise_scale + batch_size))


def meaning(found: Estimate, batch_size: int) -> str:
    """A sentence on what an estimate means for this batch size, in examples a step."""
    least, most = (f"{100 * saving(scale, batch_size):.0f}" for scale in (found.low, found.high))
    if found.low == 0 and found.unbounded:
        return "noise scale unknown yet: it takes more steps, or more examples in each"
    if found.unbounded:
        return (
            f"noise hides the gradient: the noise scale is at least {_brief(found.low)} examples; "
            f"at {batch_size:,} doubling should save {least} to {most} % of the steps"
        )
    scale = found.noise_scale
    if scale == 0:
        return "no noise: all micro-batches have the same gradient"
    interval = f"{_brief(scale)}, {_brief(found.low)}–{_brief(found.high)}"
    share = saving(scale, batch_size)
    return (
        f"at {batch_size:,} you are at {_portion(batch_size / scale)} the noise scale ({interval}):"
        f" doubling should still save {100 * share:.0f} % of the steps ({least}–{most} %), for "
        f"{100 * (1 - 2 * share):.0f} % more examples"
    )


def _brief(number: float) -> str:
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 100 else f"{number:.3g}"


def _portion(ratio: float) -> str:
    """0.33: a third of; 0.04: 1/25 of; 1: about; 2.5: 2.5 times."""
    if abs(math.log(ratio)) < 0.1:
        return "about"
    parts = round(1 / ratio)
    if parts > max(NAMED):
        return f"1/{parts:,} of"
    near = parts in NAMED and abs(parts * ratio - 1) < 0.1
    return NAMED[parts] if near else f"{ratio:.2g} times"


# --- the meter ------------------------------------------------------------------------------------


def of_micro_batches(
    squares: Sequence[float], inner: float, examples: Sequence[int], scales: Sequence[float]
) -> tuple[float, float]:
    """Unbiased estimates of tr(Sigma) and |G|^2 from what n micro-batches add to a gradient.

    squares [n]: |d_i|^2 of what each adds, d_i = scales_i g_i, g_i the mean gradient of its
    examples_i; inner: the sum of <d_i, d_j> over the pairs.  |G|^2 is the mean inner product of
    pairs of g, and tr(Sigma) comes from their mean squared distance; a pair weighs scales_i
    scales_j, so that the sums need no more than squares and inner.
    """
    total = sum(scales)
    weights = [scale * (total - scale) for scale in scales]
    pairs = sum(weights)  # each pair counts twice
    square = 2 * inner / pairs
    lengths = sum(w * s / scale**2 for w, s, scale in zip(weights, squares, scales, strict=True))
    inverse = sum(w / b for w, b in zip(weights, examples, strict=True))
    return (lengths - pairs * square) / inverse, square


class NoiseMeter:
    """Listens to the gradients of a model that one process trains.

    model: whose parameters' `.grad` are read; frozen ones, and those without a gradient, add
    nothing.  examples: in a micro-batch, of which its gradient is the mean.  scale: by what that
    mean is multiplied: 1 if a micro-batch's loss is a mean, 1 / micro-batches if it is divided by
    their number.  span: of the averages, in steps; longer is surer, and lags more.  scaler: the
    torch.amp.GradScaler, if there is one.  sketch: how many random sums of the gradient's entries
    are kept instead of a copy of it, 8 bytes each; 0: a copy.

    Gradients are zero where a step begins.  In bfloat16, what is measured is what `.grad` holds,
    rounding and all.  Raises ValueError naming field, value and what is allowed.
    """

    def __init__(
        self,
        model: nn.Module,
        examples: int,
        scale: float = 1.0,
        span: float = 200.0,
        scaler: torch.amp.GradScaler | None = None,
        sketch: int = 0,
    ):
        _require(isinstance(model, nn.Module), "model", model, "a torch.nn.Module")
        _require_whole("examples", examples, 1, MOST)
        _require_positive("scale", scale)
        fine = _is_finite(span) and 1 < span <= 10**9
        _require(fine, "span", span, "a number of steps above 1, up to 10**9")
        fine = scaler is None or callable(getattr(scaler, "get_scale", None))
        _require(fine, "scaler", scaler, "None or a torch.amp.GradScaler")
        _require_whole("sketch", sketch, 0, CHUNK)
        self.model, self.examples, self.scale = model, examples, scale
        self.scaler, self.sketch = scaler, sketch
        self.averages, self.skipped, self.begun = Averages(float(span)), 0, 0
        self.waiting: list[_Step] = []
        self.under_way: _Step | None = None

    @torch.no_grad()
    def micro_batch(self, examples: int | None = None, scale: float | None = None) -> None:
        """Take what a backward pass has added to the gradients, before anything else changes them.

        examples, scale: of this micro-batch, if they are not those of all: a last one of 20 after
        others of 32, say, whose loss is a mean and not divided, has examples=20.  Raises ValueError
        for values that are not allowed, for a gradient that is sparse or complex, and with several
        processes.
        """
        examples = self.examples if examples is None else examples
        scale = self.scale if scale is None else scale
        _require_whole("examples", examples, 1, MOST)
        _require_positive("scale", scale)
        gradients = self._gradients()
        if self.under_way is None:
            _require_one_process()
            self.under_way = _Step(self._loss_scale())
        step = self.under_way
        now = {0: self._sketched(gradients)} if self.sketch else gradients
        step.take(now, examples, scale * step.loss_scale)

    def backward_in_parts(
        self, loss: Callable[[object], Tensor], batch: object, parts: int = 2
    ) -> Tensor:
        """Backward passes of the parts of a batch, whose gradients add up to the whole batch's.

        loss: of a part, the mean over its examples.  batch: a tensor, or tuples, lists and
        dictionaries of tensors, all with the examples along their first dimension; what is no
        tensor is given to each part as it is.  Parts are as equal as can be, and each one's loss
        counts by its share of the examples.  Returns the batch's mean loss, detached.

        The gradient is that of one backward pass on the whole batch, but for rounding, if the loss
        is a mean over examples and the model treats them one by one.  BatchNorm does not: in
        training it then normalises by a part's statistics, and updates its running ones once a
        part.  Dropout draws other masks.  A mean over tokens is none over examples where their
        numbers differ.  Raises ValueError for a batch that has no such parts.
        """
        sizes = {len(x) if x.dim() else 0 for x in _tensors(batch)}
        _require(len(sizes) == 1, "batch", sorted(sizes), "tensors of one length")
        (total,) = sizes
        _require_whole("parts", parts, 2, max(total, 2))
        _require(total >= parts, "batch", total, f"at least {parts} examples, one for each part")
        ends = [total * k // parts for k in range(parts + 1)]
        mean = 0.0
        for start, end in zip(ends, ends[1:]):
            share = (end - start) / total
            part = loss(_part(batch, start, end))
            shape = list(part.shape) if isinstance(part, Tensor) else part
            _require(shape == [], "loss", shape, "one number in a tensor, the examples' mean")
            part = part * share
            (part if self.scaler is None else self.scaler.scale(part)).backward()
            self.micro_batch(end - start, self.scale * share)
            mean = mean + part.detach()
        return mean

    def step(self) -> None:
        """The micro-batches since the last call were a step's; before optimizer.step().

        Raises ValueError if the first step has fewer than two of them; a later one is left out.
        """
        step, self.under_way = self.under_way, None
        count = len(step.squares) if step else 0
        first = not (self.averages.steps or self.skipped or self.waiting)
        _require(
            count >= 2 or not first,
            "micro-batches",
            count,
            "at least 2 a step: call micro_batch() after each backward, or backward_in_parts()",
        )
        self.begun += 1
        if count < 2:
            self.skipped += 1
            return
        step.before = {}
        self.waiting.append(step)
        self._read(but=KEPT)

    def estimate(self, level: float = LEVEL) -> Estimate:
        """Of the steps so far, with a `level` interval."""
        fine = _is_finite(level) and 0 < level < 1
        _require(fine, "level", level, "a number in (0, 1)")
        self._read()
        return self.averages.estimate(level)

    def report(self, batch_size: int) -> str:
        """What the estimate means for a batch of so many examples a step, and what to know."""
        _require_whole("batch_size", batch_size, 1, MOST)
        found = self.estimate()
        sentence = meaning(found, batch_size)
        left_out = f", {self.skipped} left out" if self.skipped else ""
        return f"{sentence}\n({found.steps} steps{left_out})\n{CAVEATS.format(span=found.span)}"

    def state_dict(self) -> dict:
        """All that the next estimate depends on; between steps."""
        self._read()
        return {"averages": asdict(self.averages), "skipped": self.skipped, "begun": self.begun}

    def load_state_dict(self, saved: dict) -> None:
        """Go on from `state_dict`.

        Raises ValueError, and changes nothing, for what is none, and if its span is another.
        """
        _require_keys("saved", saved, ("averages", "skipped", "begun"))
        for name in ("skipped", "begun"):
            _require_whole(name, saved[name], 0, MOST_STEPS)
        averages, span = Averages.saved(saved["averages"]), self.averages.span
        _require(averages.span == span, "span", span, f"the checkpoint's, {averages.span}")
        self.averages, self.skipped, self.begun = averages, saved["skipped"], saved["begun"]
        self.waiting, self.under_way = [], None

    def _gradients(self) -> dict[int, Tensor]:
        """By the parameter's number."""
        pairs = enumerate(self.model.parameters())
        found = {i: p.grad for i, p in pairs if p.grad is not None}
        for gradient in found.values():
            dense = gradient.layout == torch.strided and gradient.is_floating_point()
            _require(dense, "gradient", gradient.layout, "dense and real")
        return found

    def _loss_scale(self) -> float:
        scale = 1.0 if self.scaler is None else self.scaler.get_scale()
        _require_positive("scaler", scale)
        return scale

    def _sketched(self, gradients: dict[int, Tensor]) -> Tensor:
        """Sums [sketch] of the gradient's entries with random signs, drawn anew each step.

        They keep inner products in expectation (Alon, Matias and Szegedy 1999).  Rows of `sketch`
        entries are added up, each with signs of its own: a window of twice as many, at a random
        place.
        """
        random = torch.Generator().manual_seed(self.begun)
        width, sums = self.sketch, None
        signs = 2.0 * torch.randint(0, 2, (2 * width,), generator=random) - 1
        for i, parameter in enumerate(self.model.parameters()):
            rows = -(-parameter.numel() // width)
            # Drawn whether or not there is a gradient, so that all micro-batches have the same
            places = torch.randint(0, 2 * width, (rows,), generator=random)
            if i not in gradients:
                continue
            gradient = gradients[i]
            where = gradient.device
            windows = torch.stack([signs, -signs]).to(where).unfold(1, width, 1)
            places, sums = places.to(where), _zeros(width, where) if sums is None else sums
            for k, piece in enumerate(gradient.reshape(-1).split(CHUNK // width * width)):
                table = nn.functional.pad(_wide(piece), (0, -len(piece) % width)).view(-1, width)
                own = places[k * (CHUNK // width) :][: len(table)]
                sums += (table * windows[own // width, own % width]).sum(0).to(sums)
        return _zeros(width, torch.device("cpu")) if sums is None else sums

    def _read(self, but: int = 0) -> None:
        """Take the steps that wait into the averages, all but the last so many."""
        while len(self.waiting) > but:
            step = self.waiting.pop(0)
            after = self.averages.after(*step.estimates())
            # Not finite: loss scaling has overflowed, and no step is taken
            self.averages = after if after.finite else self.averages
            self.skipped += not after.finite


class _Step:
    """What a step's micro-batches have added, so far."""

    def __init__(self, loss_scale: float):
        self.loss_scale = loss_scale
        self.before: dict[int, Tensor] = {}  # gradients after the last micro-batch, flat
        self.squares: list[Tensor] = []  # |d_i|^2
        self.inners: list[Tensor] = []  # <d_1 + ... + d_(i - 1), d_i>
        self.examples: list[int] = []
        self.scales: list[float] = []

    def take(self, now: dict[int, Tensor], examples: int, scale: float) -> None:
        """Accumulated gradients, by their parameters' numbers, after one more micro-batch."""
        flat = {i: g.reshape(-1) for i, g in now.items()}
        where = next(iter(flat.values())).device if flat else torch.device("cpu")
        square, inner = _zeros((), where), _zeros((), where)
        for i, gradient in flat.items():
            if i not in self.before:
                for piece in gradient.split(CHUNK):
                    square += _wide(piece).square().sum().to(square)
                self.before[i] = gradient.clone()
                continue
            for piece, old in zip(gradient.split(CHUNK), self.before[i].split(CHUNK)):
                old = _wide(old)
                added = _wide(piece) - old
                square += added.square().sum().to(square)
                inner += (added * old).sum().to(inner)
            self.before[i].copy_(gradient)
        self.squares.append(square)
        self.inners.append(inner)
        self.examples.append(examples)
        self.scales.append(scale)

    def estimates(self) -> tuple[float, float]:
        squares, inner = [s.item() for s in self.squares], sum(i.item() for i in self.inners)
        return of_micro_batches(squares, inner, self.examples, self.scales)


def _zeros(shape: int | tuple, where: torch.device) -> Tensor:
    """float64, or float32 on a device that has none, as Apple's."""
    wide = torch.float32 if where.type == "mps" else torch.float64
    return torch.zeros(shape, dtype=wide, device=where)


def _wide(x: Tensor) -> Tensor:
    """In single precision at least, since squares of half precision overflow."""
    return x if x.dtype == torch.float64 else x.float()


def _tensors(batch: object) -> list[Tensor]:
    if isinstance(batch, Tensor):
        return [batch]
    values = batch.values() if isinstance(batch, dict) else batch
    nested = isinstance(batch, dict | tuple | list)
    return [tensor for value in values for tensor in _tensors(value)] if nested else []


def _part(batch: object, start: int, end: int) -> object:
    """The examples from start to end of a batch, which keeps its form."""
    if isinstance(batch, Tensor):
        return batch[start:end]
    if isinstance(batch, dict):
        return {key: _part(value, start, end) for key, value in batch.items()}
    if isinstance(batch, tuple | list):
        values = [_part(value, start, end) for value in batch]
        named = hasattr(batch, "_fields")
        return type(batch)(*values) if named else type(batch)(values)
    return batch


# --- refusals -------------------------------------------------------------------------------------


def _require(fine: object, field: str, value: object, allowed: str) -> None:
    if not fine:
        raise ValueError(f"{field}: {value!r} is not allowed; it must be {allowed}")


def _is_finite(value: object) -> bool:
    """Whether it is a finite Python number; truth values are none."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value)


def _require_whole(field: str, value: object, least: int, most: int) -> None:
    fine = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    _require(fine, field, value, f"a whole number from {least} to {most}")


def _require_positive(field: str, value: object) -> None:
    _require(_is_finite(value) and value > 0, field, value, "a positive finite number")


def _require_keys(field: str, saved: object, names: Sequence[str]) -> None:
    allowed = "what state_dict() gives; load another checkpoint"
    _require(isinstance(saved, dict), field, saved, allowed)
    differ = sorted(map(str, set(saved) ^ set(names)))
    _require(not differ, field, f"with or without {', '.join(differ[:5])}", allowed)


def _require_one_process() -> None:
    meet = torch.distributed.is_available() and torch.distributed.is_initialized()
    count = torch.distributed.get_world_size() if meet else 1
    _require(count == 1, "processes", count, "1; DistributedDataParallel has hooks for it")
