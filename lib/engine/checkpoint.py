"""The state of an unfinished cell, kept in a file and read back without running anything in it."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import json
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
from lib.engine.training_state import State, Trials
from lib.engine.validation import Validation

T = TypeVar("T")
SAVE_EVERY = 300.0  # seconds


SOON = 10.0  # seconds: papermill ends a notebook's process without a word, and so little is lost
SELDOM = 100  # times as long as saving takes lie between two states


class Pace:
    """When a state is saved: every `SOON` seconds, more seldom where saving takes long."""

    def __init__(self):
        self.saved, self.pause = time.perf_counter(), SOON

    def due(self, most: float) -> bool:
        """Whether it is time to; most: seconds between two states at most."""
        return time.perf_counter() - self.saved >= min(self.pause, most)

    def spend(self, save: Callable[[], None]) -> None:
        """Save, and wait the longer the longer it took."""
        began = time.perf_counter()
        save()
        self.saved = time.perf_counter()
        self.pause = max(SOON, SELDOM * (self.saved - began))


def tensors_of(state: State, judges: list[Validation]) -> dict[str, Tensor]:
    """All tensors and arrays of numbers in a state, by name; writing into them changes it."""
    out = {
        f"outcome.{k}": v
        for k, v in vars(state.outcome).items()
        if isinstance(v, np.ndarray) and v.dtype != object
    }
    found = {k: torch.from_numpy(v) for k, v in {"ids": state.ids, **out}.items()}
    found |= {
        "w": state.w,
        "silent": state.silent,
        "patience": state.patience,
        "recent": state.recent,
    }
    found |= {f"buffer.{k}": v for k, v in state.buffers.items()}
    for n, judge in enumerate(judges):
        found |= {f"judge.{n}.missed": judge.missed, f"judge.{n}.order": judge.order}
    if state.pending:
        found |= {"pending.w": state.pending.w, "pending.waiting": state.pending.waiting}
    if state.exchange:
        found |= {f"exchange.{k}": v for k, v in state.exchange.tensors(state.w).items()}
    return found


def save(file: Path, state: State, judges: list[Validation], identity: str) -> None:
    """Keep an unfinished cell, whole or not at all: a line with a checksum, then tensors, and the
    rest as JSON.
    """
    out = state.outcome
    rest = {
        "identity": identity,
        "status": list(out.status),
        "cause": list(out.cause),
        "steps": out.steps,
        "trial_steps": out.trial_steps,
        "wall_s": out.wall_s,
        "exchange": state.exchange.numbers() if state.exchange else None,
    }
    keep(file, {**tensors_of(state, judges), "rest": json.dumps(rest)})


def keep(file: Path, state: dict) -> None:
    """Write tensors, numbers and texts, whole or not at all, after a line with a checksum."""
    body = io.BytesIO()
    torch.save(state, body)
    with atomic.whole(file) as stream:
        stream.write(hashlib.sha256(body.getbuffer()).hexdigest().encode() + b"\n")
        stream.write(body.getbuffer())


def kept(file: Path) -> dict:
    """What `keep` wrote, on the CPU; nothing in the file is run.  Raises ValueError for a damaged
    one, or what torch raises.
    """
    checksum, _, body = file.read_bytes().partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != checksum:
        raise ValueError("damaged (truncated or altered), or no state of a cell")
    return torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)


def _restore(file: Path, new: State, judges: list[Validation], identity: str) -> State:
    """The state kept in the file; new: that of all trials before their first step.

    Nothing in the file is run.  Raises ValueError, or what torch or JSON raise, for a file that is
    damaged or of another cell, before anything has changed.
    """
    saved = kept(file)
    rest = json.loads(saved.pop("rest"))
    if rest["identity"] != identity:
        raise ValueError("of another cell, or of other code")

    state = copy.copy(new)
    rows = torch.zeros(len(new.ids), dtype=torch.bool)
    rows[saved["ids"]] = True
    if state.exchange:
        state.exchange = state.exchange.resume(rest["exchange"])
    state.keep(rows.to(new.w.device))
    for name, tensor in tensors_of(state, judges).items():
        tensor.copy_(saved[name])
    out = state.outcome
    out.status[:], out.cause[:] = rest["status"], rest["cause"]
    out.steps, out.trial_steps, out.wall_s = rest["steps"], rest["trial_steps"], rest["wall_s"]
    return state


def resume(file: Path, new: State, judges: list[Validation], identity: str) -> State:
    """The state kept in the file, or `new` where there is none; one that will not do is set aside
    with a warning that names it.
    """
    return found_or(file, lambda: _restore(file, new, judges, identity), lambda: new)


def found_or(file: Path, resume: Callable[[], T], first: Callable[[], T]) -> T:
    """What `resume` makes of a file, or `first` where there is none or one that will not do, which
    is set aside with a warning that names it.
    """
    if not os.path.lexists(file):
        return first()
    try:
        return resume()
    except Exception as error:  # whatever such a file makes torch and JSON raise
        first_line = str(error).partition("\n")[0]
        unread = f"cannot be read ({type(error).__name__})"
        reason = first_line if type(error) is ValueError else unread
    aside = file.with_suffix(".set-aside")
    with contextlib.suppress(FileNotFoundError):  # another runner has been here
        os.replace(file, aside)
    warnings.warn(
        f"{file}: {reason}; set aside as {aside.name}, the cell begins anew",
        RuntimeWarning,
        stacklevel=3,
    )
    return first()


def identity_of(whose: str, trials: Trials) -> str:
    """A digest of what a cell is called and of the trials that it starts from."""
    digest = hashlib.sha256(f"{whose}{list(trials.drawn)}".encode())
    for tensor in (trials.w, trials.mask, *trials.drawn.values()):
        if tensor is not None:
            digest.update(tensor.cpu().contiguous().numpy())
    return digest.hexdigest()
