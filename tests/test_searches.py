"""The table of searches says of every search what its record says, and is never used when it is stale."""

import io
import lzma
import random
import shutil

import numpy as np
import pandas as pd
import pytest

from lib.records import archive, searches, store
from lib.records.store import DATA


def test_a_random_tenth_of_the_table_follows_from_the_records():
    table = pd.read_csv(DATA / searches.FILE, low_memory=False)
    random.seed(len(table))
    places = random.sample(sorted(table.record.unique()), 100)
    rows = table[table.record.isin(places)].set_index(["record", "goal"])
    for place in places:
        head, trials = store.read(DATA / place)
        for name in trials.filter(like="steps@"):
            row = rows.loc[(place, float(name.removeprefix("steps@")))]
            first = np.sort(trials[name].dropna())
            assert row[searches.ORDER].dropna().tolist() == first[:10].tolist()
            assert row.met == len(first) and row.core_seconds == head["wall_s"]
            if len(first):
                well = trials.learning_rate[trials[name] <= 2 * first[0]]
                assert row.well == len(well)
                ends = row[["learning_rate_low", "learning_rate_high", "learning_rate_mid"]]
                expected = [well.min(), well.max(), np.exp(np.log(well).mean())]
                assert ends.to_list() == pytest.approx(expected)
                assert row.learning_rate == pytest.approx(
                    trials.learning_rate[trials[name].idxmin()]
                )


def test_every_packed_record_has_its_rows_and_no_row_is_without_a_record():
    folders = [folder.relative_to(DATA).as_posix() for folder in searches.folders()]
    packed = {
        f"{folder}/{place}" for folder in folders for place in archive.texts(DATA / folder)
    }
    assert set(pd.read_csv(DATA / searches.FILE, usecols=["record"]).record) == packed


@pytest.fixture
def data(tmp_path):
    """A folder of data with one packed workload, and its table."""
    name = "digits/digits-mlp-nats"
    shutil.copytree(DATA / name, tmp_path / name)
    searches.rebuild(tmp_path)
    return tmp_path


def test_a_table_of_other_archives_or_damaged_is_named_and_made_anew(data, recwarn):
    right = searches.table(data=data)
    assert not recwarn
    file = data / searches.FILE
    body = file.read_bytes()
    frame = pd.read_csv(io.BytesIO(lzma.decompress(body)))
    for spoiled in (body[:-9], b"", lzma.compress(frame[5:].to_csv(index=False).encode())):
        file.write_bytes(spoiled)
        with pytest.warns(UserWarning, match="searches.csv.xz: .*rebuilding it"):
            assert len(searches.table(data=data)) == len(right)
    (packed,) = data.rglob(archive.PACKED)
    lines = lzma.decompress(packed.read_bytes()).splitlines(keepends=True)
    packed.write_bytes(lzma.compress(b"".join(lines[:-1])))  # an archive that lost a record
    with pytest.warns(UserWarning, match="does not match the archives"):
        assert searches.table(data=data).record.nunique() == right.record.nunique() - 1


def test_loose_records_are_rows_as_soon_as_they_are_there(data):
    before = searches.table(data=data)
    loose = data / before.record[0]
    loose.parent.mkdir(parents=True)
    copy = loose.with_name(loose.name.replace("batch-", "batch-9"))
    copy.write_text(archive.text(loose), encoding="utf-8")
    after = len(before) + (before.record == before.record[0]).sum()
    assert len(searches.table(data=data)) == after
    loose.write_text(
        copy.read_text(encoding="utf-8"), encoding="utf-8"
    )  # packed, and not yet removed
    assert len(searches.table(data=data)) == after
    archive.pack(loose.parents[2])
    assert len(searches.rebuild(data)) == after


def test_middles_are_geometric_and_of_one_minus_the_momentum():
    steps, rates, momenta = [10.0, 30, 20, np.nan], [0.1, 9, 0.4, 9], [0.9, 0, 0.99, 0]
    table = {"steps@0.1": steps, "learning_rate": rates, "momentum": momenta}
    trials = pd.DataFrame(table).assign(best_error=0.1, last_step=30)
    (row,) = searches.rows_of("record", {"cell": {}}, trials)
    assert [row[name] for name in "k1 k2 k3 met well learning_rate".split()] == [
        10,
        20,
        30,
        3,
        2,
        0.1,
    ]
    assert row["learning_rate_mid"] == pytest.approx(0.2)
    assert (
        row["momentum_mid"] == pytest.approx(1 - 0.1 * 0.1**0.5)
        and row["momentum_high"] == 0.99
    )
