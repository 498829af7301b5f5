"""Searches measured again come out as they were, and it is told where they do not."""

import pytest

from lib.measuring import sweeps
from lib.probes import replays
from lib.records import store
from lib.records.places import record
from lib.studies import plans
from lib.studies.cells import Cell
from lib.studies.study import Study


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Three tiny searches, two of them on record."""
    cells = tuple(Cell("digits-mlp", size, trials=8, hits=1, max_steps=80, space="lee2021") for size in (64, 128, 256))
    monkeypatch.setattr(plans, "STUDIES", {"s": Study("s", "", cells)})
    sweeps.run(Study("s", "", cells[:2]), tmp_path)
    return plans.STUDIES["s"]


def test_what_is_on_record_is_measured_again_and_comes_out_as_it_was(study, tmp_path):
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.csv")}
    replays.run(replays.Replay("s"), tmp_path)
    (row,) = replays.summary(tmp_path / "replays").to_dict("records")
    assert (row["study"], row["searches"], row["equal"], row["equal_steps"], row["equal_result"]) == ("s", 2, 2, 2, 2)
    assert row["factor"] == 1 and all(file.read_bytes() == held for file, held in before.items())
    assert not record(study.cells[2], tmp_path).exists()


def test_a_record_that_says_otherwise_is_found_out(study, tmp_path):
    file = record(study.cells[0], tmp_path)
    head, table = store.read(file, study.cells[0])
    goals = [column for column in table if column.startswith("steps@")]
    about = {k: v for k, v in head.items() if k not in ("protocol", "cell", "rows", "sha256")}
    store.write(file, study.cells[0], table.assign(**{goal: 2 * table[goal] for goal in goals}), about)
    replays.run(replays.Replay("s"), tmp_path)
    (row,) = replays.summary(tmp_path / "replays").to_dict("records")
    assert (row["equal"], row["equal_steps"], row["equal_result"], row["factor"]) == (1, 1, 1, pytest.approx(2))


def test_samples_are_drawn_alike_and_refused_by_name(study, tmp_path):
    assert len(replays.Replay("s", sample=1).cells(tmp_path)) == 1
    assert replays.Replay("s").cells(tmp_path) == replays.Replay("s").cells(tmp_path)
    for field, value in (("study", "x"), ("sample", 0), ("sample", 1001), ("seed", -1)):
        with pytest.raises(ValueError, match=f"{field}: {value!r} is not allowed"):
            replays.Replay(**{"study": "s", field: value})
