"""ResNet-20 as Shi et al. (2019) train it, against PyTorch's own optimiser and normalisation."""

from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from torch import nn

from chapters.messages import claims, experiments, published
from chapters.messages.experiments import Published
from lib.claims.claim import judged
from lib.claims.judging import registered
from lib.engine.checkpoint import NO_CHECKPOINT, Checkpoint
from lib.messages import WARM_UP
from lib.workloads import models
from lib.workloads.datasets import Split


@pytest.fixture
def images(monkeypatch):
    """Two steps of 32 images an epoch, two for each worker."""
    for name, value in (("BATCH", 32), ("EPOCH", 2)):
        monkeypatch.setattr(published, name, value)
    random = torch.Generator().manual_seed(0)
    return Split(torch.randn(64, 3, 32, 32, generator=random), torch.randint(10, (64,), generator=random))


def run(images, compressor="dense", epochs=2, checkpoint=NO_CHECKPOINT, seed=1):
    spec = Published(compressor, seed, epochs, density=0.01, precision="float32")
    return published.trained(spec, checkpoint, images, images, every=1)


def by_torch(images, epochs):
    """Losses and test errors of the same run with SGD and batch normalisation of PyTorch."""
    net = models.fresh("resnet-20", 1).to(memory_format=torch.channels_last)
    norms = [layer for layer in net.modules() if isinstance(layer, nn.BatchNorm2d)]
    for norm in norms:
        norm.track_running_stats = True
        norm.running_mean = torch.zeros(norm.num_features)
        norm.running_var = torch.ones(norm.num_features)
    wide, narrow = ([p for p in net.parameters() if (p.dim() > 1) == decays] for decays in (True, False))
    groups = [{"params": wide, "weight_decay": 1e-4}, {"params": narrow}]
    sgd = torch.optim.SGD(groups, lr=1.0, momentum=0.9)
    losses = []
    for step in range(2 * epochs):
        for group in sgd.param_groups:
            group["lr"] = published.rate(step)
        x, y = published.batch(1, images, step)
        sgd.zero_grad()
        shares = []
        for worker, (inputs, labels) in enumerate(zip(x.chunk(16), y.chunk(16))):
            for norm in norms:
                norm.momentum = 0.1 if worker == 0 else 0.0  # the first worker's averages count
            shares.append(nn.functional.cross_entropy(net(inputs), labels) / 16)
            shares[-1].backward()
        sgd.step()
        losses.append(sum(shares).item())
    with torch.no_grad():
        error = (net.eval()(images.x).argmax(1) != images.y).float().mean().item()
    return [sum(losses[i : i + 2]) / 2 for i in range(0, len(losses), 2)], error


def test_dense_messages_are_pytorchs_sgd_with_decay_and_the_first_workers_averages(images, monkeypatch):
    monkeypatch.setattr(published, "WARM_UP", 1)
    tests, (losses, error) = run(images), by_torch(images, 2)
    assert tests.loss.tolist() == pytest.approx(losses, rel=3e-4) and tests.sent.tolist() == [269_722] * 2
    assert tests.test_error.iloc[-1] == pytest.approx(error, abs=2 / 64)


def test_the_rate_rises_for_five_epochs_and_falls_tenfold_after_81():
    rates = [published.rate(published.EPOCH * epoch - 1) for epoch in (1, 5, 81, 82)]
    assert rates == pytest.approx([0.02, 0.1, 0.1, 0.01])


def test_an_epoch_has_every_image_once_in_an_order_of_its_own(images):
    marked = Split(images.x, torch.arange(64))
    labels = [published.batch(0, marked, step)[1] for step in range(4)]
    first, second = torch.cat(labels[:2]), torch.cat(labels[2:])
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(64))
    assert not torch.equal(first, second)


def test_images_are_shifted_by_up_to_four_pixels_on_black_and_half_of_them_mirrored():
    x = torch.zeros(2000, 3, 32, 32) - 2
    x[:, :, 16, 10] = 1.0
    augmented = published.augmented(x, torch.Generator().manual_seed(0))
    _, row, column = (augmented[:, 0] == 1).nonzero().T
    assert set(row.tolist()) == set(range(12, 21)) and set(augmented.unique().tolist()) == {-2.0, 1.0}
    assert set(column.tolist()) == {*range(6, 15), *range(17, 26)}
    assert (column > 17).float().mean() == pytest.approx(0.43, abs=0.1)


@pytest.mark.parametrize("compressor", ["top-k", "gaussian-k"])
def test_an_interrupted_run_goes_on_as_if_it_had_not_been(images, compressor, tmp_path, monkeypatch):
    straight, checkpoint = run(images, compressor), Checkpoint(tmp_path / "run.part", "one")
    monkeypatch.setattr(checkpoint, "pause", 0.0)
    save = checkpoint.save

    def stopped(state):
        checkpoint.pause = 0.0
        save(state)
        if state()["run"]["steps"] == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "save", stopped)
    with pytest.raises(KeyboardInterrupt):
        run(images, compressor, checkpoint=checkpoint)
    again = run(images, compressor, checkpoint=Checkpoint(tmp_path / "run.part", "one"))
    assert again.drop(columns="seconds").equals(straight.drop(columns="seconds"))
    if compressor == "top-k":
        assert straight.sent.iloc[0] == pytest.approx(WARM_UP[0] * 269_722, rel=1e-3)


@pytest.mark.parametrize("behind, seeds, verdict", [(0.2, 3, "yes"), (2.0, 3, "no"), (2.0, 1, "unclear")])
def test_a_planted_loss_by_the_recipe_is_judged_where_several_seeds_have_it(monkeypatch, behind, seeds, verdict):
    ends = {"dense": 0.08, "top-k": 0.08 + behind / 100}
    rows = [(name, seed, 120, 11_760, error + 0.001 * seed) for name, error in ends.items() for seed in range(seeds)]
    tests = pd.DataFrame(rows, columns=["compressor", "seed", "epoch", "step", "test_error"]).assign(epochs=120)
    tests["test_error"] += (tests.compressor == "top-k") * 1e-4 * tests.seed
    monkeypatch.setattr(experiments, "PUBLISHED", SimpleNamespace(results=lambda: tests))
    (group,) = judged(registered()["T4"], claims.as_published("top-k", "dense")).groups
    assert group.theirs and group.verdict == verdict and group.note == "11,760 steps" and group.n == seeds
    assert claims.as_published("gaussian-k", "top-k") == []
