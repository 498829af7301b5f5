"""What this chapter measures besides searches of cells."""

from chapters.batch_ramps import searches

EXPERIMENTS = {"batch-ramps": searches.RAMPS}
