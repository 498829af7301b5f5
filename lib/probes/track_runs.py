"""`tracks.along`, where chapters look for it."""

from lib.probes.tracks import along

__all__ = ["along"]
