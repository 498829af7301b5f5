"""Training methods are what they say, each in a file of its own."""


import pytest
import torch
import torch.nn.functional as F

from lib.engine import flattening, lockstep
from lib.measuring import one_cell
from lib.methods import method
from lib.studies.cells import Cell
from lib.workloads import datasets, models

torch.set_num_threads(1)


def path_of(name: str, trials, executor, batches) -> torch.Tensor:
    """Weights [T, P] after these batches (x, y), by the engine's own update."""
    how, parameters = method(name), flattening.layers(executor.module)
    w, buffers = trials.w.clone(), how.begin(trials.w, parameters)
    for k, batch in enumerate(batches, start=1):
        lockstep.update(how, executor, parameters, trials, w, buffers, k, batch)
    return w


@pytest.mark.parametrize("space", [None, "learning_rate=0.002,beta1=0.9,beta2=0.999"])
def test_adam_is_torchs_to_rounding(space):
    """Forty steps of the digits' network, in double precision, several trials at once with hyperparameters of their own."""
    cell = Cell("digits-mlp", 32, "adam", trials=4, space=space)
    trials, data = one_cell.start(cell), datasets.load("digits").train
    picks = [pick for _, pick in zip(range(40), lockstep.batches(len(data), 32, 0))]
    nets = [models.fresh("mlp-64x2", seed).double() for seed in one_cell.seeds(cell)]
    drawn = zip(*(trials.drawn[name][:, 0].tolist() for name in ("learning_rate", "beta1", "beta2")))
    theirs = [torch.optim.Adam(net.parameters(), lr=r, betas=(a, b)) for net, (r, a, b) in zip(nets, drawn)]
    how, buffers, w = method("adam"), None, trials.w.double()
    exact = {name: values.double() for name, values in trials.drawn.items()}
    buffers = how.begin(w, ())
    for k, pick in enumerate(picks, start=1):
        for net in nets:
            net.zero_grad()
            F.cross_entropy(net(data.x[pick].double()), data.y[pick]).backward()
        g = torch.stack([torch.cat([p.grad.reshape(-1) for p in net.parameters()]) for net in nets])
        how.step(w, g, buffers, exact, k, ())
        for optimiser in theirs:
            optimiser.step()
        expected = torch.stack([flattening.flatten(net) for net in nets])
        assert torch.allclose(w, expected, rtol=1e-9, atol=1e-11)
