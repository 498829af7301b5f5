"""Batches of whatever a reader trains on: tensors, a Dataset, or a function returning loaders."""

from __future__ import annotations

import contextlib
import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
    default_collate,
)

from lib.own import require

READ = 256  # examples of a validation set per batch
SAMPLED = 32  # examples of a Dataset, or of a loader's first batch, that represent all


def randomness() -> list:
    """The state of the global random numbers of torch, numpy and Python, in a form that
    `torch.load` reads without running code.
    """
    kind, keys, *position = np.random.get_state()
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return [torch.get_rng_state(), devices, [kind, keys.tolist(), *position], random.getstate()]


def go_on(state: list) -> None:
    """Set the global random numbers to a state that `randomness` returned."""
    torch.set_rng_state(state[0])
    if state[1]:
        torch.cuda.set_rng_state_all(state[1])
    np.random.set_state(state[2])
    random.setstate(state[3])


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """Restore the state of the global random numbers after the block."""
    before = randomness()
    try:
        yield
    finally:
        go_on(before)


def seed_all(seed: int) -> None:
    """Seed all global random numbers."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def _is_tensor(part: object) -> bool:
    return isinstance(part, Tensor)


def map_tensors(
    batch: object, change: Callable, changes: Callable[[object], bool] = _is_tensor
) -> object:
    """The batch, of the same type, with every tensor changed, or every part for which `changes` is
    true, at any depth; everything else stays.
    """
    if changes(batch):
        return change(batch)
    if isinstance(batch, Mapping):
        parts = {key: map_tensors(value, change, changes) for key, value in batch.items()}
    elif isinstance(batch, tuple | list):
        parts = [map_tensors(part, change, changes) for part in batch]
    else:
        return batch
    try:
        return getattr(batch, "_make", type(batch))(parts)
    except TypeError:  # of a type that is not constructed from its parts
        return parts


def tensors(batch: object, which: Callable[[object], bool] = _is_tensor) -> list:
    """All tensors of a batch, or all parts for which `which` is true."""
    parts: list = []
    map_tensors(batch, parts.append, which)
    return parts


def size(batch: object) -> int:
    """Number of examples in a batch: rows of its first tensor; 0 if it has none."""
    return next((len(tensor) for tensor in tensors(batch) if tensor.dim()), 0)


@dataclass(frozen=True, eq=False)
class Rows(Dataset):
    """A reader's Dataset, and how a batch is made of a list of its examples."""

    dataset: Dataset
    collate: Callable[[list], object] = default_collate

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, pick: Sequence[int]) -> object:
        """The batch of these examples."""
        return self.collate([self.dataset[int(i)] for i in pick])


def read(data: object) -> object:
    """A reader's data in the form used here: arrays, tables and lists as tensors, a dictionary and
    labels as one dictionary, a Dataset or a loader's dataset as `Rows`, functions as they are.

    Raises OwnError for a loader with a custom sampler, and for values that are not numbers.
    """
    if isinstance(data, DataLoader):
        return _of_loader(data)
    if isinstance(data, Dataset):
        return Rows(data)
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], Mapping):
        data = {**data[0], "labels": data[1]}
    return map_tensors(tuple(data) if isinstance(data, list) else data, _tensor, is_array)


def _of_loader(loader: DataLoader) -> object:
    sampler = type(loader.sampler)
    usual = sampler in (RandomSampler, SequentialSampler) and loader.batch_size
    line = "lambda batch_size, seed: DataLoader(dataset, batch_size, ...), with examples=1000"
    allowed = f"RandomSampler or SequentialSampler: write {line}"
    require(usual, "sampler", sampler.__name__, allowed)
    if loader.collate_fn is default_collate and isinstance(loader.dataset, TensorDataset):
        return loader.dataset.tensors
    return Rows(loader.dataset, loader.collate_fn)


def is_array(part: object) -> bool:
    """Whether a part of a reader's data is to be converted to a tensor."""
    return isinstance(part, list) or hasattr(part, "__array__")


def _tensor(part: object) -> object:
    """An array, a table of real numbers, or a list of numbers as a tensor; other lists stay."""
    if isinstance(part, Tensor):
        return part
    try:
        numbers = np.asarray(part, np.float32 if hasattr(part, "columns") else None)
        numbers = numbers.astype(np.float32) if numbers.dtype == object else numbers
        return torch.tensor(np.ascontiguousarray(numbers))
    except (TypeError, ValueError) as error:
        allowed = "numbers: write pd.get_dummies(x, dtype=float) (labels: pd.factorize(y)[0])"
        require(isinstance(part, list), "values", error, allowed)
        return part


def are_tensors(data: object) -> bool:
    """Whether data are tensors, all in memory."""
    return not callable(data) and not isinstance(data, Rows)


def changed(data: object, change: Callable[[object], object]) -> object:
    """The data, with every batch changed."""
    if callable(data):
        return lambda batch_size, seed: map(change, data(batch_size, seed))
    if isinstance(data, Rows):
        return Rows(data.dataset, lambda examples: change(data.collate(examples)))
    return change(data)


def examples(data: object) -> int:
    """Number of examples in tensors or rows."""
    return len(data) if isinstance(data, Rows) else size(data)


def chosen(data: object, pick: Sequence[int] | Tensor) -> object:
    """The batch of these examples, from tensors or rows."""
    return data[pick] if isinstance(data, Rows) else map_tensors(data, lambda t: t[pick])


def in_order(data: object, batch_size: int = READ) -> Iterable:
    """All batches of this size, in order."""
    if callable(data):
        return data(batch_size, 0)
    return (chosen(data, pick) for pick in torch.arange(examples(data)).split(batch_size))


def to(batch: object, device: str) -> object:
    """The batch on a device."""
    if device == "cpu":
        return batch
    return map_tensors(batch, lambda t: t.to(device, non_blocking=True))


class Passes:
    """Endless batches of a reader's function, pass after pass, from separate random numbers.

    Every pass has its own seed, so that it can be resumed in the middle.  Batches have the
    requested size; the last of a pass may hold the remaining examples, or be missing.  Raises
    ValueError for a pass without batches, and OwnError for a batch of another size.

    Attributes:
        position: number of the pass, and of batches drawn from it.
    """

    def __init__(
        self, loaders: Callable[[int, int], Iterable], batch_size: int, seed: int, examples: int
    ):
        self.loaders, self.batch_size, self.seed = loaders, batch_size, seed
        self.examples = examples
        self.position = [-1, 0]
        self.random = randomness()
        self.batches = self._batches()

    def _batches(self) -> Iterator:
        allowed = f"of {self.batch_size} examples; the last batch of all {self.examples} "
        allowed += "may be smaller: write DataLoader(dataset, batch_size, ...)"
        while True:
            self.position = [self.position[0] + 1, 0]
            seed = self.seed + self.position[0]
            seed_all(seed)
            left = self.examples
            for batch in self.loaders(self.batch_size, seed):
                count = size(batch)
                fits = count == self.batch_size or 0 < count == left
                require(fits, "train", f"a batch of {count} examples", allowed)
                left -= count
                self.position[1] += 1
                yield batch
            if not self.position[1]:
                line = "write train=lambda batch_size, seed: DataLoader(dataset, batch_size)"
                message = f"no batch of {self.batch_size} examples in a pass over train: {line}"
                raise ValueError(message)
            counted = f"as in a pass over train: write examples={self.examples - left}"
            require(0 <= left < self.batch_size, "examples", self.examples, counted)

    def __next__(self) -> object:
        with restored():
            go_on(self.random)
            batch = next(self.batches)
            self.random = randomness()
        return batch

    def go_to(self, number: int, batches: int) -> None:
        """Resume pass `number` after `batches` batches; call it on a new iterator."""
        self.position[0] = number - 1 if batches else number
        for _ in range(batches):
            next(self)


def sample(data: object) -> object:
    """A sample that represents the data: all tensors, or the first batch of rows or a function."""
    seed_all(0)
    if callable(data):
        return next(iter(data(SAMPLED, 0)), ())
    return data[range(min(SAMPLED, len(data)))] if isinstance(data, Rows) else data


def fingerprint(data: object) -> str:
    """Digests of the type, shape and values of every tensor in a `sample`; for rows also of their
    number and of some spread over all of them.
    """
    stands = [sample(data)]
    if isinstance(data, Rows):
        spread = torch.linspace(0, len(data) - 1, min(READ, len(data))).tolist()
        stands += [torch.tensor(len(data)), data[spread]]
    return "".join(map(digest, tensors(stands)))


def digest(tensor: Tensor) -> str:
    """Digest of the type, shape, device and bits of a tensor."""
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    kind = f"{tensor.dtype} {list(tensor.shape)} on {tensor.device}"
    digits = hashlib.sha256(kind.encode())
    digits.update(tensor.view(-1).view(torch.uint8).cpu().numpy())
    return digits.hexdigest()
