"""The gradient noise scale of a running job, around another communication hook (not with FSDP).

    sparse = SparseState(ddp, compressor="top-k", density=0.01)
    state = NoiseState(ddp, hook=sparse_hook, hook_state=sparse)  # counts a worker's examples
    ddp.register_comm_hook(state, noise_hook)
    for x, y in loader:  # with a DistributedSampler; train as usual
        optimizer.zero_grad()
        loss(ddp(x), y).backward()
        optimizer.step()
    print(state.estimate())
    # noise scale 412 examples (5-95 %: 351 to 490), over the last 200 steps or so

Without another hook, use NoiseState(ddp).  For checkpoints, save `state.state_dict()`, which is the
same on all workers.

This estimates the same as `lib.workers.noise_meter`, with workers' gradients in place of
micro-batches'.  Training stays the same to the last bit; five more numbers are sent per step, or
33 kB with a hook inside.  The hook inside need not return the gradients' mean (sparse messages send
part of it, and what was left before), so the workers add up random sums of their gradients' entries
instead.  If something cannot be measured, or fails, there is one warning, and the exchange goes
on.

Steps are left out if a gradient is not finite, if a worker without batches only takes part in the
exchange (`ddp.join()`), or if their batches are shorter than others, as an epoch's last may be.
"""

# No `from __future__ import annotations`: DistributedDataParallel inspects the hook's annotations,
# which must not be strings.
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.futures import Future

from lib.workers.noise_meter import NoiseMeter, after_backward, harmless, require

ENTRIES = 4096  # number of random sums of a gradient


class NoiseState(NoiseMeter):
    """One worker's side: the sums of unfinished steps, and the averages, which are the same on all
    workers.

    model: the DistributedDataParallel; the workers of its process group are compared.
    examples: how many a backward pass's gradient is the mean of; may differ between workers.  With
    gradient accumulation (`no_sync`, accelerate), passes are counted; the number of a whole step's
    examples is refused, if recognised as such.  None: the first dimension of the model's first
    tensor.
    total: size of the training set, if examples are drawn from it without replacement (shuffled
    each epoch) and the noise scale relative to its mean gradient is wanted; None: endless data.
    span, scaler: as in `lib.workers.noise_meter.NoiseMeter`.
    hook, hook_state: another hook, which averages the gradients instead of a plain all-reduce.

    Raises ValueError naming field, value and what is allowed, also for a single worker, which has
    nothing to compare.
    """

    shared = True  # DistributedDataParallel also calls the hook of a worker that has left

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
        allowed = "at least 2, so that gradients can be compared"
        require(self.workers > 1, "workers", self.workers, allowed)
        self.settings |= {"workers": self.workers, "total": total}
        self.hook, self.hook_state, self.width = hook, hook_state, ENTRIES if hook else 0
        self.usual: int | None = None  # rows of the first backward pass
        self.step_rows = 0
        self.count_rows()

    def sum_up(self) -> None:
        """Called at the end of a backward pass."""
        if not self.ddp.require_backward_grad_sync:  # else `finish` does this
            self.end_pass()

    @harmless
    def end_pass(self) -> None:
        super().sum_up()
        rows = self.taken_rows()
        require(rows or self.examples, "examples", None, "set: the model receives no tensor")
        self.usual = self.usual or rows
        if self.examples and rows != self.usual:
            self.under_way.spoilt = True
        self.step_rows += rows
        self.micro_batch(self.examples or rows)

    @harmless
    def end_last_pass(self) -> None:
        self.end_pass()
        passes, rows, self.step_rows = len(self.under_way.parts), self.step_rows, 0
        allowed = f"the number in each of {passes} passes"
        require(passes == 1 or rows != self.examples, "examples", self.examples, allowed)

    def finish(self) -> None:
        """Called at the end of a step, also for a worker without batches, in `ddp.join()`."""
        if self.under_way:
            self.end_last_pass()
        self.step(1 / max(len(self.under_way.parts), 1) if self.under_way else 1.0)

    @harmless
    def add(self, bucket: dist.GradBucket) -> None:
        """Add random sums of this worker's gradient, before it is changed."""
        gradient = bucket.buffer()
        if bucket.index() == 0:
            steps = self.averages.steps + self.skipped + len(self.waiting)
            self.random = torch.Generator(gradient.device).manual_seed(1 + steps)
        self.under_way.random.append(random_sums(gradient, self.width, self.random))


def group_of(model: object) -> dist.ProcessGroup:
    """The workers that train a model.  Raises ValueError unless it is a DistributedDataParallel."""
    fine = isinstance(model, nn.parallel.DistributedDataParallel)
    allowed = "the DistributedDataParallel that the hook is for (not FSDP)"
    require(fine, "model", type(model).__name__, allowed)
    return model.process_group


def noise_hook(state: NoiseState, bucket: dist.GradBucket) -> Future[Tensor]:
    """Average the bucket's gradients over workers as without this hook, while measuring; see
    NoiseState.
    """
    if state.hook and state.under_way:
        state.add(bucket)
    if bucket.is_last() and torch._C._current_graph_task_id() < 0:
        state.finish()  # a worker without batches computes no gradient
    elif bucket.is_last():
        after_backward(state.finish)
    if state.hook:
        return state.hook(state.hook_state, bucket)
    # The same as without a hook, to the last bit: PyTorch's default hook would divide instead
    buffer = bucket.buffer().mul_(1 / state.workers)
    work = dist.all_reduce(buffer, group=state.ddp.process_group, async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def random_sums(x: Tensor, width: int, random: torch.Generator) -> Tensor:
    """Sums, with random signs, of every width-th entry of x [d]: float64 [width].  With the same
    signs, inner products are preserved in expectation (Alon, Matias and Szegedy 1999).
    """
    x = torch.view_as_real(x).flatten() if x.is_complex() else x
    signs = torch.randint(0, 2, x.shape, generator=random, device=x.device, dtype=torch.int8)
    signed = nn.functional.pad(x.float() * (2 * signs - 1), (0, -len(x) % width))
    return signed.view(-1, width).sum(0, dtype=torch.float64)
