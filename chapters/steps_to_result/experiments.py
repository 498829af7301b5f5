"""What this chapter measures besides searches."""

from lib.probes import unseen

EXPERIMENTS = {"cross-validation": unseen.FOLDS}
