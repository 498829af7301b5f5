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

What is estimated is what `lib.workers.noise_meter` estimates in a single process, with the workers'
gradients in the place of micro-batches': the simple noise scale tr(Sigma) / |G|^2 in examples, of
the weights of the last steps.  Where every step obeys McCandlish et al. (2018) it is the critical
batch size; it leaves out curvature and changes along a run, so that the two may lie apart by a
factor, which the book's page on the theory measures.  Where gradients shrink fast, the window's
first steps outweigh its last, and a shorter `span` lags less.  Training is the same as without, to
the last bit; what is sent in addition is two numbers a step, with a hook inside 33 kB.

The noise of dropout counts as noise; batch normalisation ties examples together, which the
equations do not know.  A step in which a gradient is not finite, or which a worker without batches
only accompanies (`ddp.join()`), leaves the averages as they are; it counts as skipped.
"""

# No `from __future__ import annotations`: DistributedDataParallel reads the hook's, and strings
# will not do.
import math
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future

from lib import require
from lib.fields import POSITIVE, Count, Whole, check
from lib.workers.noise_meter import Listener, Sketch, scale_of, squared, trace_and_square

MOST_EXAMPLES = 2**40
MOST_ENTRIES = 2**24  # of a sketch
ENTRIES = 4096
KEPT = 256  # steps whose sums wait to be read, so that no step waits for its own
SPARSE = "a sparse tensor, as of nn.Embedding(sparse=True)"


class NoiseState(Listener):
    """One worker's side: the sums of steps under way, and the averages, which are the same on all
    workers.

    examples: that this worker's gradient is the mean of, with gradient accumulation (`no_sync`)
    those of all its backward passes together.  Workers may have unequal numbers.
    total: size of the training set, if examples are drawn from it without replacement (each epoch
    shuffled) and the noise scale of its own mean gradient is wanted; None: that of endless data.
    span, scaler: as of `lib.workers.noise_meter.Listener`.
    hook, hook_state: another hook, which averages the gradients instead of a plain all-reduce.
    sketch: how many random sums of the gradient's entries the workers add up, 8 bytes each, instead
    of measuring the mean that the hook returns, which need not be the gradients' mean (sparse
    messages send part of it, and what was left before).  They keep estimates without bias, their
    scatter little more.  None: 4,096 with a hook, else 0; give 0 with a hook that returns the mean
    but for rounding, as `fp16_compress_hook` does.
    scale: by what the gradient is multiplied: the number of passes if each pass's loss is a mean
    that is not divided by it.  It and `examples` may be set between steps: `state.scale = ...`.
    group: of the processes.
    seed: of the sketch, the same on all workers.

    Raises ValueError naming field, value and what is allowed; so does a single worker, who has
    nothing to compare, and the hook for a sparse gradient.
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
        super().__init__(span, scaler)
        self.workers, self.group = dist.get_world_size(group), group
        allowed = "at least 2: one worker's gradient has nothing to be compared to"
        require(self.workers > 1, "workers", self.workers, allowed)
        self.total = check("total", total, Count(MOST_EXAMPLES) | None)
        require(hook is None or callable(hook), "hook", hook, "None or a communication hook")
        self.hook = hook or _mean_hook
        self.hook_state = hook_state if hook else group
        sketch = (ENTRIES if hook else 0) if sketch is None else sketch
        self.sketch = check("sketch", sketch, Whole(0, MOST_ENTRIES))
        self.seed = check("seed", seed, Whole(0, 2**31 - 1))
        self.examples, self.scale = examples, scale
        self._check()
        self.step: _Step | None = None

    def _check(self) -> None:
        check("examples", self.examples, Count(MOST_EXAMPLES))
        check("scale", self.scale, POSITIVE)

    def _begin(self, device: torch.device) -> None:
        """A new step."""
        self._check()
        self.step = _Step(self, self.scale * scale_of(self.scaler), device)
        self.begun += 1

    def _end(self) -> None:
        """All of this worker's gradient has been taken."""
        self.step.send(self.group)
        self.waiting.append(self.step)
        self._read(but=KEPT)


def noise_hook(state: NoiseState, bucket: dist.GradBucket) -> Future[Tensor]:
    """Average the bucket's gradients over the workers as without this hook, and listen; see
    NoiseState.
    """
    require_dense(bucket)
    if bucket.index() == 0:
        state._begin(bucket.buffer().device)
    step = state.step
    step.take(bucket.buffer())  # before the hook inside changes it
    if bucket.is_last():
        state._end()
    future = state.hook(state.hook_state, bucket)
    if state.sketch:
        return future
    return future.then(lambda done: step.listen(bucket.index(), _tensor(done)))


def require_dense(bucket: dist.GradBucket) -> None:
    """Raise ValueError if the bucket's gradient is a sparse tensor."""
    dense = not bucket.buffer().is_sparse
    require(dense, "gradient", SPARSE, "dense: give the embedding sparse=False")


class _Step:
    """Squared norms of a training step's gradients, bucket by bucket."""

    def __init__(self, state: NoiseState, scale: float, device: torch.device):
        self.workers, self.total = state.workers, state.total
        self.scale, self.examples = scale, state.examples
        self.square = torch.zeros((), dtype=torch.float64, device=device)
        seed = state.seed * 2**32 + state.begun
        self.sketch = Sketch(state.sketch, seed, device) if state.sketch else None
        # Of the mean, by bucket, so that they add up in one order on all workers
        self.means: dict[int, Tensor] = {}

    def take(self, gradient: Tensor) -> None:
        """This worker's gradient [d], or the part of it that a bucket holds."""
        if self.sketch:
            self.sketch.add(gradient)
        else:
            self.square += squared(gradient)

    def send(self, group: dist.ProcessGroup | None) -> None:
        """Add up over the workers: squared norm, inverse of the examples, sketch."""
        sums = self.sketch.sums if self.sketch else self.square.new_zeros(0)
        if self.sketch:
            self.square = squared(sums)
        if not _in_backward():
            self.square.fill_(math.nan)
        inverse = torch.full_like(self.square, 1 / self.examples)
        self.sent = torch.cat([torch.stack([self.square, inverse]), sums])
        self.work = dist.all_reduce(self.sent, group=group, async_op=True)

    def listen(self, index: int, mean: Tensor) -> Tensor:
        """The mean gradient of a bucket, which is passed on."""
        self.means[index] = squared(mean)
        return mean

    def estimates(self) -> tuple[float, float]:
        """tr(Sigma) and |G|^2."""
        self.work.wait()
        mean = self.sent / self.workers
        small, inverse = mean[:2].tolist()
        if self.sketch:
            big = squared(mean[2:])
        else:
            big = sum(self.means[index] for index in sorted(self.means))
        scale = self.scale**2
        found = small / scale, float(big) / scale, self.workers, 1 / inverse
        return trace_and_square(*found, self.total)


def _in_backward() -> bool:
    """Whether a gradient is being computed: `ddp.join()` calls the hook of a worker without batches
    with zeros instead.
    """
    return torch._C._current_graph_task_id() >= 0


def _mean_hook(group: dist.ProcessGroup | None, bucket: dist.GradBucket) -> Future[Tensor]:
    """What DistributedDataParallel does without a hook, to the last bit: it multiplies, where
    PyTorch's own hook divides.
    """
    buffer = bucket.buffer().mul_(1 / dist.get_world_size(group))
    return dist.all_reduce(buffer, group=group, async_op=True).get_future().then(_tensor)


def _tensor(done: Future[Tensor]) -> Tensor:
    value = done.value()
    return value if isinstance(value, Tensor) else value[0]
