"""What most chapters read, computed once before a build runs them side by side: a local extension
of Sphinx.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from lib.claims import cache, facts, front, judging


def setup(app) -> dict:
    """Register with Sphinx, after `lib.page.sphinx` has said whether pages are stale and before it
    runs the chapters.
    """
    os.environ[cache.BUILD] = str(Path(app.doctreedir).parent)
    app.connect("config-inited", _before_chapters, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _before_chapters(app, config) -> None:
    if app.stale:
        with contextlib.suppress(Exception):  # the chapters will tell
            prepare()


def prepare() -> None:
    """Judge the claims and compute what front page and `facts` keep."""
    for compute in (judging.judge, facts.curves, front.curves, front.scope):
        compute()
