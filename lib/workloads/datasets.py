"""The data sets, verified, normalised and split: 8x8 digits, MNIST, Fashion-MNIST, CIFAR-10; and
texts (`texts`).

Digits come with scikit-learn and are always there.  The others are read from the folder named by
the environment variable BOOK_DATASETS (`mnist/`, `fashion-mnist/`, `cifar-10/`, `tiny-shakespeare/`
with the canonical files, each compressed or not), or else downloaded once from their canonical
pages.  Either way the contents must match the published checksums.

`mnist-lee2021` is MNIST with the only split of Lee et al. (2021); all others are split here, by a
seed.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import lzma
import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lib.workloads import texts

if TYPE_CHECKING:
    from torch import Tensor

VARIABLE = "BOOK_DATASETS"
LEE2021 = "mnist-lee2021"
# Data sets that use another's images, with the only split that their authors used
IMAGES_OF = {LEE2021: "mnist"}
TRAIN_SIZES = {  # images, without the validation examples
    "digits": 1350,
    "mnist": 54_000,
    "fashion-mnist": 54_000,
    "cifar-10": 45_000,
    LEE2021: 54_000,
}
NAMES = tuple(TRAIN_SIZES)
TEST_SEED = 0  # for the test set of digits, which have no canonical one

# Names and checksums of files, as published by their authors and common loaders: MD5 of the
# contents, SHA-256 for texts
IDX = """
    train-images-idx3-ubyte {} train-labels-idx1-ubyte {}
    t10k-images-idx3-ubyte {} t10k-labels-idx1-ubyte {}
"""
FILES = {
    "mnist": IDX.format(
        "6bbc9ace898e44ae57da46a324031adb",
        "a25bea736e30d166cdddb491f175f624",
        "2646ac647ad5339dbf082846283269ea",
        "27ae3e4e09519cfbb04c329615203637",
    ),
    "fashion-mnist": IDX.format(
        "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "9018921c3c673c538a1fc5bad174d6f9",
        "8181f5470baa50b63fa0f6fddb340f0a",
        "15d484375f8d13e6eb1aabb0c3f46965",
    ),
    "cifar-10": """
        data_batch_1.bin 5dd7e06a14cb22eb9f671a540d1b7c25
        data_batch_2.bin 5ea93a67294ea407fff1d09f752e9692
        data_batch_3.bin 942cd6a4bcdd0dd3c604fbe906cb4421
        data_batch_4.bin ae636b3ba5c66a11e91e8cb52e771fcb
        data_batch_5.bin 53f37980c15c3d472c316c40844f3f0d
        test_batch.bin 803d5f7f4d78ea53de84dbe85f74fb6d
    """,
    **{name: f"input.txt {checksum}" for name, checksum in texts.SHA256.items()},
}
OPENERS = {".gz": gzip.open, ".xz": lzma.open}
# Where a file is downloaded from
PAGES = {
    "mnist": "https://ossci-datasets.s3.amazonaws.com/mnist/{}.gz",
    "fashion-mnist": "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{}.gz",
    "cifar-10": "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "tiny-shakespeare": "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/"
    "tinyshakespeare/{}",
}


class DatasetError(RuntimeError):
    """A data set's file is missing, truncated or altered; the message says what to do."""


@dataclass(frozen=True)
class Split:
    """Examples x and their targets y.

    x: float32 [N, channels, height, width], normalised; or int64 [N, ...], indices (of characters,
    say).  y: int64 [N], classes from 0; or [N, L], where an example has L targets.
    """

    x: Tensor
    y: Tensor

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Dataset:
    """Training, validation and test examples; of images, 10 % of the training set is validation."""

    name: str
    train: Split
    validation: Split
    test: Split


@functools.lru_cache(maxsize=4)
def load(name: str, split: int = 0) -> Dataset:
    """The data set called `name`, normalised as in Lee et al. (2021), and split as `held_out` says.

    Pixels are scaled to [0, 1], then standardised with the mean and standard deviation of the whole
    training set (MNIST: 0.13066 and 0.30811), for CIFAR-10 per channel.  Training and validation
    examples keep their canonical order; the test set is the same for every split.  Digits have no
    canonical test set: a fixed permutation sets 297 of 1,797 aside.  A text is cut into windows of
    indices and split by position (`texts.examples`).  Cached.  Raises DatasetError for a missing,
    truncated or altered file.
    """
    if name in texts.NAMES:
        return of_parts(name, texts.examples(characters(name), split))
    x, y = _standardised(IMAGES_OF.get(name, name))
    validation = held_out(name, split)
    training, test = np.split(np.arange(len(x)), [whole_size(name)])
    places = np.setdiff1d(training, validation), validation, test
    return of_parts(name, [(x[part], y[part]) for part in places])


def of_parts(name: str, parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> Dataset:
    """A data set from inputs and targets of training, validation and test examples."""
    return Dataset(name, *(_as_split(*part) for part in parts))


def _as_split(x: np.ndarray, y: np.ndarray) -> Split:
    import torch  # slow to import, and most chapters only read records

    return Split(torch.from_numpy(x), torch.from_numpy(y))


def held_out(name: str, split: int = 0) -> np.ndarray:
    """Indices of the training images that are validation examples, in canonical order: int [a tenth
    of the images], ascending.

    The first tenth of a permutation seeded by `split`.  For `LEE2021`, which has one split, the
    first tenth after the shuffle of Lee et al. (2021)'s code, by NumPy's legacy generator seeded
    with 0.
    """
    size = whole_size(name)
    order = np.random.RandomState(0) if name == LEE2021 else np.random.default_rng(split)
    return np.sort(order.permutation(size)[: size // 10])


def whole_size(name: str) -> int:
    """Number of images in the training set called `name` before a tenth is held out."""
    return TRAIN_SIZES[name] * 10 // 9


def train_size(name: str) -> int:
    """Number of training examples of the data set called `name`, without reading it."""
    return TRAIN_SIZES.get(name) or texts.train_size(texts.LENGTHS[name])


def canonical(name: str) -> tuple[Split, Split]:
    """The training images called `name` before the split, and the test images, in canonical order;
    they share memory with every split of these images.
    """
    size = whole_size(name)
    x, y = _standardised(IMAGES_OF.get(name, name))
    return _as_split(x[:size], y[:size]), _as_split(x[size:], y[size:])


@functools.lru_cache(maxsize=1)  # splits of the same images are read one after another
def _standardised(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All images and labels in canonical order, those of the training set first."""
    x, y = {"digits": _digits, "cifar-10": _cifar}.get(name, lambda: _idx(name))()
    axes = (0, 2, 3) if name == "cifar-10" else None
    training = x[: whole_size(name)].astype(np.float64)
    x = (x - training.mean(axes, keepdims=True)) / training.std(axes, keepdims=True)
    return x.astype(np.float32), y.astype(np.int64)


def _digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits  # slow to import; only this data set needs it

    digits = load_digits()
    order = np.random.default_rng(TEST_SEED).permutation(len(digits.target))
    return digits.images[order, None] / 16, digits.target[order]


def _idx(name: str) -> tuple[np.ndarray, np.ndarray]:
    train_x, train_y, test_x, test_y = _files(name)
    pixels = np.concatenate([train_x[16:], test_x[16:]]).reshape(-1, 1, 28, 28)
    return pixels / np.float32(255), np.concatenate([train_y[8:], test_y[8:]])


def _cifar() -> tuple[np.ndarray, np.ndarray]:
    rows = np.concatenate(_files("cifar-10")).reshape(-1, 3073)
    # A label, then 32 x 32 red, green, blue
    return rows[:, 1:].reshape(-1, 3, 32, 32) / np.float32(255), rows[:, 0]


def _files(name: str) -> list[np.ndarray]:
    """The contents of a data set's files, as bytes."""
    words = FILES[name].split()
    pairs = zip(words[::2], words[1::2])
    return [np.frombuffer(_contents(name, *pair), np.uint8) for pair in pairs]


def characters(name: str) -> np.ndarray:
    """A text's characters as indices of its symbols, int64 [characters]."""
    return texts.numbered(_contents(name, *FILES[name].split()).decode())


def _contents(name: str, file: str, checksum: str) -> bytes:
    """The unpacked bytes of one canonical file, after verifying their checksum."""
    base = os.environ.get(VARIABLE)
    folder = Path(base) / name if base else _downloaded(name, file)
    names = [file + packed for packed in ("", *OPENERS)]
    path = next((path for name in names for path in sorted(folder.rglob(name))), None)
    if path is None:
        raise DatasetError(
            f"{folder / file}: missing, also as .gz or .xz; set {VARIABLE} to a folder that holds "
            f"{name}/, or unset it to download"
        )
    try:
        with OPENERS.get(path.suffix, open)(path, "rb") as stream:
            raw = stream.read()
    except (OSError, EOFError, lzma.LZMAError, zlib.error):
        raw = b""
    kind = "sha256" if name in texts.NAMES else "md5"
    # Some machines forbid MD5 for security uses
    if hashlib.new(kind, raw, usedforsecurity=False).hexdigest() != checksum:
        raise DatasetError(
            f"{path}: not the canonical file (its contents are truncated or altered); replace it"
        )
    return raw


def _downloaded(name: str, file: str) -> Path:
    """The folder to which the canonical file was downloaded and unpacked."""
    import pooch  # slow to import, and only downloads need it

    cache = pooch.os_cache("data-parallelism-sparsity") / name
    page = PAGES[name].format(file)
    archive = page.rpartition("/")[2]
    unpack = pooch.Untar() if archive.endswith(".tar.gz") else None
    try:
        # The contents' checksum is verified by the caller, whatever the compression
        pooch.retrieve(page, None, archive, cache, unpack, progressbar=True)
    except Exception as error:
        raise DatasetError(
            f"{archive}: download failed ({error}); set {VARIABLE} to a folder that holds {name}/"
        ) from None
    return cache
