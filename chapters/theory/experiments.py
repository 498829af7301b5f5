"""What this chapter measures besides searches."""

from chapters.theory import running_noise

EXPERIMENTS = {"noise-scale": running_noise.JOBS}
