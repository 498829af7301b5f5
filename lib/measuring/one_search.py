"""Measures one search: initialises, prunes and trains its trials, and writes its record."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch.nn.utils.rnn import pad_sequence

from lib.engine import batched, flattening, lockstep, pruning, sequential, trainings
from lib.engine.checkpoint import Checkpoint
from lib.engine.flattening import Executor
from lib.engine.training_state import Outcome, Trials
from lib.engine.vocabulary import LOSSES
from lib.measuring import machine
from lib.messages.exchanges import Exchange
from lib.methods import variants
from lib.methods.method import Method
from lib.own import OwnError
from lib.records import store
from lib.records.store import record, same_data
from lib.studies.search import Search
from lib.studies.study import WIDER
from lib.workloads.catalogue import Workload
from lib.workloads.tasks import TASKS


@functools.lru_cache(maxsize=4096)
def _scores(
    work: Workload,
    pruned_by: str,
    seed: int,
    split: int,
    dtype: torch.dtype,
    device: str,
    sparsity: float = 0,
) -> torch.Tensor:
    """Pruning scores [P] for a seed: the same for every batch size and algorithm."""
    module, data = work.network(seed), work.train(split)
    w = flattening.flatten(module).to(device)  # float32, before an executor rounds the module
    decoder = work.model.startswith("decoder")
    kind = batched.BatchedExecutor if decoder else _sequential(work, device)
    executor = kind(module, dtype, device, task=TASKS[work.task])
    x, y = executor.inputs(data.x), data.y.to(device)
    return pruning.scores(pruned_by, w, executor, x, y, seed, sparsity).cpu()


def seeds(cell: Search) -> list[int]:
    """The initialisation seed of every trial: its index, plus 100,000 per replicate."""
    return [100_000 * cell.replicate + trial for trial in range(cell.trials)]


def start(cell: Search, chosen: list[int] | None = None, device: str = "cpu") -> Trials:
    """The search's trials (or the chosen ones) before their first step: initialised, pruned, with
    their hyperparameters.

    These include the batch size, on which a method may depend.  A trial whose scores do not say
    what to keep is left without any weight.

    Args:
        device: where scores are computed and trials are placed.

    Raises:
        ScoresError: if the scores do not say what to keep for any trial.
    """
    chosen = list(range(cell.trials)) if chosen is None else chosen
    chosen_seeds = [seeds(cell)[trial] for trial in chosen]
    fresh = [flattening.flatten(cell.work.network(seed)) for seed in chosen_seeds]
    w = torch.stack(fresh).to(device)
    mask = None
    if cell.sparsity:
        mask = _masks(cell, chosen_seeds, device).to(device)
        w = w * mask
    drawn = {"batch_size": np.full(cell.trials, cell.batch_size), **cell.draw()}
    columns = {
        name: torch.from_numpy(values[chosen]).float()[:, None].to(device)
        for name, values in drawn.items()
    }
    return Trials(w, mask, columns)


def _masks(cell: Search, chosen_seeds: list[int], device: str) -> torch.Tensor:
    """Masks [T, P], zeros where scores are refused; raises ScoresError if all are."""
    # Except for synflow, scores serve every sparsity
    needs = (cell.sparsity,) if cell.pruning == "synflow" else ()
    shared = cell.split, _dtype(cell), device, *needs
    masks, refused = [], []
    for seed in chosen_seeds:
        scores = _scores(cell.work, cell.pruning, seed, *shared)
        try:
            masks.append(pruning.chosen(cell.pruning, scores, cell.sparsity).float())
        except pruning.ScoresError as error:
            refused.append(error)
            masks.append(torch.zeros(len(scores)))
    if len(refused) == len(masks):
        raise refused[0]
    return torch.stack(masks)


def exchange(cell: Search, trials: Trials, watch: Callable | None = None) -> Exchange | None:
    """The workers' exchange of messages before the first step; None for a single worker."""
    if cell.messages is None:
        return None
    kept = None
    if trials.mask is not None:
        # A trial without any weight, which is dropped before the first step, gets the first one
        places = [row.nonzero()[:, 0] for row in trials.mask]
        kept = pad_sequence(places, batch_first=True)
    sizes = [p.numel() for p in cell.work.network().parameters()]
    return Exchange(cell.messages, trials.w, kept, sizes, cell.replicate, watch)


def _dtype(cell: Search) -> torch.dtype:
    return getattr(torch, cell.arithmetic)


def executor(cell: Search, device: str = "cpu") -> Executor:
    """The executor for the search's gradients: batched for small batches
    (`Workload.batched_below`) of networks whose layers allow it, else one trial after another.

    Records from executors of earlier code, for sparse networks and LeNet-5, stay valid:
    `python -m lib verify` reproduces them up to rounding.
    """
    work = cell.work
    module = work.network()
    small = cell.batch_size < work.batched_below and batched.fits(module)
    kind = batched.BatchedExecutor if small else _sequential(work, device)
    return kind(module, _dtype(cell), device, cell.label_smoothing, TASKS[work.task])


def _sequential(work: Workload, device: str) -> type[sequential.SequentialExecutor]:
    """On a GPU, kernels are recorded, except for readers' networks, which may inspect values."""
    recorded = torch.device(device).type == "cuda" and work.recorded
    return sequential.CapturedExecutor if recorded else sequential.SequentialExecutor


def trained_by(cell: Search) -> Method:
    """The search's method, with late gradients if the search has them."""
    if not cell.staleness:
        return cell.method
    return variants.late(cell.method, cell.staleness, cell.delays, cell.replicate)


def train_search(
    cell: Search,
    device: str = "cpu",
    unfinished: Path | None = None,
    trials: Trials | None = None,
    until: float | None = None,
    **options,
) -> Outcome:
    """Measure one search.

    Args:
        device: "cpu", "cuda", ...
        unfinished: a file in which the state is saved every few seconds; if it exists, the search
            continues from it.  A file that is damaged or of another search is renamed, with a
            warning that names it, and the search begins anew.
        trials: before their first step; None: those of `start`.
        until: as for `measure`.
        options: of `lib.engine.lockstep.train`.
    """
    identity = [dataclasses.asdict(cell), cell.definition(), origin(cell, device)]
    options = {"checkpoint": Checkpoint(unfinished, json.dumps(identity), until)} | options
    if cell.alone:
        shared = job(cell, device)
        return trainings.train(shared, seeds(cell), cell.draw(), cell.hits, **options)
    work = cell.work
    data = work.data(cell.split)
    trials = start(cell, device=device) if trials is None else trials
    settings = {
        "method": trained_by(cell),
        "batch_size": cell.batch_size,
        "goals": work.goals,
        "max_steps": cell.max_steps or work.max_steps,
        "order_seed": cell.replicate,
        "test": data.test,
        "whole_at_end": work.whole_at_end,
        **{name: getattr(cell, name) for name in ("hits", "stop", "race", "rungs", "checks")},
        **options,
    }
    if "exchange" not in settings:
        settings["exchange"] = exchange(cell, trials)
    examples = data.train, data.validation
    return lockstep.train(executor(cell, device), trials, *examples, **settings)


def job(cell: Search, device: str = "cpu") -> trainings.Job:
    """What the trials of a search share if they are trained one after another."""
    return trainings.Job(
        cell.work.training(cell.split),
        cell.method,
        cell.batch_size,
        cell.max_steps or cell.work.max_steps,
        cell.work.goals,
        cell.replicate,
        device,
        cell.arithmetic,
        cell.checks,
        cell.sparsity,
        cell.pruning,
        matrices=cell.work.alone,
    )


def table(cell: Search, outcome: Outcome) -> pd.DataFrame:
    """The outcome as a table with a row per trial."""
    columns = {"trial": range(cell.trials), "seed": seeds(cell), **cell.draw()}
    for name in ("status", "cause", "last_step", "best_error", "best_step"):
        columns[name] = getattr(outcome, name)
    columns |= _columns("steps@{:g}", cell.work.goals, outcome.first)
    if cell.rungs == "losses":
        columns |= _columns("loss@{:.2g}", LOSSES, outcome.fell)
    columns |= _columns("best@{}", outcome.budgets, outcome.best_within)
    columns |= _columns("test@{}", outcome.budgets, outcome.test_within)
    if cell.messages:
        columns["sent"] = outcome.sent
        columns |= _columns("sent@{}", outcome.budgets, outcome.sent_within)
    return pd.DataFrame(columns)


def _columns(name: str, heads: Iterable, values: np.ndarray) -> dict[str, np.ndarray]:
    """Values [trials, heads] by columns."""
    return {name.format(head): column for head, column in zip(heads, values.T, strict=True)}


def measure(
    cell: Search, folder: Path, device: str = "cpu", until: float | None = None
) -> Path:
    """Train a search, or the rest of an interrupted one, and write its record under `folder`;
    returns the file.

    An independent job: one thread, no shared state.  An existing record, by another runner, is left
    alone.  If no trial wins a race, a second one is run, WIDER times as wide; its record includes
    the costs of both.

    Raises:
        OutOfTime: at the time `until` (`time.time`), if not None; the state is kept.
        OwnError: if a reader's own workload has changed, or now makes other tensors than those of
            the records beside it.
        OSError: naming the file, before any training, if its folder cannot be written.
    """
    file = record(cell, folder)
    if store.exists(file):
        return file
    _agree(cell, folder, file)
    machine.use_one_core()
    measured_with = origin(cell, device)
    # Named after the origin, so that a search begun with other code or on another device starts
    # anew.
    digest = hashlib.sha256(json.dumps(measured_with).encode()).hexdigest()[:8]
    unfinished = file.with_suffix(f".{digest}.part")
    store.prepare(file)
    outcome = train_search(cell, device, unfinished, until=until)
    costs = {"steps": outcome.steps, "trial_steps": outcome.trial_steps}
    seconds = outcome.wall_s
    if "abandoned" in outcome.status and "complete" not in outcome.status:
        wider = dataclasses.replace(cell, race=WIDER * cell.race)
        outcome = train_search(
            wider, device, unfinished.with_suffix(".wider.part"), until=until
        )
        trial_steps = costs["trial_steps"] + outcome.trial_steps
        costs = {"steps": outcome.steps, "trial_steps": trial_steps, "raced_again": wider.race}
        seconds += outcome.wall_s
    # Once more: the reader's file may have changed meanwhile, and others may have measured
    _agree(cell, folder, file)
    about = machine.provenance(measured_with, seconds, **costs)
    store.write(file, cell, table(cell, outcome), about)
    for state in file.parent.glob(f"{file.stem}.*.part"):
        state.unlink(missing_ok=True)
    return file


def origin(cell: Search, device: str) -> dict:
    """What a search is measured with, and the digest of a reader's tensors."""
    data = {"data": cell.work.tensors} if cell.work.tensors else {}
    return {**machine.origin(device, cell.arithmetic), **data}


def _agree(cell: Search, folder: Path, file: Path) -> None:
    """Raise OwnError unless a reader's own search still belongs in this file."""
    now = dataclasses.replace(cell)  # resolved anew
    if record(now, folder) != file:
        raise OwnError(
            f"{cell.algorithm} on {cell.workload}: the file has changed while {file.name} was "
            "trained; rerun the search"
        )
    if tensors := now.work.tensors:
        same_data(cell.workload, folder, tensors, [cell.algorithm])
