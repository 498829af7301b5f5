"""Synthetic intermediate labels: a network's two halves are trained one after the other, apart
(Karadağ and Topaloğlu 2024).

The left half, the layers up to a hidden one, learns to answer each example with the code of its
class: a random number for every unit, uniform on [0, 1).  Its loss is half the squared distance.
Then the right half learns the labels, on what the left one, frozen, answers.  With recovery the
whole network is trained in the end, by plain SGD as the right half is.

Codes are as others summarise the paper; its abstract was at hand, not its text.  One rate for both
halves, and with recovery as many steps of the right half as of the left one, are ours: so two
things are tuned, the rate and these steps.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from chapters.parts_of_a_network import searches
from lib.fields import spec
from lib.measuring.experiment import Collection
from lib.methods.intervals import Interval
from lib.methods.method import Layer

if TYPE_CHECKING:
    from torch import Tensor

# Inputs, hidden layers and outputs; matrices of the left half
SIZES, LEFT = (64, 64, 64, 64, 64, 10), 2
EXAMPLES = 1350  # of the training set
# Weights of the left half
CUT = searches.weights(SIZES[: LEFT + 1])
ARMS = {
    "whole": "the whole network",
    "halves": "two halves",
    "recovered": "two halves, then the whole",
}
LEFT_ONLY, RIGHT_ONLY, WHOLE = 0, 1, 2  # what is trained
# Further replicates of the arms that exchange numbers: what these save scatters widely
MORE = range(4, 15)
MOST_STEPS = {16: 1000, 64: 800, 256: 600}  # by batch size


@spec
class Search(searches.InStages):
    """So many trials of the digits' MLP of four hidden layers.

    arm: of ARMS; "whole" is plain SGD.  A search ends when all trials have met the hardest goal, or
    after max_steps, so that the trial that sends least is known.  replicate: its draws, seeds, data
    order, split and codes.  Raises ValueError naming the field, its value and what is allowed.
    """

    arm: Literal[*ARMS]
    batch_size: int = 16
    replicate: int = 1
    trials: int = searches.TRIALS
    max_steps: int = MOST_STEPS[16]
    workload: Literal["digits-mlp-64x4"] = "digits-mlp-64x4"  # which is what is halved here

    lengths, seed = Interval(8, 512), 20_000  # of stages: steps of the left half

    def begin(self, w: Tensor, layers: tuple[Layer, ...]) -> dict[str, Tensor]:
        """codes [T, classes, units]; part [T, 1]: what is trained next."""
        import torch

        random = torch.Generator().manual_seed(self.replicate)
        codes = torch.rand(len(w), SIZES[-1], SIZES[LEFT], generator=random)
        part = torch.full((len(w), 1), WHOLE if self.arm == "whole" else LEFT_ONLY)
        return {"codes": codes, "part": part}

    def step(self, w, g, buffers, drawn, k, layers) -> None:
        """As of `lib.methods.method.Method`: SGD, and what is trained in the next step."""
        w.addcmul_(g, drawn["learning_rate"], value=-1)
        if self.arm != "whole":
            last = 1 + (self.arm == "recovered")
            buffers["part"] = (k / drawn["stage"]).long().clamp(max=last)

    def gradient(self, executor, w, batch, mask, buffers) -> tuple:
        """As of `lib.methods.method.Method`: the labels' gradient of what is trained, or the codes'
        of the left half.
        """
        losses, g, alive = executor.gradients(w, *batch)
        part = buffers["part"]
        left = part[:, 0] == LEFT_ONLY
        g[:, :CUT] *= part == WHOLE
        g[:, CUT:] *= part != LEFT_ONLY
        if left.any():
            g[left, :CUT] = left_gradient(w[left, :CUT], *batch, buffers["codes"][left])
        return losses, g, alive


def left_gradient(w: Tensor, x: Tensor, y: Tensor, codes: Tensor) -> Tensor:
    """Gradients [T, CUT] of half the squared distance from the left half's answers to the classes'
    codes, a mean over x, y.
    """
    import torch

    pairs = [*itertools.pairwise(SIZES[: LEFT + 1])]
    sizes = [n for fan_in, out in pairs for n in (out * fan_in, out)]
    with torch.enable_grad():
        w = w.detach().requires_grad_()
        parts = w.split(sizes, 1)
        h = x.flatten(1).expand(len(w), -1, -1)
        for (fan_in, out), matrix, bias in zip(pairs, parts[::2], parts[1::2]):
            h = torch.baddbmm(bias[:, None], h, matrix.unflatten(1, (out, fan_in)).mT).relu()
        loss = (h - codes[:, y]).square().sum() / (2 * len(y))
        return torch.autograd.grad(loss, w)[0]


def planned() -> tuple[Search, ...]:
    """Every arm at every batch size, and then more searches of those that exchange numbers."""
    every = [*itertools.product(searches.REPLICATES, MOST_STEPS, ARMS)]
    every += itertools.product(MORE, MOST_STEPS, ("whole", "recovered"))
    return tuple(Search(arm, b, n, max_steps=MOST_STEPS[b]) for n, b, arm in every)


HALVES = Collection(
    "halves",
    "searches",
    "{0.workload}/{0.arm}-batch-{0.batch_size}".format,
    planned,
    "Train the two halves of a network one after the other, into data/halves/.",
)


def results() -> pd.DataFrame:
    """The trials that have a record, with arms in words, and size: of a batch.

    sent@goal, beside the steps@goal: numbers that two devices, a half each, exchange until then.
    The whole network: the outputs of the left half and their derivatives, for every example of a
    batch.  Halves: the frozen left one's outputs, once for every training example.
    """
    found = HALVES.results()
    whole = found.arm == "whole"
    before = found.arm.map({"whole": 0, "halves": np.inf}).fillna(2 * found.stage)
    together = (found.filter(like="steps@").T - before).clip(lower=0)  # steps of the whole network
    sent = SIZES[LEFT] * (EXAMPLES * ~whole + 2 * found.batch_size * together)
    found = found.assign(arm=found.arm.map(ARMS), size=found.batch_size)
    return searches.with_costs(found, sent=sent)
