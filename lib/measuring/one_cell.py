"""Measuring one cell: its trials initialised, pruned, trained, and written to its record."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch
from torch.nn.utils.rnn import pad_sequence

from lib import own
from lib.engine import (
    batched,
    captured,
    flattening,
    lockstep,
    pruning,
    rounds,
    sequential,
    training_state,
    vocabulary,
)
from lib.measuring import machine
from lib.measuring.runner import Reporter
from lib.messages import exchanges
from lib.methods import late, method
from lib.methods.method import Method
from lib.records import store
from lib.records.places import record, same_data
from lib.studies.cells import Cell
from lib.studies.races import WIDER
from lib.workloads import datasets, models, own_file, own_network
from lib.workloads.catalogue import Workload
from lib.workloads.tasks import TASKS


@functools.lru_cache(maxsize=4096)
def _scores(
    work: Workload,
    method: str,
    seed: int,
    split: int,
    dtype: torch.dtype,
    device: str,
    sparsity: float = 0,
) -> torch.Tensor:
    """Pruning scores [P] of the workload's trial with this seed: the same for every batch size and
    algorithm.
    """
    module = models.fresh(work.model, seed)
    w, data = flattening.flatten(module).to(device), work.train(split)
    kind = (
        batched.BatchedExecutor if work.model.startswith("decoder") else _sequential(work, device)
    )
    executor = kind(module, dtype, device, task=TASKS[work.task])
    return pruning.scores(
        method, w, executor, executor.inputs(data.x), data.y.to(device), seed, sparsity
    ).cpu()


def seeds(cell: Cell) -> list[int]:
    """The initialisation seed of every trial: its index, moved by 100,000 for every replicate."""
    return [100_000 * cell.replicate + trial for trial in range(cell.trials)]


def start(
    cell: Cell, chosen: list[int] | None = None, device: str = "cpu"
) -> training_state.Trials:
    """The cell's trials (or the chosen ones) before their first step: initialised, pruned, with
    their hyperparameters.

    Among these is the batch size, on which a method may depend.  device: where scores are computed;
    the trials are on the CPU. A trial whose scores do not say what to keep is left without any
    weight.  Raises ScoresError where they say it of no trial.
    """
    work, chosen = cell.work, list(range(cell.trials)) if chosen is None else chosen
    chosen_seeds = [seeds(cell)[trial] for trial in chosen]
    w = torch.stack([flattening.flatten(models.fresh(work.model, s)) for s in chosen_seeds])
    if cell.sparsity == 0:
        mask = None
    else:
        # The other scores serve every sparsity
        needs = (cell.sparsity,) if cell.pruning == "synflow" else ()
        scores = [
            _scores(work, cell.pruning, s, cell.split, _dtype(cell), device, *needs)
            for s in chosen_seeds
        ]
        mask = _masks(cell, scores)
        w = w * mask
    drawn = {
        name: torch.from_numpy(values[chosen]).float()[:, None]
        for name, values in cell.draw().items()
    }
    drawn["batch_size"] = torch.full((len(chosen), 1), float(cell.batch_size))
    return training_state.Trials(w, mask, drawn)


def _masks(cell: Cell, scores: list[torch.Tensor]) -> torch.Tensor:
    """Masks [T, P] of the trials with these scores [P], zeros where they are refused; raises
    ScoresError if all are.
    """
    masks, refused = torch.zeros(len(scores), len(scores[0])), []
    for mask, found in zip(masks, scores, strict=True):
        try:
            mask.copy_(pruning.chosen(cell.pruning, found, cell.sparsity))
        except pruning.ScoresError as error:
            refused.append(error)
    if len(refused) == len(scores):
        raise refused[0]
    return masks


def exchange(
    cell: Cell, trials: training_state.Trials, watch: Callable | None = None
) -> exchanges.Exchange | None:
    """What the cell's workers send each other, for these trials before their first step; None for a
    single worker.
    """
    if cell.messages is None:
        return None
    # A trial without any weight, which leaves before the first step, has the first one in the place
    # of each.
    kept = (
        None
        if trials.mask is None
        else pad_sequence([row.nonzero()[:, 0] for row in trials.mask], batch_first=True)
    )
    sizes = [p.numel() for p in models.build(cell.work.model).parameters()]
    return exchanges.Exchange(cell.messages, *trials.w.shape, kept, sizes, cell.replicate, watch)


def _dtype(cell: Cell) -> torch.dtype:
    return getattr(torch, cell.arithmetic)


Executor = sequential.SequentialExecutor | batched.BatchedExecutor


def executor(cell: Cell, device: str = "cpu") -> Executor:
    """What computes the cell's gradients: batched for small batches (`Workload.batched_below`) of
    networks whose layers allow it, else one trial after another.

    Records made by the executors of earlier code, for sparse networks and for LeNet-5, stay valid:
    `python -m lib verify` then agrees to rounding.
    """
    work = cell.work
    module = models.build(work.model)
    small = cell.batch_size < work.batched_below and batched.fits(module)
    kind = batched.BatchedExecutor if small else _sequential(work, device)
    return kind(module, _dtype(cell), device, cell.label_smoothing, TASKS[work.task])


def _sequential(work: Workload, device: str) -> type[sequential.SequentialExecutor]:
    """On a graphics processor its kernels are recorded, but for a reader's own network, which may
    look at its values.
    """
    on_gpu = torch.device(device).type == "cuda"
    recorded = on_gpu and not work.source
    return captured.CapturedExecutor if recorded else sequential.SequentialExecutor


def trained_by(cell: Cell) -> Method:
    """The cell's method, with late gradients if it asks for them."""
    plain = method(cell.algorithm)
    return (
        late.late(plain, cell.staleness, cell.delays, cell.replicate) if cell.staleness else plain
    )


def train_cell(cell: Cell, device: str = "cpu", **options) -> training_state.Outcome:
    """Measure one cell on a device ("cpu", "cuda", ...); further options as in
    `lib.engine.lockstep.train`.
    """
    if cell.alone:
        return _train_alone(cell, device, **options)
    work = cell.work
    data, trials = datasets.load(work.dataset, cell.split), start(cell, device=device).to(device)
    options.setdefault("exchange", exchange(cell, trials))
    # Goals of a reader's own may lie out of reach; the book's records were made without.
    options.setdefault("whole_at_end", bool(work.source))
    options.setdefault(
        "whose", json.dumps([dataclasses.asdict(cell), cell.definition(), origin(cell, device)])
    )
    return lockstep.train(
        executor(cell, device),
        trials,
        work.train(cell.split),
        data.validation,
        method=trained_by(cell),
        batch_size=cell.batch_size,
        goals=work.goals,
        max_steps=cell.max_steps or work.max_steps,
        order_seed=cell.replicate,
        hits=cell.hits,
        stop=cell.stop,
        race=cell.race,
        rungs=cell.rungs,
        checks=cell.checks,
        test=data.test,
        **options,
    )


def _train_alone(cell: Cell, device: str, **options) -> training_state.Outcome:
    """Measure a cell whose trials are trained one after the other."""
    whose = json.dumps([dataclasses.asdict(cell), cell.definition(), origin(cell, device)])
    options.setdefault("whose", whose)
    return rounds.train(job(cell, device), seeds(cell), cell.draw(), cell.hits, **options)


def job(cell: Cell, device: str = "cpu") -> rounds.Job:
    """What the trials of such a cell share."""
    work, facts = cell.work, None
    if work.task == own.TRAINING:
        trained, facts = own_file.load(work.name), own_file.facts(work.name)
    else:
        trained = _as_training(cell)
    return rounds.Job(
        trained,
        work.name,
        method(cell.algorithm),
        cell.batch_size,
        cell.max_steps or work.max_steps,
        work.goals,
        cell.replicate,
        device,
        cell.arithmetic,
        cell.checks,
        facts.values if facts else len(datasets.load(work.dataset, cell.split).validation),
    )


def _as_training(cell: Cell) -> own.Training:
    """A workload of one network and tensors, for classes of torch.optim."""
    work, task = cell.work, TASKS[cell.work.task]
    train, held = work.train(cell.split), datasets.load(work.dataset, cell.split).validation
    return own.Training(
        # The trial has seeded torch
        model=lambda: models.fresh(work.model, torch.initial_seed()),
        train=(train.x, train.y),
        validation=(held.x, held.y),
        goals=work.goals,
        loss=lambda model, batch: task.loss(model(batch[0]).float(), batch[1]),
        metric=own.Metric(
            lambda model, batch: task.cost(model(batch[0])[None].float(), batch[1])[0],
            task.measure,
            never_negative=True,
        ),
    )


def table(cell: Cell, outcome: training_state.Outcome) -> pd.DataFrame:
    """The outcome as a table with a row per trial."""
    work = cell.work
    drawn = cell.draw()
    return pd.DataFrame(
        {
            "trial": range(cell.trials),
            "seed": seeds(cell),
            **drawn,
            "status": outcome.status,
            "cause": outcome.cause,
            "last_step": outcome.last_step,
            "best_error": outcome.best_error,
            "best_step": outcome.best_step,
            **{f"steps@{goal:g}": outcome.first[:, i] for i, goal in enumerate(work.goals)},
            **{
                f"loss@{loss:.2g}": outcome.fell[:, i]
                for i, loss in enumerate(vocabulary.LOSSES)
                if cell.rungs == "losses"
            },
            **{
                f"best@{budget}": outcome.best_within[:, i]
                for i, budget in enumerate(outcome.budgets)
            },
            **{
                f"test@{budget}": outcome.test_within[:, i]
                for i, budget in enumerate(outcome.budgets)
            },
            **({"sent": outcome.sent} if cell.messages else {}),
            **{
                f"sent@{budget}": outcome.sent_within[:, i]
                for i, budget in enumerate(outcome.budgets)
                if cell.messages
            },
        }
    )


def measure(
    cell: Cell, folder: Path, progress_folder: str | None = None, device: str = "cpu"
) -> Path:
    """Train a cell, or the rest of one that was interrupted, and write its record under `folder`;
    returns the file.

    A job of its own: one thread, no shared state.  A record that is there, another runner's, is
    left alone.  Where nobody wins a race, a second is run that is WIDER times as wide; the record
    is of that one, with the costs of both. Raises OwnError if a reader's own workload has made
    other tensors than those of the records beside it, or has changed. Raises OSError naming the
    file, before any training, if its folder cannot be written.
    """
    file = record(cell, folder)
    if store.exists(file):
        return file
    _agree(cell, folder, file)
    machine.use_one_core()
    measured_with = origin(cell, device)
    # Its name tells the origin, so that a cell begun with other code or on another device is begun
    # anew.
    unfinished = file.with_suffix(
        f".{hashlib.sha256(json.dumps(measured_with).encode()).hexdigest()[:8]}.part"
    )
    store.prepare(file)
    reporter = Reporter(progress_folder)
    outcome = train_cell(cell, device, progress=reporter, unfinished=unfinished)
    counted, wall_s = {"steps": outcome.steps, "trial_steps": outcome.trial_steps}, outcome.wall_s
    if _without_a_winner(outcome):
        wider = dataclasses.replace(cell, race=WIDER * cell.race)
        outcome = train_cell(
            wider, device, progress=reporter, unfinished=unfinished.with_suffix(".wider.part")
        )
        both = {"steps": outcome.steps, "trial_steps": counted["trial_steps"] + outcome.trial_steps}
        counted, wall_s = {**both, "raced_again": wider.race}, wall_s + outcome.wall_s
    # Once more: meanwhile the file may have changed, and others have measured
    _agree(cell, folder, file)
    store.write(
        file, cell, table(cell, outcome), machine.provenance(measured_with, wall_s, **counted)
    )
    for state in store.states(file):
        state.unlink(missing_ok=True)
    return file


def _without_a_winner(outcome: training_state.Outcome) -> bool:
    """Whether trials were abandoned in a race and none of the others met the hardest goal."""
    return "abandoned" in outcome.status and "complete" not in outcome.status


def origin(cell: Cell, device: str) -> dict:
    """What a cell is measured with, as its record tells."""
    return {**machine.origin(device, cell.arithmetic), **_data(cell)}


def _data(cell: Cell) -> dict[str, str]:
    """Which tensors a reader's own workload has made, as its records tell."""
    return {"data": own_file.data(cell.workload)} if own.is_own(cell.workload) else {}


def _agree(cell: Cell, folder: Path, file: Path) -> None:
    """Raise OwnError unless the record of a reader's own workload or method belongs into this file,
    among those beside it.
    """
    ours = [name for name in (cell.workload, cell.algorithm) if own.is_readers(name)]
    if own.is_own(cell.workload) and cell.work.task != own.TRAINING:
        own_network.check_rounding(cell.workload, own_file.load(cell.workload), cell.arithmetic)
    if ours and record(cell, folder) != file:
        raise own.OwnError(
            f"{', '.join(ours)}: the file has changed while {file.name} was trained; run the rest anew"
        )
    if own.is_own(cell.workload):
        same_data(cell.workload, folder, own_file.data(cell.workload))
