"""Records: whole or absent, and never mixed with those of another cell or protocol."""

import dataclasses
import errno
import os
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from chapters.batch_ramps import searches as ramp_searches
from chapters.decay_and_batch import experiments as decay_searches
from chapters.federated import experiments as federated
from chapters.frameworks.framework_times import FrameworkTimes
from chapters.language_model import branches, ngrams, pruned_layers
from chapters.late_workers import delays
from chapters.leakage import experiments as leakage
from chapters.local_steps import experiments as local
from chapters.lora import experiments as lora
from chapters.moving_masks import experiments as masks
from chapters.noise_in_norms import experiments as norm_paths
from chapters.operator_cost.message_times import Collectives, Feedback, Hooked, Operators
from chapters.own_workload import replays as own_replays
from chapters.parts_of_a_network import growing, halves, subnetworks
from chapters.paths import walks
from chapters.receptive_fields import experiments as field_searches
from chapters.spiking import experiments as spiking
from chapters.spiking.experiments import SpikingTimes
from chapters.theory import running_noise
from chapters.without_backpropagation import boolean_readout
from lib import ROOT, own
from lib.probes import folds, portraits, replays, timings, tracks, unseen
from lib.probes.step_times import MethodTimes, SparseTimes, StepTimes
from lib.records import archive, store
from lib.records.store import DATA
from lib.studies import cells, plans
from lib.studies.cells import Cell
from lib.workloads import catalogue

CELL = Cell("digits-mlp", 16, sparsity=0.9, trials=2)
TABLE = pd.DataFrame(
    {"trial": [0, 1], "status": ["complete", "stopped"], "steps@0.04": [12.0, np.nan], "rate": [1 / 3, 0.1]}
)


@pytest.fixture
def record(tmp_path):
    file = store.path(tmp_path, CELL)
    store.write(file, CELL, TABLE, {"torch": "x"})
    return file


def test_what_is_written_is_read(record):
    head, table = store.read(record, CELL)
    assert head["torch"] == "x" and head["cell"]["sparsity"] == 0.9
    pd.testing.assert_frame_equal(table, TABLE, rtol=1e-9)


@pytest.mark.parametrize(
    ("cell", "digest"),
    [
        (Cell("digits-mlp", 64), "ced44ecf"),
        (Cell("mnist-simple-cnn", 64, sparsity=0.9, trials=32), "c775e484"),
        (Cell("digits-cnn", 1, "sgd", 0.5, replicate=2), "ab654258"),
        (Cell("digits-mlp", 64, "adam"), "ef0874b0"),
        (Cell("mnist-fnn-3", 512, messages={"density": 0.01}), "8b382718"),
    ],
)
def test_digests_are_frozen(cell, digest):
    """If this fails, records in data/ would no longer be found: give a new field a default, or raise PROTOCOL."""
    assert store.digest(cell) == digest


def test_a_new_field_with_a_default_leaves_old_records_valid(record):
    @dataclasses.dataclass(frozen=True)
    class Cell(cells.Cell):
        extra: str = "none"

    newer = Cell("digits-mlp", 16, sparsity=0.9, trials=2)
    assert store.digest(newer) == store.digest(CELL)
    assert len(store.read(record, newer)[1]) == 2
    assert store.digest(dataclasses.replace(newer, extra="some")) != store.digest(CELL)


FINISHED = ("digits", "digits-sparsest", "digits-methods", "messages", "message-variants", "messages-rates", "both-sparsities")


def test_all_records_of_finished_studies_are_found():
    assert not [cell for name in FINISHED for cell in plans.STUDIES[name].cells if not store.exists(store.record(cell))]


def test_a_changed_workload_is_another_cell(monkeypatch):
    changed = dataclasses.replace(catalogue.workload("digits-mlp"), goals=(0.5,))
    before = store.digest(CELL)
    monkeypatch.setitem(catalogue.WORKLOADS, "digits-mlp", changed)
    assert store.digest(CELL) != before


def damage(how):
    def truncated(text):
        return text[:-10]

    def binary(text):
        return text.replace("complete", "\udcff")

    def of_another_cell(text):
        return text.replace('"batch_size": 16', '"batch_size": 32')

    return locals()[how]


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("truncated", "damaged"),
        ("of_another_cell", "batch_size"),
        ("binary", "not a record .* move it out of data/"),
    ],
)
def test_a_bad_record_is_named_and_refused(record, how, says):
    record.write_bytes(damage(how)(record.read_text(encoding="utf-8")).encode(errors="surrogateescape"))
    with pytest.raises(store.RecordError, match=says) as caught:
        store.read(record, CELL)
    assert str(record) in str(caught.value)


def test_a_folder_in_the_place_of_a_record_is_named(tmp_path):
    (file := store.path(tmp_path, CELL)).mkdir(parents=True)
    for read in (store.head, store.read, lambda file: store.gather([CELL], lambda *_: file, tmp_path)):
        with pytest.raises(store.RecordError, match=rf"{file}: cannot be read \(.*\); move it out of data/"):
            read(file)


def test_a_full_disk_names_the_file_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
    file = store.path(tmp_path, CELL)
    with pytest.raises(OSError, match=rf"cannot be written \(No space left on device\): '{file}'") as caught:
        store.write(file, CELL, TABLE, {})
    assert caught.value.errno == errno.ENOSPC and not list(file.parent.iterdir())


TIMED = {
    kind.__name__.lower(): kind
    for kind in (SparseTimes, StepTimes, MethodTimes, FrameworkTimes, Operators, Collectives, Hooked, Feedback, SpikingTimes)
}
KINDS = {  # folder under data/: what its records tell of, where such a record lies, and what its first line says
    "timings": (lambda file, own: TIMED[file.name.partition("-")[0]](**own), timings.TIMINGS.record, {"cores"}),
    "portraits": (lambda file, own: portraits.Portrait(**own), portraits.GALLERY.record, {"source", "wall_s"}),
    "folds": (lambda file, own: folds.Folds(**own), folds.record, {"source", "wall_s", "precision"}),
    "tracks": (lambda file, own: tracks.Track(**own), tracks.FOLLOWED.record, {"source", "wall_s"}),
    "paths": (lambda file, own: walks.Walk(**own), walks.record, {"source", "wall_s"}),
    "running": (lambda file, own: running_noise.Job(**own), running_noise.JOBS.record, {"source", "wall_s", "precision"}),
    "delays": (lambda file, own: delays.Job(**own), delays.record, {"source", "wall_s", "precision"}),
    "ngrams": (lambda file, own: ngrams.Rungs(**own), ngrams.record, {"source", "wall_s"}),
    "flips": (lambda file, own: boolean_readout.Descent(**own), boolean_readout.record, {"source", "wall_s", "precision"}),
    "fields": (lambda file, own: field_searches.Search(**own), field_searches.FIELDS.record, {"source", "wall_s", "precision"}),
    "federated": (lambda file, own: federated.Search(**own), federated.FEDERATED.record, {"source", "wall_s", "precision"}),
    "leakage": (lambda file, own: leakage.Search(**own), leakage.LEAKAGE.record, {"source", "wall_s", "precision"}),
    "decay": (lambda file, own: decay_searches.Search(**own), decay_searches.DECAYED.record, {"source", "wall_s", "precision"}),
    "ramps": (lambda file, own: ramp_searches.Search(**own), ramp_searches.RAMPS.record, {"source", "wall_s", "precision"}),
    "local-steps": (lambda file, own: local.Search(**own), local.LOCAL.record, {"source", "wall_s", "precision"}),
    "spikes": (lambda file, own: spiking.Search(**own), spiking.SPIKES.record, {"source", "wall_s", "precision"}),
    "norms": (lambda file, own: norm_paths.Path(**own), norm_paths.PATHS.record, {"source", "wall_s", "precision"}),
    "lora": (lambda file, own: lora.Search(**own), lora.CONTINUED.record, {"source", "wall_s", "precision"}),
    "masks": (lambda file, own: masks.Search(**own), masks.MASKED.record, {"source", "wall_s", "precision"}),
    "subnetworks": (lambda file, own: subnetworks.Search(**own), subnetworks.record, {"source", "wall_s", "precision"}),
    "growing": (lambda file, own: growing.Search(**own), growing.record, {"source", "wall_s", "precision"}),
    "halves": (lambda file, own: halves.Search(**own), halves.record, {"source", "wall_s", "precision"}),
    "branches": (lambda file, own: branches.Branch(**own), branches.record, {"source", "wall_s", "precision"}),
    "layers": (lambda file, own: pruned_layers.Pruned(**own), pruned_layers.record, {"source", "wall_s", "precision"}),
    "unseen": (lambda file, own: unseen.Winners(**own), unseen.UNSEEN.record, {"source", "wall_s", "precision"}),
    "replays": (lambda file, own: replays.Replay(**own), replays.place, {"source", "wall_s"}),
    "adaptive": (lambda file, own: own_replays.Replay(**own), own_replays.REPLAYS.record, {"source", "wall_s", "precision"}),
}
CELLS = (lambda file, own: Cell(**own), store.record, {"source", "wall_s", "precision", "steps", "trial_steps"})


def committed():
    """The files under data/ that git knows; without git all but what a reader's own workloads other than ours have left."""
    git = shutil.which("git")
    known = git and subprocess.run([git, "ls-files", "-z", "data"], cwd=ROOT, capture_output=True, encoding="utf-8").stdout
    if known:
        return unpacked(file for name in known.split("\0") if (file := ROOT / name).is_file())
    files = [file for file in DATA.rglob("*") if file.is_file() and file.suffix not in (".part", ".set-aside")]
    ours = DATA / "own" / own.folder_name("chapters/own/next_letter.py:next_letter")
    return unpacked(file for file in files if DATA / "own" not in file.parents or ours in file.parents)


def unpacked(files):
    """Where all these records lie or lay, those in archives too."""
    for file in files:
        if file.name == archive.HEADS:
            folder = file.parent
            yield from (folder / name for name in archive._heads(folder, archive.stamp(folder)))
        elif file.suffix != ".xz":
            yield file


def test_every_committed_record_is_whole_and_one_of_ours():
    files = list(committed())
    assert {file.relative_to(DATA).parts[0] for file in files} >= {*KINDS, "digits", "own"}
    for file in files:
        make, place, says = KINDS.get(file.relative_to(DATA).parts[0], CELLS)
        one = make(file, store.head(file)["cell"])
        assert place(one) == file, "it would not be found"
        head = store.head(file, one)  # whose sum and count of rows are the table's
        assert {"date", "torch", "device"} | says <= set(head) and head["rows"], file
        assert not isinstance(one, Cell) or head["rows"] == one.trials, file
