"""What this chapter measures besides searches."""

from chapters.late_workers import delays

EXPERIMENTS = {"async-delays": delays.DELAYS}
