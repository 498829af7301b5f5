"""The state of an unfinished cell, kept in a file and read back without running anything in it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from lib import atomic
from lib.engine.training_state import State
from lib.engine.validation import Validation

T = TypeVar("T")
SAVE_EVERY = 300.0  # seconds between two states at most
SOON = 10.0  # seconds: papermill ends a notebook's process without a word, and so little is lost
SELDOM = 100  # times as long as saving takes lie between two states
COUNTS = ("steps", "trial_steps", "wall_s")
TENSORS = ("w", "silent", "patience", "recent", "best_w", "untested")


class Checkpoint:
    """The file of a cell under way, written every `SOON` seconds, or less often where that is slow.

    file: None keeps nothing.  identity: what tells the cell from any other.
    """

    def __init__(self, file: Path | None, identity: str):
        self.file = file
        self.identity = identity
        self.saved = time.perf_counter()
        self.pause = SOON

    def save(self, most: float, state: Callable[[], dict]) -> None:
        """Write what `state` returns (tensors, numbers, texts, and lists of them) if it is time to,
        whole or not at all, after a line with a checksum.

        most: seconds between two states at most.
        """
        began = time.perf_counter()
        if self.file is None or began - self.saved < min(self.pause, most):
            return
        body = io.BytesIO()
        torch.save({"identity": self.identity, **state()}, body)
        with atomic.whole(self.file) as stream:
            stream.write(hashlib.sha256(body.getbuffer()).hexdigest().encode() + b"\n")
            stream.write(body.getbuffer())
        self.saved = time.perf_counter()
        self.pause = max(SOON, SELDOM * (self.saved - began))

    def resume(self, restore: Callable[[dict], T], first: Callable[[], T]) -> T:
        """What `restore` makes of the state in the file, or `first` where there is none or one that
        will not do, which is set aside with a warning that names it.
        """
        if self.file is None or not os.path.lexists(self.file):
            return first()
        try:
            parts = self._read()
            return restore(parts)
        except Exception as error:  # whatever such a file makes torch raise
            kind = type(error)
            reason = f"cannot be read ({kind.__name__})"
            if kind is ValueError:
                reason, _, _ = str(error).partition("\n")
        aside = self.file.with_suffix(".set-aside")
        with contextlib.suppress(FileNotFoundError):  # another runner has been here
            os.replace(self.file, aside)
        message = f"{self.file}: {reason}; set aside as {aside.name}, the cell begins anew"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
        return first()

    def _read(self) -> dict:
        """The state, on the CPU; nothing in the file is run."""
        checksum, _, body = self.file.read_bytes().partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != checksum:
            raise ValueError("damaged (truncated or altered), or no state of a cell")
        state = torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)
        if state["identity"] != self.identity:
            raise ValueError("of another cell, or of other code")
        return state


def parts_of(state: State, judges: list[Validation]) -> dict:
    """All that a state holds, and what its judges have learned."""
    out = state.outcome
    exchange = state.exchange
    return {
        **_tensors(state, judges),
        "status": list(out.status),
        "cause": list(out.cause),
        "exchange": exchange.numbers() if exchange else None,
        **{name: getattr(out, name) for name in COUNTS},
    }


def _tensors(state: State, judges: list[Validation]) -> dict[str, Tensor]:
    """All tensors and arrays of numbers in a state, by name; writing into them changes it."""
    arrays = {"ids": state.ids, **vars(state.outcome)}
    numbers = {k: v for k, v in arrays.items() if isinstance(v, np.ndarray) and v.dtype != object}
    found = {name: torch.from_numpy(array) for name, array in numbers.items()}
    groups = {"state": {name: getattr(state, name) for name in TENSORS}, "buffer": state.buffers}
    for n, judge in enumerate(judges):
        groups[f"judge {n}"] = {"missed": judge.missed, "order": judge.order}
    if state.exchange:
        groups["exchange"] = state.exchange.tensors(state.w)
    for group, tensors in groups.items():
        found |= {f"{group} {name}": each for name, each in tensors.items() if each is not None}
    return found


def restore(state: State, judges: list[Validation], parts: dict) -> State:
    """The state of all trials before their first step, and its judges, brought to these parts."""
    rows = torch.zeros(len(state.ids), dtype=torch.bool)
    rows[parts["ids"]] = True
    if state.exchange:
        state.exchange = state.exchange.resume(parts["exchange"])
    left = rows.to(state.w.device)
    state.keep(left)
    tensors = _tensors(state, judges)
    for name, tensor in tensors.items():
        tensor.copy_(parts[name])
    out = state.outcome
    out.status[:] = parts["status"]
    out.cause[:] = parts["cause"]
    for name in COUNTS:
        setattr(out, name, parts[name])
    return state
