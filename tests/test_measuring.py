"""Commands say how they ended, records on what they were measured, and a search measured again is the same."""

import errno
import itertools
import math
import os
import signal
import subprocess
import sys

import pytest
import torch

from lib import ROOT, claims
from lib.claims import judging
from lib.measuring import machine, runner, sweeps
from lib.probes import replays
from lib.records import store
from lib.records.store import record
from lib.studies import plans
from lib.studies.search import Search
from lib.studies.study import Study


def stopped(minutes=None):
    return runner.stoppable(lambda: "3 of 4 are kept", "again", minutes)


def runs_on():
    turns = itertools.count()
    while next(turns) < 10**9:
        pass


FULL = OSError(errno.ENOSPC, "cannot be written (No space left on device)", "data/x.csv")
ENDS = [  # what happens, the exit status, and what is said
    (lambda: (_ for _ in ()).throw(FULL), 1, f"{FULL}"),
    (lambda: signal.raise_signal(signal.SIGINT), 130, "stopped by SIGINT"),
    (lambda: signal.raise_signal(signal.SIGHUP), 129, "stopped by SIGHUP"),
]


@pytest.mark.parametrize(("happens", "status", "said"), ENDS, ids=["disk", "SIGINT", "SIGHUP"])
def test_an_end_is_told_in_one_line_and_handlers_are_put_back(happens, status, said, heard, capsys):
    before = [signal.getsignal(s) for s in runner.SIGNALS]
    with pytest.raises(SystemExit) as ended, stopped():
        happens()
    assert ended.value.code == status
    assert capsys.readouterr().err == f"{said}; 3 of 4 are kept; to continue: again\n"
    assert [signal.getsignal(s) for s in runner.SIGNALS] == before


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarm clock")
def test_time_that_is_up_ends_what_runs_and_nothing_else(capsys):
    with stopped(0.2 / 60):
        runs_on()
    assert capsys.readouterr().out == "stopped by SIGALRM; 3 of 4 are kept; to continue: again\n"
    with pytest.raises(KeyboardInterrupt), stopped(5.0):
        raise KeyboardInterrupt
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def _dies(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_is_told_with_what_is_kept_and_how_to_go_on(capsys):
    with pytest.raises(SystemExit) as ended, stopped():
        runner.run(range(2), _dies, "t", "u", jobs=2)
    assert ended.value.code == 1 and capsys.readouterr().err.endswith(f"{runner.KILLED}; 3 of 4 are kept; to continue: again\n")
    runner.run(range(2), abs, "t", "u", jobs=2)  # new workers take the next calls


SAPPHIRE_RAPIDS = """\
processor\t: 0
cpu family\t: 6
model\t\t: 143
model name\t: Intel(R) Xeon(R) Processor @ 2.10GHz

processor\t: 1
model name\t: another
"""


def test_numbers_tell_processors_of_one_name_apart():
    name = "Intel(R) Xeon(R) Processor @ 2.10GHz, family 6"
    assert machine.described(SAPPHIRE_RAPIDS) == f"{name}, model 143"
    assert machine.described("Features\t: fp asimd\n") == ""


def test_rounding_tells_one_sum_from_another_and_nothing_else(monkeypatch):
    """The same in every process; different once products are summed otherwise, though by less than 0.1 %."""
    command = f"import torch; from lib.measuring import machine; torch.set_num_threads({torch.get_num_threads()}); "
    call = [sys.executable, "-c", command + "print(machine.rounding('float32'))"]
    again = subprocess.run(call, cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout.strip()
    usual = machine.rounding("float32")
    assert usual == again and usual != machine.rounding("bfloat16")
    linear = machine.functional.linear

    def halves(x, w):
        return linear(x[:, ::2], w[:, ::2]) + linear(x[:, 1::2], w[:, 1::2])

    x, w = torch.randn(64, 300), torch.randn(100, 300)
    torch.testing.assert_close(halves(x, w), linear(x, w), rtol=1e-3, atol=1e-3)
    monkeypatch.setattr(machine.functional, "linear", halves)
    machine._rounding.cache_clear()
    assert machine.rounding("float32") != usual
    machine._rounding.cache_clear()


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Three tiny searches, two of them on record."""
    cells = tuple(Search("digits-mlp", size, trials=8, hits=1, max_steps=80, space="lee2021") for size in (64, 128, 256))
    monkeypatch.setattr(plans, "STUDIES", {"s": Study("s", "", cells)})
    sweeps.run(Study("s", "", cells[:2]), tmp_path)
    return plans.STUDIES["s"]


def test_what_is_on_record_is_measured_again_and_comes_out_as_it_was(study, tmp_path):
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.csv")}
    replays.run(replays.Replay("s"), tmp_path)
    (row,) = replays.summary(tmp_path / "replays").to_dict("records")
    assert (row["study"], row["searches"], row["equal"], row["equal_steps"], row["equal_result"]) == ("s", 2, 2, 2, 2)
    assert row["factor"] == 1 and all(file.read_bytes() == body for file, body in before.items())
    assert not record(study.searches[2], tmp_path).exists()


def test_a_record_that_says_otherwise_is_found_out(study, tmp_path):
    file = record(study.searches[0], tmp_path)
    head, table = store.read(file, study.searches[0])
    goals = [column for column in table if column.startswith("steps@")]
    about = {k: v for k, v in head.items() if k not in ("protocol", "cell", "rows", "sha256")}
    store.write(file, study.searches[0], table.assign(**{goal: 2 * table[goal] for goal in goals}), about)
    replays.run(replays.Replay("s"), tmp_path)
    (row,) = replays.summary(tmp_path / "replays").to_dict("records")
    assert (row["equal"], row["equal_steps"], row["equal_result"], row["factor"]) == (1, 1, 1, pytest.approx(2))


def test_what_is_kept_is_read_back_and_made_anew_for_other_code_or_data(tmp_path, monkeypatch):
    calls = []

    def compute():
        calls.append(1)
        return {"low": 0.5, "high": math.inf}

    for _ in range(2):
        assert claims.kept("x", compute, (tmp_path,)) == {"low": 0.5, "high": math.inf}
    assert len(calls) == 1 and len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(judging, "_digest", lambda: "other")
    assert claims.kept("x", compute, (tmp_path,)) and len(calls) == 2


def test_what_cannot_be_kept_is_computed_once_or_kept_elsewhere(tmp_path, monkeypatch):
    calls = []

    def no_room(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def compute():
        calls.append(1)
        return {"low": 0.5}

    monkeypatch.setattr(os, "fsync", no_room)
    monkeypatch.setattr(judging, "UNWRITTEN", {})
    for _ in range(2):
        assert claims.kept("x", compute, (tmp_path / "a",)) == {"low": 0.5}
    assert len(calls) == 1 and not list((tmp_path / "a").iterdir())
    monkeypatch.undo()
    (tmp_path / "file").touch()
    assert claims.kept("y", compute, (tmp_path / "file", tmp_path / "b")) and any((tmp_path / "b").iterdir())
