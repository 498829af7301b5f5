"""Training a run up to where it branches, and its branches."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import torch

from chapters.language_model.branches import Branch
from lib.engine.training_state import Trials
from lib.measuring.rerun import Rerun


def train(branch: Branch) -> pd.DataFrame:
    """The checks of every branch: order, seen (examples since it began, 0 where it begins) and cost
    (mean, of validation).
    """
    trunk = Rerun(branch.cell, [branch.trial])
    for _ in range(branch.at):
        trunk.update()
    scaled = rescaled(trunk.trials, branch)
    began, rows = cost(trunk), []
    for order in range(branch.first, branch.first + branch.orders):
        rows.append((order, 0, began))
        forked = trunk.fork(scaled, branch.size, 1000 * (order + 1) + branch.at)
        rows += [(order, *check) for check in checks(branch, forked)]
    return pd.DataFrame(rows, columns=["order", "seen", "cost"])


def rescaled(trial: Trials, branch: Branch) -> Trials:
    """The trial with the learning rate of its branch."""
    factor = (branch.size / branch.batch_size) ** branch.power
    drawn = {**trial.drawn, "learning_rate": trial.drawn["learning_rate"] * factor}
    drawn["batch_size"] = torch.full_like(drawn["learning_rate"], float(branch.size))
    return Trials(trial.w, trial.mask, drawn)


def cost(run: Rerun) -> float:
    """The mean validation cost."""
    return run.costs(run.validation).double().mean().item()


def checks(branch: Branch, run: Rerun) -> Iterator[tuple[int, float]]:
    """Examples seen since the branch began and its cost, until it meets the goal or has seen all it
    may.
    """
    seen, due = 0, branch.look
    while True:
        run.update()
        seen += branch.size
        if seen >= due:
            due = seen + branch.look
            found = cost(run)
            yield seen, found
            if not found > branch.goal:
                return
        if seen + branch.size > branch.examples:
            return
