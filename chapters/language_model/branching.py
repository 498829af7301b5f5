"""Training a run up to where it branches, and its branches."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import torch
from torch import Tensor

from chapters.language_model.branches import Branch
from lib.engine import flattening, lockstep
from lib.engine.training_state import Trials
from lib.measuring import one_cell
from lib.methods import method
from lib.workloads import datasets


def train(branch: Branch) -> pd.DataFrame:
    """The checks of every branch: order, seen (examples since it began, 0 where it begins) and cost
    (mean, of validation).
    """
    run = _Run(branch)
    trial = one_cell.start(branch.cell, [branch.trial])
    w, buffers = trial.w.clone(), run.method.begin(trial.w, run.parameters)
    picks = lockstep.batches(len(run.training), branch.batch_size, branch.cell.replicate)
    for step, pick in zip(range(1, branch.at + 1), picks):
        run.update(trial, w, buffers, step, pick)
    scaled = rescaled(trial, branch)
    began, rows = run.cost(w, buffers), []
    for order in range(branch.first, branch.first + branch.orders):
        rows.append((order, 0, began))
        own = {name: buffer.clone() for name, buffer in buffers.items()}
        rows += [(order, *check) for check in run.checks(scaled, w.clone(), own, order)]
    return pd.DataFrame(rows, columns=["order", "seen", "cost"])


def rescaled(trial: Trials, branch: Branch) -> Trials:
    """The trial with the learning rate of its branch."""
    factor = (branch.size / branch.batch_size) ** branch.power
    drawn = {**trial.drawn, "learning_rate": trial.drawn["learning_rate"] * factor}
    drawn["batch_size"] = torch.full_like(drawn["learning_rate"], float(branch.size))
    return Trials(trial.w, trial.mask, drawn)


class _Run:
    """What a run and its branches share."""

    def __init__(self, branch: Branch):
        cell = branch.cell
        self.branch, self.method, self.executor = (
            branch,
            method(cell.algorithm),
            one_cell.executor(cell),
        )
        self.parameters = flattening.layers(self.executor.module)
        self.training, validation = (
            cell.work.train(cell.split),
            datasets.load(cell.work.dataset, cell.split).validation,
        )
        self.x, self.asked, self.answers = (
            self.executor.inputs(self.training.x),
            self.executor.inputs(validation.x),
            validation.y,
        )

    def update(
        self, trial: Trials, w: Tensor, buffers: dict[str, Tensor], step: int, pick: Tensor
    ) -> None:
        """Update number `step` of w [1, P], in place."""
        batch = self.x[pick], self.training.y[pick]
        lockstep.update(self.method, self.executor, self.parameters, trial, w, buffers, step, batch)

    def cost(self, w: Tensor, buffers: dict[str, Tensor]) -> float:
        """The mean validation cost of w [1, P]."""
        asked = lockstep.validated(self.method, w, buffers)
        return (
            self.executor.task.cost(self.executor.logits(asked, self.asked), self.answers)
            .double()
            .mean()
            .item()
        )

    def checks(
        self, trial: Trials, w: Tensor, buffers: dict[str, Tensor], order: int
    ) -> Iterator[tuple[int, float]]:
        """A branch from w [1, P]: examples seen since and the cost, until it meets the goal or has
        seen all it may.
        """
        branch, seen, due = self.branch, 0, self.branch.look
        picks = lockstep.batches(len(self.training), branch.size, 1000 * (order + 1) + branch.at)
        for step, pick in enumerate(picks, start=branch.at + 1):
            self.update(trial, w, buffers, step, pick)
            seen += branch.size
            if seen >= due:
                due = seen + branch.look
                cost = self.cost(w, buffers)
                yield seen, cost
                if not cost > branch.goal:
                    return
            if seen + branch.size > branch.examples:
                return
