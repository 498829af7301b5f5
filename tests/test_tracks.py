"""A track is the trial that the record tells of, and what is measured along it is what it says."""


import pytest
import torch

from lib.measuring import one_cell, sweeps
from lib.probes import follow, tracks
from lib.studies.cells import Cell
from lib.studies.study import Study


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A folder of records, and the cells it holds: dense and half sparse."""
    folder = tmp_path_factory.mktemp("data")
    cells = tuple(Cell("digits-mlp", 256, "momentum", s, trials=16, hits=3) for s in (0.0, 0.5))
    sweeps.run(Study("s", "", cells), folder)
    return folder, cells


def test_a_track_meets_the_goal_where_the_record_says_and_not_before(measured):
    folder, cells = measured
    for cell in cells:
        track = tracks.fastest(cell, 2, folder, points=8)[1]
        table = follow.follow(track, folder)
        assert table.step.iloc[-1] == tracks.last_step(track, folder) and table.error.iloc[-1] <= 0.04
        assert (table.error.iloc[:-1] > 0.04).all()
        assert table.step.iloc[0] == 1 and len(table) == 8


def test_twins_share_all_but_the_mask(measured):
    folder, cells = measured
    dense = tracks.fastest(cells[0], 1, folder, points=4)[0]
    (twin,) = tracks.twins([dense], [0.5], folder)
    one, other = (one_cell.start(t.cell, [t.trial]) for t in (dense, twin))
    assert one.drawn.keys() == other.drawn.keys() and all(torch.equal(one.drawn[name], other.drawn[name]) for name in one.drawn)
    assert torch.equal(one.w * other.mask, other.w) and 0 < other.mask.mean() < 1
    assert follow.follow(twin, folder).step.tolist() == follow.follow(dense, folder).step.tolist()
