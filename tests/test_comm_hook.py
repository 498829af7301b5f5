"""The communication hook: real processes do what the simulation says, and resume from a checkpoint without a trace."""

import contextlib
import copy
import dataclasses
import io
import itertools
from collections import OrderedDict

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

from lib.engine import lockstep
from lib.engine.sequential import SequentialExecutor
from lib.messages import COMPRESSORS, Messages, exchanges
from lib.workers import processes
from lib.workers.hook import SparseState, sparse_hook
from lib.workers.noise_hook import NoiseState
from lib.workloads import datasets, models

EXCHANGES = [
    Messages(4, "top-k", 0.01),
    Messages(4, "top-k", 0.05, feedback=False),
    Messages(4, "redsync", 0.01, warm_up=5),
    Messages(4, "top-k", 0.01, by_layer=True),
    Messages(4, "top-k", 1.0),
]
# In float64: which entry is k-th largest depends on the last bit, and digits have ties (pixels of equal value).
RUNS = [(messages, "float64") for messages in EXCHANGES] + [(EXCHANGES[-1], "float32")]


def exchanging(network, messages):
    """Puts into the network's `.grad` what all workers would agree on for a batch, simulated here."""
    parameters = list(network.parameters())
    sizes = [p.numel() for p in parameters]
    exchange = exchanges.Exchange(messages, _flat(parameters).detach()[None], None, sizes, 0)

    class Executor:
        """One trial, in the network's precision."""

        gradients_by_worker = SequentialExecutor.gradients_by_worker

        def gradients(self, w, x, y):
            loss = nn.functional.cross_entropy(network(x), y)
            g = torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters)])
            return loss.detach()[None], g[None], torch.ones(1, dtype=torch.bool)

    def backward(x, y):
        _, g, _ = exchange.gradients(Executor(), _flat(parameters).detach()[None], x, y)
        for p, part in zip(parameters, g[0].split(sizes), strict=True):
            p.grad = part.view_as(p)

    return backward


def _path(run, backward_of, rows_of=slice(None)):
    """Weights [21, P] before the first and after every step of momentum, in batches of 64.

    backward_of: for a network, what puts a batch's gradient into it; rows_of: our part of a batch.
    """
    data, dtype = datasets.load("digits").train, getattr(torch, run[1])
    network = models.fresh("mlp-64x2", 0).to(dtype)
    backward, path = backward_of(network), [_flat(network.parameters()).detach()]
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    for rows in itertools.islice(lockstep.batches(len(data), 64, 0), 20):
        optimizer.zero_grad()
        backward(data.x[rows][rows_of].to(dtype), data.y[rows][rows_of])
        optimizer.step()
        path.append(_flat(network.parameters()).detach())
    return torch.stack(path)


def _by_hook(rank):
    """The path of every run on four processes with the hook."""

    def backward_of(network):
        ddp = nn.parallel.DistributedDataParallel(network)
        fields = dataclasses.asdict(messages)
        del fields["workers"]
        ddp.register_comm_hook(SparseState(ddp, **fields), sparse_hook)
        return lambda x, y: nn.functional.cross_entropy(ddp(x), y).backward()

    paths = []
    for run in RUNS:
        messages = run[0]
        paths.append(_path(run, backward_of, slice(16 * rank, 16 * (rank + 1))))
        assert len(set(_everyone(paths[-1][-1].sum().item()))) == 1, "all have the same weights"
    return paths


@pytest.fixture(scope="module")
def trained():
    return dict(zip(RUNS, processes.launch(_by_hook, 4, 300), strict=True))


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run[0].compressor}-{run[1]}")
def test_four_processes_with_the_hook_take_the_steps_of_the_simulation(run, trained):
    expected = _path(run, lambda network: exchanging(network, run[0]))
    assert (expected[-1] - expected[0]).abs().max() > 0.01
    difference = (trained[run] - expected).abs().max()
    assert difference < (1e-6 if run[1] == "float32" else 1e-13)


def _hooked(module, ddp=None, **messages):
    """The module as a DistributedDataParallel of several buckets, and its hook's state."""
    model = nn.parallel.DistributedDataParallel(module, **{"bucket_cap_mb": 1e-4, **(ddp or {})})
    state = SparseState(model, **{"compressor": "top-k", "density": 0.05, **messages})
    model.register_comm_hook(state, sparse_hook)
    return model, state


def _steps(rank, saved, last):
    """Train up to a step, from the start or from a saved state: (weights, residual and
    statistics; a checkpoint).
    """
    data = datasets.load("digits").train
    module = models.fresh("mlp-64x2", 0)
    model, state = _hooked(module, compressor="rand-k", by_layer=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    parts = {"model": model, "optimizer": optimizer, "hook": state}
    for name, part in parts.items() if saved else ():
        part.load_state_dict(saved[name])
    for step in range(saved["step"] if saved else 0, last):
        rows = torch.arange(32) + 64 * step % 1024 + 32 * rank
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data.x[rows]), data.y[rows]).backward()
        optimizer.step()
    checkpoint = io.BytesIO()
    torch.save({name: part.state_dict() for name, part in parts.items()} | {"step": last}, checkpoint)
    checkpoint.seek(0)
    ends = _flat(model.parameters()), _flat(state.residual.values())
    return {"w": ends[0], "all": torch.cat(ends), "stats": state.stats()}, checkpoint


def _resumed(rank):
    """The result of fifteen steps, and of seven plus eight from a checkpoint, on every worker."""
    uninterrupted, _ = _steps(rank, None, 15)
    _, checkpoint = _steps(rank, None, 7)
    resumed, _ = _steps(rank, torch.load(checkpoint, weights_only=True), 15)
    return _everyone((uninterrupted, resumed))


def _network(dtype=torch.float64):
    """A body and a head, in more than one bucket."""
    torch.manual_seed(0)
    return nn.Sequential(OrderedDict(body=nn.Linear(6, 8), bent=nn.ReLU(), a=nn.Linear(8, 3))).to(dtype)


def _backward(model, x):
    model(x.to(next(model.parameters()).dtype)).square().sum().backward()


def _flat(tensors):
    return torch.cat([t.flatten().double() for t in tensors])


def _gradients(module):
    return _flat(torch.zeros_like(p) if p.grad is None else p.grad for p in module.parameters())


def _lost(rank, passes, dtype=torch.float64, join=False, synchronised=False, ddp=None, **messages):
    """The share of the workers' summed gradients that is neither applied nor kept, at fixed weights.

    passes: in each of this worker's steps, all but the last under `no_sync` unless all are to be `synchronised`.
    """
    module = _network(dtype)
    reference = copy.deepcopy(module)
    model, state = _hooked(module, ddp, **messages)
    random = torch.Generator().manual_seed(rank)
    summed, applied = (torch.zeros(len(_gradients(module)), dtype=torch.float64) for _ in range(2))
    with model.join() if join else contextlib.nullcontext():
        for count in passes:
            reference.zero_grad()
            module.zero_grad(set_to_none=not ddp)
            for i in range(1, count + 1):
                x = torch.randn(4, 6, generator=random)
                with model.no_sync() if i < count and not synchronised else contextlib.nullcontext():
                    _backward(model, x)
                _backward(reference, x)
            summed += _gradients(reference)
            applied += _gradients(module)
    total, kept = summed / 2, _flat(state.residual.values()) / 2
    dist.all_reduce(total)
    dist.all_reduce(kept)
    dist.broadcast(applied, src=1)  # which has the most steps
    assert kept.any() and applied.any()
    return float((total - applied - kept).norm() / total.norm())


def _shares_lost(rank):
    """By case."""
    steps = [1] * 12
    cases = {
        "views": (steps, {"ddp": {"gradient_as_bucket_view": True}}),
        "no_sync": ([1, 2, 3, 2], {}),
        "every pass synchronised": ([1, 2, 3, 2], {"synchronised": True}),
        "bfloat16": (steps, {"dtype": torch.bfloat16}),
        "static graph": (steps, {"ddp": {"static_graph": True}}),
        "uneven batches": ([1] * (4 + 3 * rank), {"join": True}),
    }
    for name in COMPRESSORS[1:]:  # all but "dense", which keeps nothing
        cases[name] = steps, {"compressor": name, "density": 0.3, "by_layer": True}
    return {name: _lost(rank, passes, **options) for name, (passes, options) in cases.items()}


def _everyone(value):
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def _spoilt(rank):
    """One of two workers has one number that is not finite, at the third step of four.

    Whether every worker's gradients are then not finite and its residual unchanged, and all is finite at the end.
    """
    outcomes = {}
    for feedback, part, bad in itertools.product((True, False), ("body", "a"), ("nan", "inf")):
        module = _network()
        model, state = _hooked(module, density=0.1, feedback=feedback)
        for step in range(4):
            module.zero_grad()
            before = _flat(state.residual.values())
            loss = model(torch.randn(4, 6, dtype=torch.float64)).square().sum()
            if step == 2 and rank == 1:
                loss = loss + getattr(module, part).weight[0, 2] * float(bad)
            loss.backward()
            if step == 2:
                same = torch.equal(before, _flat(state.residual.values()))
                held_back = same and not _gradients(module).isfinite().any()
        ends = torch.cat([_gradients(module), _flat(state.residual.values())])
        right = held_back and bool(ends.isfinite().all()) and state.stats()["steps"] == 4
        outcomes[f"{feedback}, {part}, {bad}"] = all(_everyone(right))
    return outcomes


def _scaled(rank):
    """Final weights and residuals of training: plain, and with a loss scale that grows
    every other step and falls on overflow.
    """
    data, ends = datasets.load("digits").train, []
    for scaled in (False, True):
        module = models.fresh("mlp-64x2", 0)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2, enabled=scaled)
        model, state = _hooked(module, density=0.02, scaler=scaler if scaled else None)
        # Each decides by itself whether to skip a step
        first, *others = module.parameters()
        optimizers = [torch.optim.SGD(p, lr=0.05, momentum=0.9) for p in ([first], others)]
        for step in range(14):
            if step == 5 and not scaled:
                continue
            rows = torch.arange(16) + 32 * step + 16 * rank
            module.zero_grad()
            loss = scaler.scale(nn.functional.cross_entropy(model(data.x[rows]), data.y[rows]))
            spoils = next(module.parameters())[3, 4] * torch.inf if step == 5 and rank else 0
            (loss + spoils).backward()
            for optimizer in optimizers:
                scaler.step(optimizer)
            scaler.update()
        ends.append((_flat(module.parameters()).detach(), _flat(state.residual.values())))
    return ends


CASES = (_shares_lost, _spoilt, _scaled, _resumed)


def _cases(rank):
    return {case.__name__: case(rank) for case in CASES}


@pytest.fixture(scope="module")
def two():
    """What two processes find in all cases."""
    return processes.launch(_cases, 2, 300)


def test_what_is_neither_applied_nor_kept_is_nothing(two):
    lost = two["_shares_lost"]
    assert {name: share for name, share in lost.items() if not share < 1e-7} == {}
    assert all(share < 1e-14 for name, share in lost.items() if not name.startswith("bfloat16")), "rounding of doubles"


def test_a_gradient_that_is_not_finite_stops_every_worker_and_changes_nothing_that_is_kept(two):
    assert [name for name, right in two["_spoilt"].items() if not right] == []


def test_a_run_that_is_interrupted_goes_on_identically_from_its_checkpoint(two):
    workers = two["_resumed"]
    for uninterrupted, resumed in workers:
        assert torch.equal(uninterrupted["all"], resumed["all"])
        assert uninterrupted["stats"] == resumed["stats"]
    assert torch.equal(*(uninterrupted["w"] for uninterrupted, _ in workers)), "workers agree"
    stats = workers[0][0]["stats"]
    assert stats["steps"] == 15 and stats["dense_bytes"] == 4 * 8970
    assert 0.9 < stats["bytes"] / (8 * 0.05 * 8970) <= 1.01  # a layer sends at least one entry


def test_a_loss_scale_that_changes_and_a_step_that_its_scaler_skips_change_no_bit(two):
    plain, scaled = two["_scaled"]
    assert all(map(torch.equal, plain, scaled)) and plain[1].any()


@pytest.fixture
def alone(monkeypatch):
    """This process as the only worker."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_a_foreign_dictionary_is_refused_by_name_and_changes_nothing(alone):
    state = SparseState(nn.parallel.DistributedDataParallel(nn.Linear(8, 5)))
    counts = {"steps": 3, "elements": 4, "entries": 5}
    good = {"worker": "rank 0 of 1", "residual": [torch.ones(40), torch.ones(5)], **counts}
    others = {"epoch": 3}, {"residual": [torch.ones(40), torch.ones(4)]}
    workers = {"worker": "rank 0 of 2"}, {"worker": "rank 1 of 1"}
    for foreign in (None, *(good | change for change in others + workers)):
        with pytest.raises(ValueError, match=r"^saved: .* of shapes .*rank 0 of 1.*\(40,\), \(5,\)"):
            state.load_state_dict(foreign)
    assert not _flat(state.residual.values()).any() and state.stats()["steps"] == 0
    state.load_state_dict(good)
    assert _flat(state.residual.values()).all() and state.stats()["elements"] == 4 / 3


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3, dtype=torch.cfloat))


def test_a_model_that_the_hooks_do_not_know_is_refused_by_name(alone):
    plain, partly, ddp = nn.Linear(8, 5), nn.Linear(8, 5), nn.parallel.DistributedDataParallel
    sharded = FullyShardedDataParallel(nn.Linear(8, 5), device_id=torch.device("cpu"))
    ddp._set_params_and_buffers_to_ignore_for_model(partly, ["weight"])
    no_ddp = " .* it must be the DistributedDataParallel"
    for state, model, message in (
        (SparseState, plain, "model: 'Linear'" + no_ddp),
        (NoiseState, plain, "model: 'Linear'" + no_ddp),
        (SparseState, sharded, "model: 'FullyShardedDataParallel'" + no_ddp),
        (NoiseState, sharded, "model: 'FullyShardedDataParallel'" + no_ddp),
        (SparseState, ddp(plain, find_unused_parameters=True), "find_unused_parameters: True is not"),
        (SparseState, ddp(partly), r"ignored parameters: \['weight'\] is not"),
        (SparseState, ddp(Complex()), r"complex parameters: \['w'\] is not"),
        (NoiseState, ddp(plain), "workers: 1 is not allowed; it must be at least 2, so that gradients can be compared"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            state(model)
