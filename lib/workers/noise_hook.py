"""The gradient noise scale of a job that is running, from the gradients that its workers compute
anyway.

    dist.init_process_group("nccl")  # or gloo; two workers at least
    ddp = DistributedDataParallel(network)
    state = NoiseState(examples=32)  # that each worker's gradient is the mean of
    ddp.register_comm_hook(state, noise_hook)
    for step, (x, y) in enumerate(loader):  # of a DistributedSampler; train as ever
        optimizer.zero_grad()
        loss(ddp(x), y).backward()
        optimizer.step()
        if step % 100 == 99 and dist.get_rank() == 0:
            print(state.estimate())
            # noise scale 412 examples (5-95 %: 351 to 490), over the last 200 steps or so

With another hook, here the sparse one, which goes on as it would without this one:

    sparse = SparseState(ddp, compressor="top-k", density=0.01)
    ddp.register_comm_hook(NoiseState(examples=32, hook=sparse_hook, hook_state=sparse), noise_hook)

Before a checkpoint, `state.state_dict()`; it is the same on all workers.

What is estimated is the simple noise scale tr(Sigma) / |G|^2 in examples, of the weights of the
last steps: Sigma is the covariance of single examples' gradients, and G their mean (McCandlish et
al. 2018, equation 2.9).  Where every step obeys their theory it is the critical batch size; it
leaves out curvature and changes along a run, so that the two may lie apart by a factor, which the
book's page on the theory measures.  Where gradients shrink fast, the window's first steps outweigh
its last, and a shorter `span` lags less.  Training is the same as without, to the last bit; what is
sent in addition is two numbers a step, with a hook inside 33 kB.

Each worker's gradient, of b examples, has E|g|^2 = |G|^2 + tr(Sigma) / b, and the mean of W of them
has |G|^2 + tr(Sigma) / (W b): two equations, from which each step gives both without bias (their
appendix A.1).  Both are then averaged over steps, each by itself, since a mean of ratios would be
biased.  The noise of dropout counts as noise; batch normalisation ties examples together, which the
equations do not know.  A step in which a gradient is not finite, or which a worker without batches
only accompanies (`ddp.join()`), leaves the averages as they are; it counts as skipped.
"""

# No `from __future__ import annotations`: DistributedDataParallel reads the hook's, and strings
# will not do.
import math
from collections.abc import Callable
from dataclasses import asdict

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future

from lib import require, require_number
from lib.fields import POSITIVE, Count, Number, Whole, check
from lib.workers.hooked import require_dense, require_fields, require_scaler, scale_of
from lib.workers.noise_meter import LEVEL, MOST_STEPS, Averages, Estimate

MOST_EXAMPLES = 2**40
MOST_ENTRIES = 2**24  # of a sketch
ENTRIES = 4096
BLOCK = 1024
KEPT = 256  # steps whose sums wait to be read, so that no step waits for its own


# --- estimates ------------------------------------------------------------------------------------


def of_step(
    small: float, big: float, workers: int, examples: float, total: int | None = None
) -> tuple[float, float]:
    """Unbiased estimates of tr(Sigma) and |G|^2 from one step (McCandlish et al. 2018, appendix
    A.1).

    small: mean over the workers of |g|^2, each g the mean of `examples` single gradients (their
    harmonic mean, if shares are unequal); big: |mean over the workers of g|^2.  total: size of the
    training set from which a step's examples are drawn without replacement, G being the mean over
    all of it; None: so large that it does not matter.
    |G|^2 comes out as the mean inner product of two workers' gradients, so it may be negative.
    """
    trace = examples * workers / (workers - 1) * (small - big)
    square = (workers * big - small) / (workers - 1)
    return trace, square + (trace / total if total else 0.0)


# --- the hook -------------------------------------------------------------------------------------


class NoiseState:
    """One worker's side: the sums of steps under way, and the averages, which are the same on all
    workers.

    examples: that this worker's gradient is the mean of, with gradient accumulation (`no_sync`)
    those of all its backward passes together.  Workers may have unequal numbers.  scale: by what
    the gradient is multiplied: the number of passes if each pass's loss is a mean that is not
    divided by it.  Both may be set between steps: `state.scale = ...`. scaler: the
    torch.amp.GradScaler, if there is one, by whose scale of the step the gradient is multiplied
    besides. total: size of the training set, if examples are drawn from it without replacement
    (each epoch shuffled) and the noise scale of its own mean gradient is wanted; None: that of
    endless data. span: of the averages, in steps; longer is surer, and lags more (`Averages`).
    hook, hook_state: another hook, which averages the gradients instead of a plain all-reduce.
    sketch: how many random sums of the gradient's entries the workers add up, 8 bytes each, instead
    of measuring the mean that the hook returns, which need not be the gradients' mean (sparse
    messages send part of it, and what was left before). With random signs, drawn anew each step,
    they keep inner products in expectation (Alon, Matias and Szegedy 1999), so that estimates stay
    without bias, their scatter little more.  None: 4,096 with a hook, else 0; give 0 with a hook
    that returns the mean but for rounding, as `fp16_compress_hook` does. group: of the processes.
    seed: of the sketch, the same on all workers. Raises ValueError naming field, value and what is
    allowed; so does a single worker, who has nothing to compare, and the hook for a sparse
    gradient.
    """

    def __init__(
        self,
        examples: int,
        total: int | None = None,
        span: float = 200,
        hook: Callable[[object, dist.GradBucket], Future[Tensor]] | None = None,
        hook_state: object = None,
        sketch: int | None = None,
        scale: float = 1.0,
        group: dist.ProcessGroup | None = None,
        seed: int = 0,
        scaler: torch.amp.GradScaler | None = None,
    ):
        self.workers = dist.get_world_size(group)
        require(
            self.workers > 1,
            "workers",
            self.workers,
            "at least 2: one worker's gradient has nothing to be compared to",
        )
        if total is not None:
            check("total", total, Count(MOST_EXAMPLES))
        require_number(
            "span", span, lambda steps: 1 < steps <= 10**9, "a number of steps above 1, up to 10**9"
        )
        require(hook is None or callable(hook), "hook", hook, "None or a communication hook")
        sketch = (ENTRIES if hook else 0) if sketch is None else sketch
        check("sketch", sketch, Whole(0, MOST_ENTRIES))
        check("seed", seed, Whole(0, 2**31 - 1))
        require_scaler(scaler)
        self.examples, self.scale, self.total, self.sketch, self.seed = (
            examples,
            scale,
            total,
            sketch,
            seed,
        )
        self.scaler = scaler
        self.hook, self.hook_state, self.group = (
            hook or _mean_hook,
            hook_state if hook else group,
            group,
        )
        self.averages, self.skipped, self.begun = Averages(float(span)), 0, 0
        self.step: _Step | None = None
        self.waiting: list[_Step] = []
        self._check()

    def estimate(self, level: float = LEVEL) -> Estimate:
        """Of the steps so far, with a `level` interval; between steps, on any worker alone."""
        check("level", level, Number("(0, 1)"))
        self._read()
        return self.averages.estimate(level)

    def state_dict(self) -> dict:
        """All that the next estimate depends on; the hook inside keeps its own."""
        self._read()
        return {"averages": asdict(self.averages), "skipped": self.skipped, "begun": self.begun}

    def load_state_dict(self, saved: dict) -> None:
        """Go on from `state_dict`, with any number of workers and examples.

        Raises ValueError, and changes nothing, for what is none, and if its span is another.
        """
        require_fields("saved", saved, ("averages", "skipped", "begun"))
        for name in ("skipped", "begun"):
            check(name, saved[name], Whole(0, MOST_STEPS))
        averages = Averages.saved(saved["averages"])
        require(
            averages.span == self.averages.span,
            "span",
            self.averages.span,
            f"the checkpoint's, {averages.span}",
        )
        self.averages, self.skipped, self.begun = averages, saved["skipped"], saved["begun"]
        self.waiting = []

    def _check(self) -> None:
        check("examples", self.examples, Count(MOST_EXAMPLES))
        check("scale", self.scale, POSITIVE)

    def _read(self, but: int = 0) -> None:
        """Take the steps that wait into the averages, all but the last so many."""
        while len(self.waiting) > but:
            step = self.waiting.pop(0)
            small, big, inverse = step.sums(self.workers)
            after = self.averages.after(*of_step(small, big, self.workers, 1 / inverse, self.total))
            # Loss scaling has overflowed: no step is taken
            self.averages = after if after.finite else self.averages
            self.skipped += not after.finite


def noise_hook(state: NoiseState, bucket: dist.GradBucket) -> Future[Tensor]:
    """Average the bucket's gradients over the workers as without this hook, and listen; see
    NoiseState.
    """
    require_dense(bucket)
    if bucket.index() == 0:
        state._check()
        state.step = _Step(state, bucket.buffer().device)
        state.begun += 1
    step = state.step
    step.take(bucket.buffer())  # before the hook inside changes it
    if bucket.is_last():
        step.send(state.group)
        state.waiting.append(step)
        state._read(but=KEPT)
    future = state.hook(state.hook_state, bucket)
    return (
        future
        if state.sketch
        else future.then(lambda done: step.listen(bucket.index(), _tensor(done.value())))
    )


class _Step:
    """Squared norms of a training step's gradients, bucket by bucket."""

    # Far cheaper than a sign for each entry
    def __init__(self, state: NoiseState, device: torch.device):
        self.scale, self.examples = state.scale * scale_of(state.scaler), state.examples
        self.square = torch.zeros((), dtype=torch.float64, device=device)
        self.sketch = torch.zeros(state.sketch, dtype=torch.float64, device=device)
        self.random = (
            torch.Generator(device).manual_seed(state.seed * 2**32 + state.begun)
            if state.sketch
            else None
        )
        self.means: dict[
            int, Tensor
        ] = {}  # by bucket, so that they add up in one order on all workers
        if state.sketch:
            signs = 2.0 * self._drawn(2, 2 * state.sketch) - 1
            self.windows = torch.stack([signs, -signs]).unfold(1, state.sketch, 1)

    def _drawn(self, below: int, count: int) -> Tensor:
        return torch.randint(0, below, (count,), generator=self.random, device=self.sketch.device)

    def take(self, gradient: Tensor) -> None:
        """This worker's gradient [d], or the part of it that a bucket holds."""
        if self.random is None:
            self.square += _squared(gradient)
            return
        sums, g = len(self.sketch), gradient.float()
        rows, whole = -(-len(g) // sums), len(g) // sums
        signs = self.windows[self._drawn(2, rows), self._drawn(sums, rows)]
        self.sketch += (g[: whole * sums].view(whole, sums) * signs[:whole]).sum(0)
        left = g[whole * sums :]
        self.sketch[: len(left)] += left * signs[-1, : len(left)]

    def send(self, group: dist.ProcessGroup | None) -> None:
        """Add up over the workers: squared norm, inverse of the examples, sketch."""
        if self.random is not None:
            self.square = _squared(self.sketch)
        if not _in_backward():
            self.square.fill_(math.nan)
        inverse = torch.full_like(self.square, 1 / self.examples)
        self.sent = torch.cat([torch.stack([self.square, inverse]), self.sketch])
        self.work = dist.all_reduce(self.sent, group=group, async_op=True)

    def listen(self, index: int, mean: Tensor) -> Tensor:
        """The mean gradient of a bucket, which is passed on."""
        self.means[index] = _squared(mean)
        return mean

    def sums(self, workers: int) -> tuple[float, float, float]:
        """Mean over the workers of |g|^2, |mean g|^2, and the mean inverse of the numbers of
        examples.
        """
        self.work.wait()
        square, inverse = (self.sent[:2] / workers).tolist()
        big = (
            _squared(self.sent[2:] / workers)
            if self.random is not None
            else sum(self.means[i] for i in sorted(self.means))
        )
        return square / self.scale**2, float(big) / self.scale**2, inverse


def _in_backward() -> bool:
    """Whether a gradient is being computed: `ddp.join()` calls the hook of a worker without batches
    with zeros instead.
    """
    return torch._C._current_graph_task_id() >= 0


def _squared(x: Tensor) -> Tensor:
    """|x|^2 of x [d]: blocks in single precision, which is fast, and their sum in double, which is
    exact enough to subtract.
    """
    if x.dtype == torch.float64:
        return x.square().sum()
    whole = len(x) // BLOCK * BLOCK
    parts = x[:whole].view(-1, BLOCK), x[whole:].view(1, -1)
    return sum(
        torch.linalg.vector_norm(part, dim=1, dtype=torch.float32).double().square().sum()
        for part in parts
    )


def _mean_hook(group: dist.ProcessGroup | None, bucket: dist.GradBucket) -> Future[Tensor]:
    """What DistributedDataParallel does without a hook, to the last bit: it multiplies, where
    PyTorch's own hook divides.
    """
    buffer = bucket.buffer().mul_(1 / dist.get_world_size(group))
    return (
        dist.all_reduce(buffer, group=group, async_op=True)
        .get_future()
        .then(lambda done: _tensor(done.value()))
    )


def _tensor(value: Tensor | list[Tensor]) -> Tensor:
    return value if isinstance(value, Tensor) else value[0]
