"""ResNet-20 on CIFAR-10 as trained by the released code of Shi et al. (2019): batch normalisation,
crops and flips, weight decay, warm-up and drops of the learning rate, warm-up of the density.
"""

from __future__ import annotations

import time

import pandas as pd
import torch
from torch import Tensor, nn

from lib.engine.checkpoint import Checkpoint
from lib.engine.flattening import flatten
from lib.engine.sequential import CapturedExecutor, SequentialExecutor
from lib.messages import Messages
from lib.messages.exchanges import Exchange
from lib.workloads import models
from lib.workloads.datasets import Split

WORKERS, BATCH = 16, 512
EPOCH = 98  # steps: 97 with 512 images, and one with the remaining 336
RATE, MOMENTUM, DECAY = 0.1, 0.9, 1e-4
WARM_UP = 5  # epochs in which the rate rises in proportion to the step
DROPS = (81, 122)  # epochs after which the rate falls to a tenth
MARGIN, SIDE = 4, 32  # pixels: padding before cropping, and side of an image
NEWEST = 0.1  # weight of a batch in the running averages of batch normalisation
EVERY = 3  # epochs between two tests


class Averaging:
    """A network with running averages in batch normalisation, like the authors' testing process.

    Attributes:
        executor: of the network; on a GPU it records kernels and replays them.
        averages: means and variances [2, C] of each such layer, always in float32.
    """

    def __init__(self, module: nn.Module, dtype: torch.dtype, device: str = "cpu"):
        kind = CapturedExecutor if device.startswith("cuda") else SequentialExecutor
        self.executor = kind(module, dtype, device)
        self.averages, self.listening = {}, False
        begun = torch.tensor([[0.0], [1.0]], device=device)
        for layer in module.modules():
            if isinstance(layer, nn.BatchNorm2d):
                self.averages[layer] = begun.repeat(1, layer.num_features)
                layer.register_forward_pre_hook(self._listen)

    def _listen(self, norm: nn.BatchNorm2d, inputs: tuple[Tensor]) -> None:
        if self.listening:
            variance, mean = torch.var_mean(inputs[0].float(), (0, 2, 3))
            self.averages[norm].lerp_(torch.stack([mean, variance]), NEWEST)

    def gradients_by_worker(self, w: Tensor, x: Tensor, y: Tensor, workers: int) -> tuple:
        """As `SequentialExecutor.gradients_by_worker`; the first worker's share also updates the
        averages, in a separate pass, since recorded kernels call no hooks.
        """
        self.listening = True
        self.executor.logits(w, x.chunk(workers)[0])
        self.listening = False
        return self.executor.gradients_by_worker(w, x, y, workers)

    def error(self, w: Tensor, x: Tensor, y: Tensor) -> float:
        """The share of examples x [N, ...] that weights w [1, P] get wrong, with the averages."""
        for norm, averages in self.averages.items():
            norm.running_mean, norm.running_var = averages.to(self.executor.dtype)
            norm.eval()
        logits = torch.cat([self.executor.logits(w, part)[0] for part in x.split(500)])
        wrong = (logits.argmax(1) != y).sum()
        for norm in self.averages:
            norm.running_mean = norm.running_var = None
            norm.train()
        return wrong.item() / len(y)


def rate(step: int) -> float:
    """The learning rate of update number `step`, counted from 0."""
    warmed = min((step + 1) / (WARM_UP * EPOCH), 1.0)
    drops = sum(step >= EPOCH * epoch for epoch in DROPS)
    return RATE * warmed / 10**drops


def augmented(x: Tensor, random: torch.Generator) -> Tensor:
    """Images [B, C, 32, 32] shifted by up to MARGIN pixels, half of them mirrored.

    They are padded with black, taken as each channel's least value over these standardised images.
    """
    size = SIDE + 2 * MARGIN
    black = x.amin((0, 2, 3))
    padded = black[:, None, None].expand(len(x), -1, size, size).clone()
    inner = slice(MARGIN, MARGIN + SIDE)
    padded[:, :, inner, inner] = x
    corners = torch.randint(2 * MARGIN + 1, (len(x), 2), generator=random)
    cropped = torch.empty_like(x)
    for place, (top, left) in enumerate(corners.tolist()):
        cropped[place] = padded[place, :, top : top + SIDE, left : left + SIDE]
    mirrored = torch.rand(len(x), generator=random) < 0.5
    cropped[mirrored] = cropped[mirrored].flip(-1)
    return cropped


def decayed(module: nn.Module) -> Tensor:
    """A mask [P]: 1 where weights decay, 0 for biases and normalisation."""
    parts = [torch.full((p.numel(),), float(p.dim() > 1)) for p in module.parameters()]
    return torch.cat(parts)


class Run:
    """A training run of an `experiments.Published`; w and velocity are [1, P]."""

    def __init__(self, spec, device: str = "cpu"):
        module = models.fresh("resnet-20", spec.seed)
        self.steps, self.losses, self.device = 0, [], device
        self.w = flatten(module)[None].to(device)
        self.velocity = torch.zeros_like(self.w)
        self.decay = DECAY * decayed(module).to(device)
        self.network = Averaging(module, getattr(torch, spec.precision), device)
        messages = Messages(WORKERS, spec.compressor, spec.density, warm_up=EPOCH)
        sizes = [p.numel() for p in module.parameters()]
        self.exchange = Exchange(messages, self.w, None, sizes, spec.seed)

    def inputs(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Images and labels as the network takes them."""
        return self.network.executor.inputs(x), y.to(self.device)

    def step(self, x: Tensor, y: Tensor) -> None:
        """Take a step on images x [B, ...] with labels y [B]."""
        loss, g, _ = self.exchange.gradients(self.network, self.w, *self.inputs(x, y))
        self.velocity = MOMENTUM * self.velocity + g + self.decay * self.w
        self.w = self.w - rate(self.steps) * self.velocity
        self.losses.append(loss.item())
        self.steps += 1

    def tested(self, test: Split) -> dict[str, float]:
        """Mean loss since the last test, the error on the test set, and the mean number of entries
        sent by a worker per step.
        """
        loss, self.losses = sum(self.losses) / len(self.losses), []
        error = self.network.error(self.w, *self.inputs(test.x, test.y))
        sent = self.exchange.sent.item() / self.steps
        return {"loss": loss, "test_error": error, "sent": sent}

    def parts(self) -> dict:
        """The state on which the next step depends."""
        names = ("steps", "losses", "w", "velocity")
        averages = list(self.network.averages.values())
        parts = {"averages": averages, "exchange": self.exchange.parts()}
        return parts | {name: getattr(self, name) for name in names}

    def restore(self, parts: dict) -> None:
        """Resume from these `parts`."""
        self.steps, self.losses = parts["steps"], parts["losses"]
        self.w, self.velocity = (parts[name].to(self.device) for name in ("w", "velocity"))
        self.exchange.restore(parts["exchange"])
        for averages, saved in zip(self.network.averages.values(), parts["averages"]):
            averages.copy_(saved)


def trained(
    spec,
    checkpoint: Checkpoint,
    images: Split,
    test: Split,
    every: int = EVERY,
    device: str = "cpu",
) -> pd.DataFrame:
    """A row per test: epoch, step, rate, `Run.tested`, and core-seconds of training.

    Args:
        spec: an `experiments.Published`.
        checkpoint: of an unfinished run, which is resumed.
        images: all training images, 50,000 of them in the book's runs.
        every: epochs between two tests; the last epoch is always tested.
        device: "cpu", "cuda", "cuda:1", ...
    """
    run, rows, spent = Run(spec, device), [], 0.0
    if saved := checkpoint.load():
        run.restore(saved["run"])
        rows, spent = saved["rows"], saved["seconds"]
    began = time.process_time() - spent  # of this process, which may be paused
    while run.steps < spec.epochs * EPOCH:
        run.step(*batch(spec.seed, images, run.steps))
        seconds = round(time.process_time() - began, 1)
        epoch, left = divmod(run.steps, EPOCH)
        if not left and (epoch % every == 0 or epoch == spec.epochs):
            about = {"epoch": epoch, "step": run.steps, "rate": rate(run.steps - 1)}
            rows.append(about | run.tested(test) | {"seconds": seconds})
        state = {"rows": rows, "seconds": seconds}
        checkpoint.save(lambda: state | {"run": run.parts()})  # noqa: B023, called at once
    return pd.DataFrame(rows)


def batch(seed: int, images: Split, step: int) -> tuple[Tensor, Tensor]:
    """The augmented images of a step and their labels; images are reshuffled every epoch."""
    epoch, place = divmod(step, EPOCH)
    order = torch.Generator().manual_seed(10**6 * seed + epoch)
    chosen = torch.randperm(len(images.y), generator=order).split(BATCH)[place]
    random = torch.Generator().manual_seed(10**6 * seed + 10**5 + step)
    return augmented(images.x[chosen], random), images.y[chosen]
