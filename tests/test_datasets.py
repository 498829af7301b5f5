"""The data are the canonical ones, split once and for all; others are refused with a remedy."""

import os
import shutil
from pathlib import Path

import pytest
import torch

from lib.workloads import datasets


def forget():
    """Read the files again."""
    datasets.load.cache_clear()
    datasets._standardised.cache_clear()


def needs(name):
    if name != "digits" and datasets.VARIABLE not in os.environ:
        pytest.skip(f"{name}: set {datasets.VARIABLE} to a folder that holds it")


@pytest.mark.parametrize(("name", "tests"), [("digits", 297), ("mnist", 10_000)])
def test_sizes_shapes_and_normalisation(name, tests):
    needs(name)
    data = datasets.load(name)
    images = torch.cat([data.train.x, data.validation.x])
    assert len(data.test) == tests
    assert len(data.train) == datasets.train_size(name)
    assert len(data.validation) == len(images) // 10
    x, y = data.train.x, data.train.y
    assert x.dtype == torch.float32 and x.dim() == 4 and y.dtype == torch.int64
    assert images.double().mean().abs() < 1e-5
    assert abs(images.double().std(correction=0) - 1) < 1e-5
    assert set(y.tolist()) == set(range(10))
    if name == "mnist":  # the published constants
        std = 1 / (x.max() - x.min()).item()
        assert std == pytest.approx(0.30811, abs=5e-6)
        assert -x.min().item() * std == pytest.approx(0.13066, abs=5e-6)


@pytest.fixture
def copy(tmp_path, monkeypatch):
    needs("mnist")
    source = Path(os.environ[datasets.VARIABLE])
    shutil.copytree(source / "mnist", tmp_path / "mnist", copy_function=shutil.copyfile)
    monkeypatch.setenv(datasets.VARIABLE, str(tmp_path))
    forget()
    yield tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz"
    forget()


def test_a_file_damaged_anywhere(copy):
    raw = bytearray(copy.read_bytes())
    raw[2000] ^= 0xFF
    copy.write_bytes(raw)
    with pytest.raises(datasets.DatasetError, match=r"t10k-labels-idx1-ubyte.gz: .*replace it"):
        datasets.load("mnist")


def test_without_a_folder_a_failed_download_says_what_to_do(tmp_path, monkeypatch):
    import pooch

    monkeypatch.delenv(datasets.VARIABLE, raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path)
    monkeypatch.setitem(datasets.PAGES, "mnist", f"{tmp_path.as_uri()}/{{}}.gz")
    forget()
    with pytest.raises(datasets.DatasetError, match=f"download failed .*{datasets.VARIABLE}"):
        datasets.load("mnist")
