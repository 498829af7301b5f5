"""The state of an unfinished cell, kept in a file and read back without running anything in it."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import json
import math
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
from lib.engine.training_state import State, Trials, Untested
from lib.engine.validation import Validation

T = TypeVar("T")
SAVE_EVERY = 300.0  # seconds
STATUS, CAUSE = (
    ("", "complete", "stopped", "infeasible", "budget", "abandoned"),
    ("", "diverged", "dead", "unpruned"),
)


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
    """All tensors and arrays of numbers in a state, by name; writing into them changes the state."""
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
    if state.untested:
        found |= {"untested.w": state.untested.w, "untested.waiting": state.untested.waiting}
    if state.exchange:
        found |= {f"exchange.{k}": v for k, v in state.exchange.tensors(state.w).items()}
    return found


def _kinds(tensors: dict[str, Tensor]) -> dict[str, tuple]:
    return {name: (t.shape, t.dtype, t.layout) for name, t in tensors.items()}


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


def _resume(
    file: Path, new: State, judges: list[Validation], identity: str, max_steps: int
) -> State:
    """The state kept in the file; new: that of all trials before their first step.

    Nothing in the file is run, and nothing is changed before all of it has been checked.  Raises
    ValueError, or what torch or JSON raise, for a file that is damaged or of another cell.
    """
    saved = kept(file)
    rest = json.loads(saved.pop("rest"))
    if rest["identity"] != identity:
        raise ValueError("of another cell, or of other code")

    everyone, ids = len(new.ids), saved["ids"]
    rows = torch.zeros(everyone, dtype=torch.bool).index_fill_(0, ids, True)
    exchange, at = (
        new.exchange and new.exchange.restored(rows, rest["exchange"]),
        rows.to(new.w.device),
    )
    buffers = {k: v[at] for k, v in new.buffers.items()}
    left = new.trials.keep(at), new.w[at], buffers, new.silent[at], new.patience[at], new.recent[at]
    untested = new.untested and Untested.first(new.untested.w)
    now = State(copy.deepcopy(new.outcome), rows.nonzero()[:, 0].numpy(), *left, exchange, untested)
    mine, steps, wall_s = tensors_of(now, judges), rest["steps"], float(rest["wall_s"])
    fine = {
        "tensors": _kinds(saved) == _kinds(mine)
        and all(t.device.type == "cpu" for t in saved.values()),
        "ids": torch.equal(ids, mine["ids"]),
        "steps": type(steps) is int
        and 0 < steps <= max_steps
        and (exchange is None or exchange.step == steps),
        "trial_steps": type(rest["trial_steps"]) is int
        and 0 < rest["trial_steps"] <= everyone * steps,
        "wall_s": 0 <= wall_s < math.inf,
        "order": all(
            torch.equal(saved[k].sort().values, torch.arange(len(t)))
            for k, t in mine.items()
            if "order" in k
        ),
        **{
            k: len(rest[k]) == everyone and set(rest[k]) <= set(known)
            for k, known in (("status", STATUS), ("cause", CAUSE))
        },
    }
    if not all(fine.values()):
        raise ValueError(
            f"of another cell, or damaged ({', '.join(k for k, v in fine.items() if not v)})"
        )

    for name, own in mine.items():
        own.copy_(saved[name])
    now.outcome.status[:], now.outcome.cause[:] = rest["status"], rest["cause"]
    now.outcome.steps, now.outcome.trial_steps, now.outcome.wall_s = (
        steps,
        rest["trial_steps"],
        wall_s,
    )
    return now


def resumed(
    file: Path, new: State, judges: list[Validation], identity: str, max_steps: int
) -> State:
    """`_resume`, or `new` where there is no file; one that will not do is set aside with a warning
    that names it.
    """
    return found_or(file, lambda: _resume(file, new, judges, identity, max_steps), lambda: new)


def found_or(file: Path, resume: Callable[[], T], first: Callable[[], T]) -> T:
    """What `resume` makes of a file, or `first` where there is none or one that will not do, which
    is set aside with a warning that names it.
    """
    if not os.path.lexists(file):
        return first()
    try:
        return resume()
    except (
        Exception
    ) as error:  # whatever a file that anyone may have written makes torch and JSON raise
        reason = (
            str(error).partition("\n")[0]
            if type(error) is ValueError
            else f"cannot be read ({type(error).__name__})"
        )
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
