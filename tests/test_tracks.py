"""A track is the trial that the record tells of, and what is measured along it is what it says."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lib import datasets, models, records, stacks, sweeps, tracks


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    cells = tuple(sweeps.Cell("digits-mlp", 256, "momentum", s, trials=16, hits=3) for s in (0.0, 0.5))
    sweeps.run(sweeps.Study("s", "", cells), folder)
    return folder, cells


@pytest.fixture
def dense(study, monkeypatch):
    folder, cells = study
    monkeypatch.setattr(tracks.sweeps, "record", lambda cell: records.path(folder / "digits", cell))
    return cells


def test_a_track_meets_the_goal_where_the_record_says_and_not_before(dense):
    for cell in dense:
        track = tracks.fastest(cell, 2, points=8)[1]
        table = tracks.follow(track)
        assert table.step.iloc[-1] == tracks.last_step(track) and table.error.iloc[-1] <= 0.04
        assert (table.error.iloc[:-1] > 0.04).all()
        assert table.step.iloc[0] == 1 and len(table) == 8


def test_the_first_point_is_measured_on_the_whole_training_set_at_the_start(dense):
    track = tracks.fastest(dense[1], 1, points=3)[0]
    table, trial = tracks.follow(track), sweeps.start(track.cell, [track.trial])
    data, net = datasets.load("digits").train, models.build("mlp-64x2")
    w = trial.w[0].clone().requires_grad_()
    loss = F.cross_entropy(stacks.outputs(net, w, data.x), data.y)
    (g,) = torch.autograd.grad(loss, w)
    first = table.iloc[0]
    assert first.loss == pytest.approx(loss.item(), rel=1e-4)
    assert first.square == pytest.approx((g * trial.mask[0]).square().sum().item(), rel=1e-4)
    assert first.noise_low < first.noise_scale < first.noise_high


def test_the_two_estimates_of_smoothness_agree_where_the_step_is_short(dense):
    """Along the step the largest of nine slopes is at least the curvature at the start, and near it."""
    table = tracks.follow(tracks.fastest(dense[0], 1, points=6, examples=tracks.SAMPLE)[0])
    assert (table.lipschitz < 3 * table.along).all() and (table.along <= table.spectral * (1 + 1e-3)).all()
    assert np.median(table.lipschitz / table.along) == pytest.approx(1.1, abs=0.3)


def test_records_and_resuming(study, dense, monkeypatch):
    folder, _ = study
    monkeypatch.setitem(tracks.TRACKS, "some", lambda: tracks.fastest(dense[0], 2, points=3))
    tracks.run("some", folder / "tracks")
    found = tracks.results("some", folder / "tracks")
    assert (
        found.attrs["planned"] == 2
        and len(found) == 6
        and set(found.trial) == {t.trial for t in tracks.TRACKS["some"]()}
    )
    monkeypatch.setattr(tracks, "measure", lambda *_: pytest.fail("measured again"))
    tracks.run("some", folder / "tracks")
    with pytest.raises(ValueError, match="tracks: 'x' is unknown"):
        tracks.results("x")


def test_a_cell_without_a_record_has_no_tracks(dense):
    assert tracks.fastest(sweeps.Cell("digits-mlp", 3), 2) == []
