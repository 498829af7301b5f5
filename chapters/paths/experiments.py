"""What this chapter measures besides searches."""

from chapters.paths import walks

EXPERIMENTS = {"trajectories": walks.WALKS}
