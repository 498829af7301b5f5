"""What Lee et al. (2021) do to a network, on their images in their order, written out slowly: ours does the same.

The reference knows nothing of `lib`: masks as variables, double precision, ReLU before pooling, a step by hand.
"""

import os

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lib.engine import flattening, pruning, sequential
from lib.methods import METHODS
from lib.workloads import datasets, models
from lib.workloads.catalogue import workload

pytestmark = pytest.mark.skipif(datasets.VARIABLE not in os.environ, reason="needs MNIST")
RATE, BATCH, STEPS, USED = 0.02, 64, 10, 1000


@pytest.fixture(scope="module")
def images():
    """The first images of their first epoch, x [USED, 1, 28, 28] and y, and the place of each among all those kept.

    One generator shuffles the list of images, which is then cut, and the list of those kept, epoch after epoch.
    """
    numbers, data = np.random.RandomState(seed=0), datasets.canonical("mnist")[0]
    indices = list(range(60_000))
    numbers.shuffle(indices)
    remain, epoch = indices[6000:], list(range(54_000))
    numbers.shuffle(epoch)
    used = [remain[i] for i in epoch[:USED]]
    rank = {image: place for place, image in enumerate(sorted(remain))}
    return data.x[used], data.y[used], [rank[image] for image in used]


def simple_cnn(parts, x):
    """Logits of Simple-CNN for its parameters, in the order of its layers."""
    for kernel, bias in (parts[:2], parts[2:4]):
        x = F.max_pool2d(F.relu(F.conv2d(x, kernel, bias)), 2)
    return F.linear(x.flatten(1), *parts[4:])


def slow(parameters, x, y, sparsity):
    """Their masks, one per parameter, from batches of 100; then the losses of SGD steps on batches in the same order."""
    sums = [torch.zeros_like(p) for p in parameters]
    for start in range(0, USED, 100):
        masks = [torch.ones_like(p, requires_grad=True) for p in parameters]
        masked = [p * m for p, m in zip(parameters, masks)]
        loss = F.cross_entropy(simple_cnn(masked, x[start : start + 100]), y[start : start + 100])
        sums = [s + g for s, g in zip(sums, torch.autograd.grad(loss, masks))]
    sensitivity = torch.cat([s.abs().flatten() for s in sums])
    least = sensitivity.sort(descending=True).values[round(len(sensitivity) * (1 - sparsity)) - 1]
    masks = [(s.abs() >= least).double() for s in sums]
    losses, w = [], [p.clone() for p in parameters]
    for step in range(STEPS):
        batch = slice(BATCH * step, BATCH * (step + 1))
        w = [p.detach().requires_grad_() for p in w]
        loss = F.cross_entropy(simple_cnn([p * m for p, m in zip(w, masks)], x[batch]), y[batch])
        w = [p - RATE * g for p, g in zip(w, torch.autograd.grad(loss, w))]
        losses.append(loss.item())
    return masks, losses


def test_masks_and_losses_are_those_of_their_procedure_on_their_images(images):
    sparsity = 0.9
    x, y, places = images
    net = models.fresh("simple-cnn", 3)
    theirs = [p.detach().double().contiguous() for p in net.parameters()]
    masks, expected = slow(theirs, x.double(), y, sparsity)

    data = workload("mnist-simple-cnn-lee2021").train()
    w, loop = flattening.flatten(net)[None], sequential.SequentialExecutor(net)
    ours, labels = loop.inputs(data.x[places]), data.y[places]
    scores = pruning.scores("connection-sensitivity", w[0], loop, ours, labels, 3)
    mask = pruning.global_mask(scores[None], sparsity)
    kept = torch.cat([flattening.memory_order(m).flatten() for m in masks])
    assert mask.sum() == kept.sum() == round(62_346 * (1 - sparsity))
    assert torch.equal(mask[0].double(), kept)

    w, losses = w * mask, []
    drawn = {"learning_rate": torch.full((1, 1), RATE)}
    for step in range(STEPS):
        batch = slice(BATCH * step, BATCH * (step + 1))
        loss, g, _ = loop.gradients(w, ours[batch], labels[batch], mask)
        METHODS["sgd"].step(w, g, {}, drawn, step + 1, ())
        losses.append(loss.item())
    assert losses == pytest.approx(expected, abs=1e-6)
    assert losses[-1] < losses[0] - 0.1
