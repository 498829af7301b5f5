"""What most chapters read, computed once before a build runs them side by side: a local extension of Sphinx."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import joblib

from lib.claims import facts, front, ledger

HALVES = ((ledger.on_curves, facts.curves, front.curves), (ledger.on_others, front.scope, front.language_model))


def setup(app) -> dict:
    """Register with Sphinx, after `lib.page.sphinx` has said whether pages are stale and before it runs the chapters."""
    os.environ[ledger.BUILD] = str(Path(app.doctreedir).parent)
    app.connect("config-inited", _before_chapters, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _before_chapters(app, config) -> None:
    if app.stale:
        with contextlib.suppress(Exception):  # the chapters will tell
            prepare()


def prepare() -> None:
    """Judge the claims and compute what front page and `facts` keep, on two cores."""
    joblib.Parallel(n_jobs=2, backend="multiprocessing")(joblib.delayed(_each)(half) for half in HALVES)


def _each(parts: Sequence[Callable[[], object]]) -> None:
    for part in parts:
        part()
