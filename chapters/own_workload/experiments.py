"""What this chapter measures besides searches of cells."""

from chapters.own_workload.replays import REPLAYS

EXPERIMENTS = {"adaptive-replays": REPLAYS}
