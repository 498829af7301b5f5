"""Jobs that are listened to: what a record holds is what the gradients say, and what the page makes of it."""


import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from lib.engine import lockstep
from lib.probes import noise_scale, running_noise
from lib.probes.running_noise import Job
from lib.workers.noise_hook import of_step
from lib.workloads import models
from lib.workloads.catalogue import workload

JOB = Job("digits-mlp", 64, "sgd", trials=100, trial=20, hits=5, steps=6, span=4.0)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A short job's record, read back."""
    folder = tmp_path_factory.mktemp("running")
    running_noise.run([JOB], folder)
    assert running_noise.missing([JOB], folder) == [] and running_noise.results([JOB], folder.parent / "none").empty
    return running_noise.results([JOB], folder)


def gradient(network, x, y):
    return torch.cat([g.flatten() for g in torch.autograd.grad(cross_entropy(network(x), y), list(network.parameters()))])


def test_a_record_has_what_a_single_process_finds(table):
    """At the first two steps: of the workers' shares, and of chunks of the whole training set."""
    data, network = workload("digits-mlp").train(), models.fresh("mlp-64x2", JOB.trial)
    rate, order = float(JOB.cell.draw()["learning_rate"][JOB.trial]), lockstep.batches(len(data), 64, 0)
    steps, others = [], []
    for step in (1, 2):
        shares = [gradient(network, data.x[rows], data.y[rows]).double() for rows in next(order).chunk(2)]
        small, big = np.mean([g.square().sum() for g in shares]), sum(shares).div(2).square().sum()
        steps.append(of_step(float(small), float(big), 2, 32, len(data)))
        drawn = torch.randperm(len(data), generator=torch.Generator().manual_seed(step)).split(50)
        chunks = torch.stack([gradient(network, data.x[rows], data.y[rows]) for rows in drawn])
        found = noise_scale.estimate(noise_scale.gram(chunks), 50, 1350)
        others.append((found.trace, found.square))
        with torch.no_grad():
            for p, g in zip(network.parameters(), (sum(shares) / 2).float().split([p.numel() for p in network.parameters()])):
                p -= rate * g.view_as(p)
    decay = 3 / 5
    for column, each in (("running", steps), ("offline", others)):
        averaged = decay * np.array(each[0]) + np.array(each[1])
        assert table[column].tolist()[:2] == pytest.approx([each[0][0] / each[0][1], averaged[0] / averaged[1]], rel=1e-3)
    assert table.single[1] == pytest.approx(others[1][0] / others[1][1], rel=1e-3)
    assert table.step.tolist() == [1, 2, 3, 4, 5, 6] and table.high.isna()[0] and table.low[0] == 0
