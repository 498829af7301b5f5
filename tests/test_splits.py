"""The split of Lee et al. (2021) is theirs to the image, draws are as hard as they should be, and both are compared alike."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lib.engine import lockstep
from lib.measuring import one_search
from lib.probes import unseen
from lib.studies.search import Search
from lib.workloads import datasets, models


def test_their_validation_images_are_the_first_tenth_of_their_shuffled_list():
    order = list(range(60_000))
    np.random.RandomState(seed=0).shuffle(order)  # as their code has it
    held_out = datasets.held_out(datasets.LEE2021)
    assert sorted(order[:6000]) == held_out.tolist() and len(held_out) == 6000


def test_theirs_is_one_split():
    with pytest.raises(ValueError, match="split: 2 is not allowed; it must be 0 for mnist-simple-cnn-lee2021, whose examples"):
        Search("mnist-simple-cnn-lee2021", 64, split=2)


def test_networks_of_a_fold_are_trained_as_the_engine_trains_them():
    """One fold by hand: plain modules, torch's momentum."""
    what, data = unseen.Folds("digits-mlp", networks=2, steps=20, folds=3, learning_rate=0.05), datasets.canonical("digits")[0]
    rows = what.measure().set_index("image").wrong
    fold = torch.from_numpy(what.parts(1500)[1])
    kept = torch.from_numpy(np.setdiff1d(np.arange(1500), fold.numpy()))
    wrong = torch.zeros(len(fold), dtype=torch.int64)
    for net in networks(dataclasses.replace(what.cell, replicate=1)):
        optimiser = torch.optim.SGD(net.parameters(), lr=what.learning_rate, momentum=what.momentum)
        for _, pick in zip(range(what.steps), lockstep.batches(len(kept), 64, 1)):
            optimiser.zero_grad()
            F.cross_entropy(net(data.x[kept[pick]].double()), data.y[kept[pick]]).backward()
            optimiser.step()
        wrong += net(data.x[fold].double()).argmax(1) != data.y[fold]
    measured = rows.reindex(fold.numpy(), fill_value=0).to_numpy()
    assert 0 < wrong.sum() < 2 * len(fold) and np.mean(measured == wrong.numpy()) > 0.99


def networks(cell):
    return [models.initialise(models.build(cell.work.model), seed).double() for seed in one_search.seeds(cell)]


def planted(images=60_000):
    """Shares of mistakes of four networks: most images are easy."""
    return np.random.default_rng(5).choice([0, 0.25, 0.5, 1.0], images, p=[0.95, 0.03, 0.01, 0.01])


def test_draws_scatter_as_samples_without_replacement_do():
    share = planted()
    among = unseen.drawn(share)
    assert len(among) == unseen.DRAWS and among.mean() == pytest.approx(share.mean(), rel=2e-3)
    assert among.std() == pytest.approx(share.std(ddof=1) * np.sqrt((1 - 0.1) / 6000), rel=0.03)
    numbers = np.random.default_rng(7)
    plain = [share[numbers.permutation(60_000)[:6000]].mean() for _ in range(500)]
    assert np.quantile(among, [0.1, 0.5, 0.9]) == pytest.approx(np.quantile(plain, [0.1, 0.5, 0.9]), rel=0.01)
