"""The data sets, verified, normalised and split: 8x8 digits, MNIST, Fashion-MNIST, CIFAR-10; and
texts (`texts`).

Digits come with scikit-learn and are always there.  The others are read from the folder that the
environment variable BOOK_DATASETS names (`mnist/`, `fashion-mnist/`, `cifar-10/`,
`tiny-shakespeare/` with the canonical files, compressed or not), or else downloaded once from their
canonical pages.  Either way the contents must have their known checksums.

`mnist-lee2021` is MNIST with the one split of Lee et al. (2021); the others are split by a seed, in
draws of our own.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import lzma
import os
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lib import own, require
from lib.workloads import own_file, own_text, texts

if TYPE_CHECKING:
    from torch import Tensor

VARIABLE = "BOOK_DATASETS"
LEE2021 = "mnist-lee2021"
# Data sets that are another's images on their authors' split, the only one they have
IMAGES_OF = {LEE2021: "mnist"}
TRAIN_SIZES = {
    "digits": 1350,
    "mnist": 54_000,
    "fashion-mnist": 54_000,
    "cifar-10": 45_000,
    LEE2021: 54_000,
}
TEST_SIZES = {
    "digits": 297,
    "mnist": 10_000,
    "fashion-mnist": 10_000,
    "cifar-10": 10_000,
    LEE2021: 10_000,
}
NAMES = tuple(TRAIN_SIZES)  # of images
TEST_SEED = 0  # of the test set of digits, which have no canonical one

# MD5 of each file's contents, as their authors and the common loaders publish them.
IDX = {
    "train-images-idx3-ubyte": {
        "mnist": "6bbc9ace898e44ae57da46a324031adb",
        "fashion-mnist": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
    },
    "train-labels-idx1-ubyte": {
        "mnist": "a25bea736e30d166cdddb491f175f624",
        "fashion-mnist": "9018921c3c673c538a1fc5bad174d6f9",
    },
    "t10k-images-idx3-ubyte": {
        "mnist": "2646ac647ad5339dbf082846283269ea",
        "fashion-mnist": "8181f5470baa50b63fa0f6fddb340f0a",
    },
    "t10k-labels-idx1-ubyte": {
        "mnist": "27ae3e4e09519cfbb04c329615203637",
        "fashion-mnist": "15d484375f8d13e6eb1aabb0c3f46965",
    },
}
CIFAR = {
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
}
CIFAR_ARCHIVE = "cifar-10-binary.tar.gz"
PAGES = {
    "mnist": "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "fashion-mnist": "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "cifar-10": "https://www.cs.toronto.edu/~kriz/",
    **texts.PAGES,
}


class DatasetError(RuntimeError):
    """A data set's file is missing, truncated or altered; the message names it and says what to do."""


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
    """Training, validation and test examples; of images, validation is 10 % of the training set."""

    name: str
    train: Split
    validation: Split
    test: Split


def load(name: str, split: int = 0) -> Dataset:
    """The data set called `name`, normalised as in Lee et al. (2021), and split as `held_out` says.

    Pixels are scaled to [0, 1], then standardised with the mean and standard deviation of the whole
    training set (MNIST: 0.13066 and 0.30811), for CIFAR-10 per channel.  Training and validation
    examples keep their canonical order; the test set is the same for every split.  Digits have no
    canonical test set: a fixed permutation first sets 297 of 1,797 aside. A text is cut into
    windows of indices and split by position (`texts.examples`), a reader's own too. A reader's own
    (`lib.own`) is taken as it is; its validation set stands in for a test set. Read once; a
    reader's own again if its file has changed. Raises ValueError for an unknown name and as
    `held_out`, DatasetError for a missing, truncated or altered file.
    """
    if own.is_own(name):
        name = own_file.canonical(name)
        return _load(name, own_file.source(name) + own_file.data(name), split)
    if own.is_text(name):
        return _load(name, own_text.read(name).source, split)
    return _load(name, "", split)


@functools.lru_cache(maxsize=4)
def _load(name: str, source: str, split: int) -> Dataset:
    import torch  # slow to import, and most chapters only read records

    if own.is_own(name):
        mine = own_file.tensors_of(name)
        train, validation = (
            Split((x.detach().float() if x.is_floating_point() else x).contiguous(), y.contiguous())
            for x, y in (mine.train, mine.validation)
        )
        return Dataset(name, train, validation, validation)
    if name in texts.NAMES or own.is_text(name):
        fewer = {"asked": own_text.read(name).windows} if own.is_text(name) else {}
        windows = texts.examples(characters(name), split, **fewer)
        return Dataset(name, *(Split(torch.from_numpy(x), torch.from_numpy(y)) for x, y in windows))
    _require_known(name)
    held = held_out(name, split)
    x, y, training = _standardised(IMAGES_OF.get(name, name))
    parts = (np.setdiff1d(np.arange(training), held), held, np.arange(training, len(x)))
    return Dataset(
        name,
        *(Split(torch.from_numpy(x[p]), torch.from_numpy(y[p])) for p in parts),
    )


def held_out(name: str, split: int = 0) -> np.ndarray:
    """Which of the training images, in their canonical order, are the validation examples: int [a
    tenth of them], ascending.

    The first tenth of a permutation that is seeded by `split`.  Of `LEE2021` the first tenth of the
    order into which the code of Lee et al. (2021) shuffles the images, by NumPy's former generator
    seeded with 0. Raises ValueError for an unknown name, for a text (`texts.parts`), and for
    another split of a data set that has one alone.
    """
    size = whole_size(name)
    require(
        split == 0 or name not in IMAGES_OF, "split", split, f"0 for {name}, which has one split"
    )
    order = np.random.RandomState(0) if name == LEE2021 else np.random.default_rng(split)
    return np.sort(order.permutation(size)[: size // 10])


def whole_size(name: str) -> int:
    """Images of the training set called `name` before a tenth is held out.  Raises ValueError for
    any other name, as of a text.
    """
    _require_images(name)
    return TRAIN_SIZES[name] * 10 // 9


def whole(name: str) -> Split:
    """The training images called `name` before they are split, in their canonical order.

    Raises as `load`, and ValueError for a text; a reader's own is unknown.
    """
    import torch  # slow to import, and most chapters only read records

    _require_images(name)
    x, y, training = _standardised(IMAGES_OF.get(name, name))
    return Split(torch.from_numpy(x[:training]), torch.from_numpy(y[:training]))


def _require_known(name: str) -> None:
    """Raise ValueError unless one of the data sets here is called `name`."""
    if name not in (*NAMES, *texts.NAMES):
        raise ValueError(
            f"dataset: {name!r} is unknown; allowed: {', '.join((*NAMES, *texts.NAMES))}"
        )


def _require_images(name: str) -> None:
    """Raise ValueError unless one of the data sets of images is called `name`."""
    _require_known(name)
    require(name not in texts.NAMES, "dataset", name, f"one of images here: {', '.join(NAMES)}")


@functools.lru_cache(maxsize=1)  # one after the other, splits of the same images
def _standardised(name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """All images and labels in their canonical order, and how many of them, the first, are the
    training set.
    """
    x, y, training = {"digits": _digits, "cifar-10": _cifar}.get(name, lambda: _idx(name))()
    axes = (0, 2, 3) if name == "cifar-10" else None
    known = x[:training].astype(np.float64)
    x = (x - known.mean(axes, keepdims=True)) / known.std(axes, keepdims=True)
    return x.astype(np.float32), y.astype(np.int64), training


def train_size(name: str) -> int:
    """Training examples of the data set called `name`, without reading it unless it is a reader's
    own.
    """
    if own.is_own(name):
        found = own_file.facts(name)
        return found.examples if found else len(own_file.load(name).train[1])
    if own.is_text(name):
        return texts.train_size(len(characters(name)))
    return texts.train_size(texts.LENGTHS[name]) if name in texts.NAMES else TRAIN_SIZES[name]


def test_size(name: str) -> int:
    """Test examples of the data set called `name`, without reading it unless it is a reader's own."""
    if own.is_own(name):
        return len(own_file.tensors_of(name).validation[1])
    if own.is_text(name):
        return own_text.read(name).windows
    return texts.ASKED if name in texts.NAMES else TEST_SIZES[name]


def _digits() -> tuple[np.ndarray, np.ndarray, int]:
    from sklearn.datasets import load_digits  # slow to import; only this data set needs it

    digits = load_digits()
    order = np.random.default_rng(TEST_SEED).permutation(len(digits.target))
    return digits.images[order, None] / 16, digits.target[order], 1500


def _idx(name: str) -> tuple[np.ndarray, np.ndarray, int]:
    raw = [_contents(name, file, sums[name]) for file, sums in IDX.items()]
    images = np.concatenate(
        [np.frombuffer(raw[i], np.uint8, offset=16).reshape(-1, 1, 28, 28) for i in (0, 2)]
    )
    labels = np.concatenate([np.frombuffer(raw[i], np.uint8, offset=8) for i in (1, 3)])
    return images / np.float32(255), labels, 60_000


def _cifar() -> tuple[np.ndarray, np.ndarray, int]:
    raw = b"".join(_contents("cifar-10", file, md5) for file, md5 in CIFAR.items())
    rows = np.frombuffer(raw, np.uint8).reshape(-1, 3073)  # a label, then 32 x 32 red, green, blue
    return rows[:, 1:].reshape(-1, 3, 32, 32) / np.float32(255), rows[:, 0], 50_000


def characters(name: str) -> np.ndarray:
    """A text's characters as their places among its symbols, int64 [characters], also of a reader's
    own.

    Raises ValueError for any other data set.
    """
    if own.is_text(name):
        return own_text.read(name).ids
    require(name in texts.NAMES, "dataset", name, f"one of texts here: {', '.join(texts.NAMES)}")
    return _text(name)


@functools.lru_cache(maxsize=1)
def _text(name: str) -> np.ndarray:
    """The characters of a text as numbers, int64 [characters]."""
    return texts.numbered(_contents(name, texts.FILES[name], texts.SHA256[name]).decode())


def _contents(name: str, file: str, checksum: str) -> bytes:
    """The unpacked bytes of one canonical file, with their checksum verified: MD5, or the longer
    SHA-256.
    """
    place = _folder(name, file)
    raw = None
    for found in (place / file, place / f"{file}.gz", place / f"{file}.xz"):
        if found.exists():
            raw = _unpacked(found)
            break
    if raw is None and name == "cifar-10":
        found, raw = _from_archive(place, file)
    if raw is None:
        raise DatasetError(
            f"{place / file}: missing (nor .gz, .xz); put it there, or unset {VARIABLE} to download it"
        )
    kind = "sha256" if len(checksum) == 64 else "md5"
    if (
        hashlib.new(kind, raw, usedforsecurity=False).hexdigest() != checksum
    ):  # else some machines forbid MD5
        raise DatasetError(
            f"{found}: not the canonical file (its contents are truncated or altered); replace it"
        )
    return raw


def _unpacked(file: Path) -> bytes:
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(file.suffix, open)
    try:
        with opened(file, "rb") as stream:
            return stream.read()
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise DatasetError(f"{file}: cannot be read ({error}); replace it") from None


def _from_archive(place: Path, file: str) -> tuple[Path, bytes | None]:
    for archive in (place / CIFAR_ARCHIVE, place.parent / CIFAR_ARCHIVE):
        if archive.exists():
            return archive, _archive(archive).get(file)
    unpacked = place / "cifar-10-batches-bin" / file
    return unpacked, _unpacked(unpacked) if unpacked.exists() else None


@functools.lru_cache(maxsize=1)
def _archive(archive: Path) -> dict[str, bytes]:
    try:
        with tarfile.open(archive) as tar:
            return {Path(m.name).name: tar.extractfile(m).read() for m in tar if m.isfile()}
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise DatasetError(f"{archive}: cannot be read ({error}); replace it") from None


def _folder(name: str, file: str) -> Path:
    """Where the data set's files lie; downloads the canonical ones where no folder is named."""
    if VARIABLE in os.environ:
        place = Path(os.environ[VARIABLE]) / name
        if not place.is_dir():
            raise DatasetError(
                f"{place}: no such folder; {VARIABLE} must name the folder that holds {name}/"
            )
        return place
    import pooch  # slow to import, and only downloads need it

    cache = pooch.os_cache("data-parallelism-sparsity") / name
    wanted = CIFAR_ARCHIVE if name == "cifar-10" else file if name in texts.NAMES else f"{file}.gz"
    # The contents' checksum is verified by the caller, whatever the compression.
    try:
        pooch.retrieve(
            PAGES[name] + wanted, known_hash=None, fname=wanted, path=cache, progressbar=True
        )
    except Exception as error:
        raise DatasetError(
            f"{wanted}: download failed ({error}); set {VARIABLE} to a folder that holds {name}/"
        ) from None
    return cache
