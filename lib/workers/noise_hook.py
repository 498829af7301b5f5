"""The gradient noise scale of a running job, beneath another communication hook (not with FSDP).

    dist.init_process_group("nccl")  # or gloo; two workers at least
    ddp = DistributedDataParallel(network)
    state = NoiseState(ddp)  # counts each worker's examples
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
    state = NoiseState(ddp, hook=sparse_hook, hook_state=sparse)
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
before), so that the workers add up random sums of their gradients' entries instead.  What cannot be
measured, or fails, is warned of once; the exchange goes on.

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

from lib.workers.noise_meter import NoiseMeter, Rows, after_backward, harmless, real, require

ENTRIES = 4096  # random sums of a gradient


class NoiseState(NoiseMeter):
    """One worker's side: the sums of steps under way, and the averages, which are the same on all
    workers.

    model: the DistributedDataParallel, whose process group's workers are compared.
    examples: that a backward pass's gradient is the mean of; workers may have unequal numbers.  With
    gradient accumulation (`no_sync`, accelerate) passes are counted, and the number of all of a
    step's together is refused, if it is seen to be that.  None: the first dimension of the first
    tensor that the model is given.
    total: size of the training set, if examples are drawn from it without replacement (each epoch
    shuffled) and the noise scale of its own mean gradient is wanted; None: that of endless data.
    span, scaler: as of `lib.workers.noise_meter.NoiseMeter`.
    hook, hook_state: another hook, which averages the gradients instead of a plain all-reduce.

    Raises ValueError naming field, value and what is allowed; so does a single worker, who has
    nothing to compare.  A sparse gradient is refused, and so are gradients that were not zero where
    a step began (`refusal`).
    """

    shared = True  # DistributedDataParallel calls the hook of a worker that has left, too

    def __init__(
        self,
        model: nn.parallel.DistributedDataParallel | None = None,
        examples: int | None = None,
        total: int | None = None,
        span: float = 200.0,
        hook: Callable[[object, dist.GradBucket], Future[Tensor]] | None = None,
        hook_state: object = None,
        scaler: torch.amp.GradScaler | None = None,
    ):
        group = group_of(model)
        super().__init__(model, examples, span, scaler)
        self.workers, self.total = dist.get_world_size(group), total
        allowed = "at least 2: one worker's gradient has nothing to be compared to"
        require(self.workers > 1, "workers", self.workers, allowed)
        self.settings |= {"workers": self.workers, "total": total}
        self.hook, self.hook_state, self.width = hook, hook_state, ENTRIES if hook else 0
        self.rows, self.seen = Rows(model), 0
        self.full: tuple[int, int] | None = None  # rows of the first step, and its examples

    @harmless
    def sum_up(self) -> None:
        if not self.ddp.require_backward_grad_sync:  # else `finish` does
            self.under_way.look()
            self.take()

    def take(self) -> None:
        """A backward pass ends."""
        rows = self.rows.taken()
        require(rows or self.examples, "examples", None, "told: the model is given no tensor")
        self.under_way.take(self.examples or rows, 1.0)
        self.seen += rows

    @harmless
    def close(self, step: object) -> None:
        """The step's last backward pass ends."""
        super().sum_up()
        self.take()
        passes, seen, examples, self.seen = len(step.sizes), self.seen, sum(step.sizes), 0
        allowed = f"those of one of {passes} backward passes"
        require(passes == 1 or seen != self.examples, "examples", self.examples, allowed)
        self.full = self.full or (seen, examples)
        if seen * self.full[1] != examples * self.full[0]:
            step.sums[0] = math.nan
            warnings.warn("left out: another batch size than `state.examples`", stacklevel=2)

    def finish(self) -> None:
        """A step ends, also for a worker without batches, in `ddp.join()`."""
        passes = 1
        if self.under_way:
            self.close(self.under_way)
            passes = max(len(self.under_way.sizes), 1)
        self.step(1 / passes)

    @harmless
    def add(self, bucket: dist.GradBucket) -> None:
        """Random sums of this worker's gradient, before it is changed."""
        gradient = bucket.buffer()
        if bucket.index() == 0:
            self.random = torch.Generator(gradient.device).manual_seed(1 + self.begun)
        self.under_way.sums[5:] += random_sums(gradient, self.width, self.random)


def group_of(model: object) -> dist.ProcessGroup:
    """The workers that train it.  Raises ValueError unless it is a DistributedDataParallel."""
    fine = isinstance(model, nn.parallel.DistributedDataParallel)
    allowed = "the DistributedDataParallel that the hook is for (not FSDP)"
    require(fine, "model", type(model).__name__, allowed)
    return model.process_group


def noise_hook(state: NoiseState, bucket: dist.GradBucket) -> Future[Tensor]:
    """Average the bucket's gradients over the workers as without this hook, and listen; see
    NoiseState.
    """
    if state.hook and state.under_way:
        state.add(bucket)
    if bucket.is_last() and torch._C._current_graph_task_id() < 0:
        state.finish()  # a worker without batches, which computes no gradient
    elif bucket.is_last():
        after_backward(state.finish)
    if state.hook:
        return state.hook(state.hook_state, bucket)
    # As without a hook, to the last bit: PyTorch's own hook divides
    buffer = bucket.buffer().mul_(1 / state.workers)
    work = dist.all_reduce(buffer, group=state.ddp.process_group, async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def random_sums(x: Tensor, width: int, random: torch.Generator) -> Tensor:
    """Sums of x [d] with random signs, every so many entries apart: float64 [width].  With the same
    signs they keep inner products in expectation (Alon, Matias and Szegedy 1999).
    """
    x = real(x)
    signs = torch.randint(0, 2, x.shape, generator=random, device=x.device, dtype=torch.int8)
    signed = nn.functional.pad(x.float() * (2 * signs - 1), (0, -len(x) % width))
    return signed.view(-1, width).sum(0, dtype=torch.float64)
