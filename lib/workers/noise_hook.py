"""The gradient noise scale of a job that is running, from the gradients that its workers compute
anyway.

    dist.init_process_group("nccl")  # or gloo; two workers at least
    ddp = DistributedDataParallel(network)
    state = NoiseState(ddp, examples=32)  # that each worker's gradient is the mean of
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
    state = NoiseState(ddp, examples=32, hook=sparse_hook, hook_state=sparse)
    ddp.register_comm_hook(state, noise_hook)

Before a checkpoint, `state.state_dict()`; it is the same on all workers.

What is estimated is what `lib.workers.noise_meter` estimates in a single process, with the workers'
gradients in the place of micro-batches': the simple noise scale tr(Sigma) / |G|^2 in examples, of
the weights of the last steps.  Where every step obeys McCandlish et al. (2018) it is the critical
batch size; it leaves out curvature and changes along a run, so that the two may lie apart by a
factor, which the book's page on the theory measures.  Where gradients shrink fast, the window's
first steps outweigh its last, and a shorter `span` lags less.  Training is the same as without, to
the last bit; what is sent in addition is two numbers a step, with a hook inside 33 kB.  The hook
inside need not return the gradients' mean (sparse messages send part of it, and what was left
before), so that the workers add up random sums of their gradients' entries instead.

The noise of dropout counts as noise; batch normalisation ties examples together, which the
equations do not know.  A step in which a gradient is not finite, which a worker without batches
only accompanies (`ddp.join()`), or whose batches are shorter than others, as an epoch's last may
be, leaves the averages as they are; it counts as skipped.
"""

# No `from __future__ import annotations`: DistributedDataParallel reads the hook's, and strings
# will not do.
import math
import warnings
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.futures import Future

from lib.workers.noise_meter import (
    UNCHANGED,
    Listener,
    Rows,
    real,
    require,
    require_dense,
    scale_of,
    squared,
    summed,
    trace_and_square,
    watch,
)

ENTRIES = 4096  # random sums of a gradient


class NoiseState(Listener):
    """One worker's side: the sums of steps under way, and the averages, which are the same on all
    workers.

    model: the DistributedDataParallel, whose process group's workers are compared.
    examples: that this worker's gradient is the mean of, with gradient accumulation (`no_sync`)
    those of all its backward passes together.  Workers may have unequal numbers.  Set
    `state.examples` where it changes: what the model is given of each step is counted, by the first
    dimension of its first tensor, and a step that does not fit is left out.
    total: size of the training set, if examples are drawn from it without replacement (each epoch
    shuffled) and the noise scale of its own mean gradient is wanted; None: that of endless data.
    span, scaler: as of `lib.workers.noise_meter.Listener`.
    hook, hook_state: another hook, which averages the gradients instead of a plain all-reduce.

    Raises ValueError naming field, value and what is allowed; so does a single worker, who has
    nothing to compare, the hook for a sparse gradient, and `estimate` if gradients were not zero
    where a step began.
    """

    def __init__(
        self,
        model: nn.parallel.DistributedDataParallel | None = None,
        examples: int = 0,
        total: int | None = None,
        span: float = 200.0,
        hook: Callable[[object, dist.GradBucket], Future[Tensor]] | None = None,
        hook_state: object = None,
        scaler: torch.amp.GradScaler | None = None,
    ):
        super().__init__(examples, span, scaler)
        self.group = group_of(model)
        self.workers, self.total = dist.get_world_size(self.group), total
        allowed = "at least 2: one worker's gradient has nothing to be compared to"
        require(self.workers > 1, "workers", self.workers, allowed)
        self.settings |= {"workers": self.workers, "total": total}
        self.hook, self.hook_state = hook, hook_state
        self.step: _Step | None = None
        self.rows = Rows(model)
        self.full: tuple[int, int] | None = None  # rows of the first step, and its examples
        for p in model.parameters():
            if p.requires_grad:
                watch(p, self)

    def fits(self) -> bool:
        """Whether this step has had as many rows for its examples as the first."""
        rows, examples = self.rows.taken(), self.examples
        self.full = self.full or (rows, examples)
        same = rows * self.full[1] == examples * self.full[0]
        if not same:
            warnings.warn(
                "left out: another batch size than `state.examples` tells", stacklevel=2
            )
        return same


def group_of(model: object) -> dist.ProcessGroup:
    """The workers that train it.  Raises ValueError unless it is a DistributedDataParallel."""
    fine = isinstance(model, nn.parallel.DistributedDataParallel)
    allowed = (
        "the DistributedDataParallel that the hook is for (no FSDP: gradients are in parts)"
    )
    require(fine, "model", type(model).__name__, allowed)
    return model.process_group


def noise_hook(state: NoiseState, bucket: dist.GradBucket) -> Future[Tensor]:
    """Average the bucket's gradients over the workers as without this hook, and listen; see
    NoiseState.
    """
    require_dense(bucket.buffer())
    buffer, index = bucket.buffer(), bucket.index()
    if index == 0:
        state.step = _Step(state, buffer.device)
    step = state.step
    step.take(buffer)  # before it is changed
    if bucket.is_last():
        step.send()
        state.add(step)
    if state.hook:
        return state.hook(state.hook_state, bucket)
    # As without a hook, to the last bit: PyTorch's own hook divides
    buffer.mul_(1 / state.workers)

    def heard(done: Future) -> Tensor:
        (mean,) = done.value()
        step.means[index] = squared(mean)
        return mean

    return dist.all_reduce(buffer, group=state.group, async_op=True).get_future().then(heard)


class _Step:
    """Squared norms of a training step's gradients, bucket by bucket."""

    def __init__(self, state: NoiseState, device: torch.device):
        self.state = state
        self.scale = scale_of(state.scaler)
        self.square = torch.zeros((), dtype=torch.float64, device=device)
        self.sums = self.square.new_zeros(ENTRIES if state.hook else 0)
        self.random = torch.Generator(device).manual_seed(1 + state.begun)
        # Of the mean, by bucket, so that they add up in one order on all workers
        self.means: dict[int, Tensor] = {}

    def take(self, gradient: Tensor) -> None:
        """This worker's gradient [d], or the part of it that a bucket holds."""
        if len(self.sums):
            self.sums += random_sums(gradient, len(self.sums), self.random)
        else:
            self.square += squared(gradient)

    def send(self) -> None:
        """Add up over the workers: squared norm, inverse of the examples, parameters whose gradient
        was not zero at first, random sums.
        """
        state = self.state
        square = squared(self.sums) if len(self.sums) else self.square
        # `ddp.join()` calls the hook of a worker without batches, which computes no gradient
        if not state.fits() or torch._C._current_graph_task_id() < 0:
            square.fill_(math.nan)
        left = summed(
            [torch.zeros_like(square), *filter(torch.is_tensor, state.looked.values())]
        )
        state.looked.clear()
        numbers = torch.stack([square, torch.full_like(square, 1 / state.examples), left])
        self.sent = torch.cat([numbers, self.sums])
        self.work = dist.all_reduce(self.sent, group=state.group, async_op=True)

    def estimates(self) -> tuple[float, float]:
        """tr(Sigma) and |G|^2.  Raises ValueError if a gradient was not zero at first."""
        self.work.wait()
        workers = self.state.workers
        mean = self.sent / workers
        small, inverse, left = mean[:3].tolist()
        require(not left, "gradients", "not zero where a step begins", UNCHANGED)
        if len(self.sums):
            big = squared(mean[3:])
        else:
            big = sum(self.means[index] for index in sorted(self.means))
        scale = self.scale**2
        found = small / scale, float(big) / scale, workers, 1 / inverse
        return trace_and_square(*found, self.state.total)


def random_sums(x: Tensor, width: int, random: torch.Generator) -> Tensor:
    """Sums of x [d] with random signs, every so many entries apart: float64 [width].  With the same
    signs they keep inner products in expectation (Alon, Matias and Szegedy 1999).
    """
    x = real(x)
    signs = torch.randint(0, 2, x.shape, generator=random, device=x.device, dtype=torch.int8)
    signed = nn.functional.pad(x.float() * (2 * signs - 1), (0, -len(x) % width))
    return signed.view(-1, width).sum(0, dtype=torch.float64)
