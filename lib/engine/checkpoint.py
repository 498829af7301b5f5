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

import torch

from lib import atomic

SAVE_EVERY = 300.0  # seconds between two states at most
SOON = 10.0  # seconds: papermill ends a notebook's process without a word, and so little is lost
SELDOM = 100  # times as long as saving takes lie between two states


class Checkpoint:
    """The file of a cell under way, written every `SOON` seconds, or less often where that is slow.

    file: None keeps nothing.  identity: what tells the cell from any other.
    """

    def __init__(self, file: Path | None = None, identity: str = ""):
        self.file = file
        self.identity = identity
        self.saved = time.perf_counter()
        self.pause = SOON

    def save(self, state: Callable[[], dict]) -> None:
        """Write what `state` returns (tensors, numbers, texts, and lists of them) if it is time to,
        whole or not at all, after a line with a checksum.
        """
        began = time.perf_counter()
        if self.file is None or began - self.saved < min(self.pause, SAVE_EVERY):
            return
        body = io.BytesIO()
        torch.save({"identity": self.identity, **state()}, body)
        with atomic.whole(self.file) as stream:
            stream.write(hashlib.sha256(body.getbuffer()).hexdigest().encode() + b"\n")
            stream.write(body.getbuffer())
        self.saved = time.perf_counter()
        self.pause = max(SOON, SELDOM * (self.saved - began))

    def load(self) -> dict | None:
        """The state in the file, or None where there is none or one that will not do, which is set
        aside with a warning that names it.
        """
        try:
            return self.file and self._read()
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever such a file makes torch raise
            reason, _, _ = str(error).partition("\n")
            if type(error) is not ValueError:
                reason = f"cannot be read ({type(error).__name__})"
        aside = self.file.with_suffix(".set-aside")
        with contextlib.suppress(FileNotFoundError):  # another runner has been here
            os.replace(self.file, aside)
        message = f"{self.file}: {reason}; set aside as {aside.name}, the cell begins anew"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
        return None

    def _read(self) -> dict:
        """The state, on the CPU; nothing in the file is run."""
        checksum, _, body = self.file.read_bytes().partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != checksum:
            raise ValueError("damaged (truncated or altered), or no state of a cell")
        state = torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)
        if state["identity"] != self.identity:
            raise ValueError("of another cell, or of other code")
        return state


NO_CHECKPOINT = Checkpoint()
