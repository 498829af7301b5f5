"""Keeps the state of an unfinished search in a file; reading it runs no code from the file."""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch

from lib import whole

SAVE_EVERY = 300.0  # seconds between two saves, at most
SOON = (
    10.0  # seconds: papermill kills a notebook's process without warning, so little is lost
)
SELDOM = 100  # times as long as saving takes lie between two states


class OutOfTime(Exception):
    """The time allowed for a measurement is over; its state is kept."""


class Checkpoint:
    """The state file of a running search, written every `SOON` seconds, or less often if slow.

    Args:
        file: None saves nothing.
        identity: what distinguishes the search from any other.
        until: the time (`time.time`) at which `save` raises OutOfTime; None: never.
    """

    def __init__(
        self, file: Path | None = None, identity: str = "", until: float | None = None
    ):
        self.file = file
        self.identity = identity
        self.until = math.inf if until is None else until
        self.saved = time.perf_counter()
        self.pause = SOON

    def save(self, state: Callable[[], dict]) -> None:
        """If it is time to, write what `state` returns (tensors, numbers, strings, and lists of
        them), atomically, after a line with a checksum.  Raises OutOfTime after the last write.
        """
        ended = time.time() >= self.until
        due = ended or time.perf_counter() - self.saved >= min(self.pause, SAVE_EVERY)
        if self.file is None or not due:
            return
        parts = state()
        began = time.perf_counter()
        content = packed({"identity": self.identity, **parts})
        with whole(self.file) as stream:
            stream.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
        self.saved = time.perf_counter()
        self.pause = max(SOON, SELDOM * (self.saved - began))
        if ended:
            raise OutOfTime

    def load(self) -> dict | None:
        """The state in the file, on the CPU; None without a file, or if it had to be set aside."""
        if self.file is None or not self.file.exists():
            return None
        checksum, _, body = self.file.read_bytes().partition(b"\n")
        reason = "damaged (truncated or altered), or not a saved search"
        if checksum == hashlib.sha256(body).hexdigest().encode():
            try:  # runs no code from the file
                state = unpacked(body)
                if state["identity"] == self.identity:
                    return state
                reason = "from another search or other code"
            except Exception as error:  # anything that torch may raise
                reason = f"cannot be read ({type(error).__name__})"
        self.set_aside(reason)
        return None

    def set_aside(self, reason: str) -> None:
        """Rename a file that cannot be used, with a warning that names it and says why."""
        aside = self.file.with_suffix(".set-aside")
        with contextlib.suppress(FileNotFoundError):  # another runner has renamed it
            os.replace(self.file, aside)
        message = f"{self.file}: {reason}; set aside as {aside.name}; the search restarts"
        warnings.warn(message, RuntimeWarning, stacklevel=3)


def packed(state: dict) -> bytes:
    """A state of tensors, numbers, strings, and lists of them, as bytes."""
    body = io.BytesIO()
    torch.save(state, body)
    return body.getvalue()


def unpacked(body: bytes) -> dict:
    """A `packed` state, on the CPU; runs no code from it."""
    return torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)


NO_CHECKPOINT = Checkpoint()
