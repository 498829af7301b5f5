"""The gradient noise scale of a running job, beneath another communication hook (not with FSDP).

    sparse = SparseState(ddp, compressor="top-k", density=0.01)
    state = NoiseState(ddp, hook=sparse_hook, hook_state=sparse)  # counts a worker's examples
    ddp.register_comm_hook(state, noise_hook)
    for x, y in loader:  # of a DistributedSampler; train as ever
        optimizer.zero_grad()
        loss(ddp(x), y).backward()
        optimizer.step()
    print(state.estimate())
    # noise scale 412 examples (5-95 %: 351 to 490), over the last 200 steps or so

Without another hook, NoiseState(ddp).  Before a checkpoint, `state.state_dict()`; it is the same on
all workers.

What is estimated is what `lib.workers.noise_meter` estimates, with the workers' gradients in the
place of micro-batches'.  Training is the same as without, to the last bit; what is sent in addition
is five numbers a step, with a hook inside 33 kB.  The hook inside need not return the gradients'
mean (sparse messages send part of it, and what was left before), so that the workers add up random
sums of their gradients' entries instead.  What cannot be measured, or fails, is warned of once; the
exchange goes on.

A step in which a gradient is not finite, which a worker without batches only accompanies
(`ddp.join()`), or whose batches are shorter than others, as an epoch's last may be, is left out.
"""

# No `from __future__ import annotations`: DistributedDataParallel reads the hook's, and strings
# will not do.
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.futures import Future

from lib.workers.noise_meter import NoiseMeter, after_backward, harmless, require

ENTRIES = 4096  # random sums of a gradient


class NoiseState(NoiseMeter):
    """One worker's side: the sums of steps under way, and the averages, which are the same on all
    workers.

    model: the DistributedDataParallel, whose process group's workers are compared.
    examples: that a backward pass's gradient is the mean of; workers may have unequal ones.  With
    gradient accumulation (`no_sync`, accelerate) passes are counted, and the number of all of a
    step's together is refused, if it is seen to be that.  None: the first dimension of the first
    tensor that the model is given.
    total: size of the training set, if examples are drawn from it without replacement (each epoch
    shuffled) and the noise scale of its own mean gradient is wanted; None: that of endless data.
    span, scaler: as of `lib.workers.noise_meter.NoiseMeter`.
    hook, hook_state: another hook, which averages the gradients instead of a plain all-reduce.

    Raises ValueError naming field, value and what is allowed; so does a single worker, who has
    nothing to compare.
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
        group_of(model)
        super().__init__(model, examples, span, scaler)
        self.total = total
        allowed = "at least 2: one worker's gradient has nothing to be compared to"
        require(self.workers > 1, "workers", self.workers, allowed)
        self.settings |= {"workers": self.workers, "total": total}
        self.hook, self.hook_state, self.width = hook, hook_state, ENTRIES if hook else 0
        self.usual: int | None = None  # rows of the first backward pass
        self.step_rows = 0
        self.count_rows()

    def sum_up(self) -> None:
        """A backward pass ends."""
        if not self.ddp.require_backward_grad_sync:  # else `finish` does
            self.end_pass()

    @harmless
    def end_pass(self) -> None:
        super().sum_up()
        rows = self.taken_rows()
        require(rows or self.examples, "examples", None, "told: the model is given no tensor")
        self.usual = self.usual or rows
        if self.examples and rows != self.usual:
            self.under_way.spoilt = True
        self.step_rows += rows
        self.micro_batch(self.examples or rows)

    @harmless
    def end_last_pass(self) -> None:
        self.end_pass()
        passes, rows, self.step_rows = len(self.under_way.parts), self.step_rows, 0
        allowed = f"those of one of {passes} backward passes"
        require(passes == 1 or rows != self.examples, "examples", self.examples, allowed)

    def finish(self) -> None:
        """A step ends, also for a worker without batches, in `ddp.join()`."""
        if self.under_way:
            self.end_last_pass()
        self.step(1 / max(len(self.under_way.parts), 1) if self.under_way else 1.0)

    @harmless
    def add(self, bucket: dist.GradBucket) -> None:
        """Random sums of this worker's gradient, before it is changed."""
        gradient = bucket.buffer()
        if bucket.index() == 0:
            steps = self.averages.steps + self.skipped + len(self.waiting)
            self.random = torch.Generator(gradient.device).manual_seed(1 + steps)
        self.under_way.random.append(random_sums(gradient, self.width, self.random))


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
    x = torch.view_as_real(x).flatten() if x.is_complex() else x
    signs = torch.randint(0, 2, x.shape, generator=random, device=x.device, dtype=torch.int8)
    signed = nn.functional.pad(x.float() * (2 * signs - 1), (0, -len(x) % width))
    return signed.view(-1, width).sum(0, dtype=torch.float64)
