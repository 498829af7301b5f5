"""The communication hook: real processes do what the simulation says, and go on from a checkpoint as if nothing were."""

import os
import re
import signal
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from lib import ROOT
from lib.engine import lockstep
from lib.messages.settings import Messages
from lib.workers import hook, processes
from lib.workers.hook import SparseState, sparse_hook
from lib.workers.processes import Run
from lib.workloads import datasets, models

EXCHANGES = [
    Messages(4, "top-k", 0.01),
    Messages(4, "top-k", 0.05, feedback=False),
    Messages(4, "gaussian-k", 0.01),
    Messages(4, "redsync", 0.01, warm_up=5),
    Messages(4, "top-k", 0.01, by_layer=True),
    Messages(4, "top-k", 1.0),
]
# In float64: which entry is the k-th largest hangs on the last bit, and digits have ties (pixels of one value).
RUNS = [Run(4, messages=m, precision="float64") for m in EXCHANGES] + [Run(4, messages=EXCHANGES[-1])]


@pytest.fixture(scope="module")
def trained():
    return dict(zip(RUNS, processes.train(RUNS, datasets.load("digits").train), strict=True))


@pytest.mark.parametrize("run", RUNS, ids=lambda r: f"{r.messages.compressor}-{r.messages.density}-{r.precision}")
def test_four_processes_with_the_hook_take_the_steps_of_the_simulation(run, trained):
    expected = processes.reference(run, datasets.load("digits").train)
    assert (expected[-1] - expected[0]).abs().max() > 0.01
    difference = processes.largest_difference(trained[run], expected)
    assert difference.max() < (1e-6 if run.precision == "float32" else 1e-13)


def test_sparse_messages_change_the_path(trained):
    data = datasets.load("digits").train
    whole = processes.reference(Run(4, precision="float64"), data)[-1]
    assert (trained[RUNS[5]][-1] - whole).abs().max() < 1e-13
    assert all((trained[run][-1] - whole).abs().max() > 1e-3 for run in RUNS[:5])


def _train(rank, folder, steps, kill_at, by_layer):
    """Two workers; checkpoints at `kill_at`, then dies by its own hand; goes on from a checkpoint where there is one."""
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    store = dist.FileStore(f"{folder}/store-{kill_at}", 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    data = datasets.load("digits").train
    cap = {"bucket_cap_mb": 0.005} if by_layer else {}  # by layer: several buckets, dealt anew after the first step
    model = nn.parallel.DistributedDataParallel(models.fresh("mlp-64x2", 0), **cap)
    state = SparseState(model, compressor="rand-k", density=0.05, by_layer=by_layer)
    model.register_comm_hook(state, sparse_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    file, begin = f"{folder}/checkpoint-{rank}.pt", 0
    if os.path.exists(file):
        saved = torch.load(file, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        state.load_state_dict(saved["hook"])
        begin = saved["step"]
    for step in range(begin, steps):
        rows = torch.arange(32) + 64 * step % 1024 + 32 * rank
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data.x[rows]), data.y[rows]).backward()
        optimizer.step()
        if step + 1 == kill_at:
            saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "hook": state.state_dict()}
            torch.save({**saved, "step": step + 1}, file)
            dist.barrier()
            os.kill(os.getpid(), signal.SIGKILL)
    w = torch.cat([p.detach().flatten() for p in model.parameters()])
    torch.save((w, state.residual, state.stats()), f"{folder}/end-{rank}.pt")
    del model  # one that outlives the process group can hang the process
    dist.destroy_process_group()


@pytest.mark.parametrize("by_layer", [False, True])
def test_a_run_that_is_killed_goes_on_identically_from_its_checkpoint(tmp_path, by_layer):
    ends = []
    for name, kills in (("whole", [None]), ("killed", [7, None])):
        folder = tmp_path / name
        folder.mkdir()
        for kill_at in kills:
            context = mp.start_processes(
                _train, (str(folder), 15, kill_at, by_layer), nprocs=2, join=False, start_method="spawn"
            )
            if kill_at:
                with pytest.raises(mp.ProcessExitedException, match="SIGKILL"):
                    context.join(300)
                for process in context.processes:
                    process.join()
            else:
                while not context.join(300):
                    pass
        ends.append([torch.load(folder / f"end-{rank}.pt") for rank in range(2)])
    for a, b in zip(*ends, strict=True):
        assert torch.equal(a[0], b[0]) and a[2] == b[2]
        assert all(torch.equal(a[1][name], b[1][name]) for name in a[1])
    assert torch.equal(ends[0][0][0], ends[0][1][0]), "workers agree"
    stats = ends[0][0][2]
    assert stats["steps"] == 15 and stats["dense_bytes"] == 4 * 8970
    assert 0.9 < stats["bytes"] / (8 * 0.05 * 8970) <= 1.01  # a layer sends at least one entry


@pytest.fixture
def alone(monkeypatch):
    """This process as the only worker."""
    told = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "0", "GLOO_SOCKET_IFNAME": "lo"}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.mark.parametrize(("compressor", "density"), [("dense", 1.0), ("top-k", 0.1)])
def test_the_statistics_tell_the_bytes_that_are_exchanged(alone, monkeypatch, compressor, density):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 5))
    state = SparseState(model, compressor=compressor, density=density, feedback=False)
    model.register_comm_hook(state, sparse_hook)
    exchanged, gather = [], dist.all_gather

    def listening(everyone, mine, group=None):
        exchanged.append(mine.numel() * mine.element_size())
        return gather(everyone, mine, group=group)

    monkeypatch.setattr(dist, "all_gather", listening)
    model(torch.randn(4, 8)).square().sum().backward()
    del model  # one that outlives the process group can hang the process
    count, indices, values = exchanged
    assert state.stats()["bytes"] == indices + values and count == 8
    assert state.stats()["dense_bytes"] == 4 * 45


def test_the_command_trains_on_the_examples_of_its_workload(alone, monkeypatch):
    said, sizes, batches = [], [], lockstep.batches
    monkeypatch.setattr(lockstep, "batches", lambda n, *more, **named: sizes.append(n) or batches(n, *more, **named))
    hook.main(["--workload", "digits-mlp-168", "--steps", "2"], said.append)
    assert "MLP on 168 digits, 1 workers, top-k at density 0.01: validation error" in said[0] and sizes == [168]
    assert not dist.is_initialized()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--steps -1", "steps: -1 is not allowed; it must be a whole number from 1 to"),
        ("--steps 1000000000", "steps: 1000000000 is not allowed"),
        ("--learning-rate nan", "learning-rate: nan is not allowed; it must be a positive finite number"),
        ("--learning-rate inf", "learning-rate: inf is not allowed"),
        ("--learning-rate 0", "learning-rate: 0.0 is not allowed"),
        ("--learning-rate=-0.1", "learning-rate: -0.1 is not allowed"),
        ("--density 0", r"density: 0.0 is not allowed; it must be a number in \(0, 1\]"),
        ("--density nan", "density: nan is not allowed"),
        ("--batch-size 0", "batch-size: 0 is not allowed; it must be a whole number from 1 to 1350 .digits-mlp has 1350"),
        ("--batch-size 1351", "batch-size: 1351 is not allowed"),
        ("--workload digits", "workload: 'digits' is unknown; allowed: digits-mlp"),
        ("--compressor all", "compressor: invalid choice: 'all'"),
        ("--steps x", "steps: invalid int value: 'x'"),
    ],
)
def test_a_bad_argument_ends_the_command_before_workers_meet(alone, monkeypatch, capsys, arguments, message):
    monkeypatch.setattr(dist, "init_process_group", lambda backend: pytest.fail("workers meet"))
    with pytest.raises(SystemExit, match="2"):
        hook.main(arguments.split())
    assert re.search(message, capsys.readouterr().err)


def test_a_data_set_that_is_not_there_ends_the_command_as_a_bad_argument_does(alone, monkeypatch, capsys):
    absent = datasets.DatasetError("mnist: no such file; download it")
    monkeypatch.setattr(datasets, "load", lambda *_: (_ for _ in ()).throw(absent))
    monkeypatch.setattr(dist, "init_process_group", lambda backend: pytest.fail("workers meet"))
    with pytest.raises(SystemExit, match="2"):
        hook.main(["--workload", "mnist-fnn-3"])
    assert "error: mnist: no such file; download it" in capsys.readouterr().err


def test_a_run_that_diverges_is_not_given_an_error(alone):
    said = []
    hook.main(["--steps", "30", "--learning-rate", "1e38"], said.append)
    assert "diverged (it needs a smaller learning rate) after 30 steps" in said[0]


def test_without_torchrun_the_command_says_how_it_is_started(monkeypatch, capsys):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(SystemExit, match="2"):
        hook.main([])
    assert "RANK: it is not set; start the workers with torchrun --nproc-per-node" in capsys.readouterr().err


def test_of_two_workers_one_says_what_is_wrong_and_no_traceback_hides_it():
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "lib.workers.hook"]
    call = [*command, "--batch-size", "676"]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=120)
    said = [line for line in done.stderr.splitlines() if "676 is not allowed" in line]
    worker, report = said  # a line of the first worker's, and the end of torchrun's report
    assert worker.startswith("torchrun --nproc-per-node") and "1350 training examples for 2 workers" in worker
    assert done.stderr.rstrip(" =\n").endswith(report) and report.lstrip().startswith("ValueError: batch-size: 676")
    assert done.returncode != 0 and "exitcode  : 2" in done.stderr


def test_bad_messages_of_a_run():
    with pytest.raises(ValueError, match="messages: .* as many workers \\(2\\)"):
        Run(2, messages=Messages(4))
