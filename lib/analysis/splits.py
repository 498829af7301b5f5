"""What the draw of validation images does: how hard each draw is, and steps to result on ours and
on that of Lee et al. (2021).

How hard a draw is, is told by networks that have seen none of its images
(`lib.probes.folds`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from lib import require
from lib.analysis.scaling import goals, mean_of, steps_to_result
from lib.records import on_record
from lib.studies.cells import Cell
from lib.workloads import datasets
from lib.workloads.catalogue import THEIR_SPLIT, workload

THEIRS = "Lee et al. (2021)"
DRAWS = 10_000
BINS = 40  # of the histogram of draws
SEEDS = range(21)  # of our splits: the one that all pages use, and twenty more


def shares(rows: pd.DataFrame, name: str) -> np.ndarray:
    """The share of networks that got each image of the training set wrong [N], from the rows of one
    workload.

    rows: of `lib.probes.folds`, with columns workload, image, wrong and networks.
    Raises ValueError if the workload has none.
    """
    own = rows[rows.workload == name] if len(rows) else rows
    require(len(own) > 0, "workload", name, "one whose folds are on record")
    found = np.zeros(datasets.whole_size(workload(name).dataset))
    found[own.image] = own.wrong / own.networks
    return found


def drawn(share: np.ndarray) -> np.ndarray:
    """The errors that random draws of a tenth of the images would show [DRAWS]; share [N]: as of
    `shares`.

    How many images of each share a draw holds is multivariate hypergeometric, so that no images
    need be drawn.
    """
    levels, counts = np.unique(share, return_counts=True)
    size = len(share) // 10
    random = np.random.default_rng(0)
    held = random.multivariate_hypergeometric(counts, size, DRAWS, method="marginals")
    return held @ levels / size


def of_splits(share: np.ndarray, among: np.ndarray) -> pd.DataFrame:
    """How hard the splits of MNIST are, a row each: THEIRS first, then ours by seed.

    Columns: split (THEIRS, or the seed), error (mean of share [60,000] over its validation images),
    percentile (of draws `among` [draws] with a lower error, those that tie counted half), shared
    (validation images in common with theirs).
    """
    theirs = datasets.held_out(datasets.LEE2021)
    held = {THEIRS: theirs, **{seed: datasets.held_out("mnist", seed) for seed in SEEDS}}
    rows = []
    for split, places in held.items():
        error = share[places].mean()
        below = among < error - 1e-12
        tied_too = among <= error + 1e-12
        percentile = 100 * np.mean([below, tied_too])
        shared = np.intersect1d(places, theirs)
        rows.append((split, error, percentile, len(shared)))
    return pd.DataFrame(rows, columns=["split", "error", "percentile", "shared"])


def told(rows: pd.DataFrame, name: str) -> dict[str, float]:
    """What a page says of the splits, by the networks of one workload; rows as of `shares`.

    theirs, ours (error of split 0), mean (over all images): in percent; scatter: standard deviation
    between draws, in points; theirs_percentile, ours_percentile; ratio: ours over theirs; lowest,
    highest: of the percentiles of our other splits.
    """
    share = shares(rows, name)
    among = drawn(share)
    table = of_splits(share, among).set_index("split")
    theirs = table.loc[THEIRS]
    ours = table.loc[0]
    others = table.drop(index=[THEIRS, 0]).percentile
    return {
        "theirs": 100 * theirs.error,
        "ours": 100 * ours.error,
        "mean": 100 * share.mean(),
        "scatter": 100 * among.std(),
        "theirs_percentile": theirs.percentile,
        "ours_percentile": ours.percentile,
        "ratio": ours.error / theirs.error,
        "lowest": others.min(),
        "highest": others.max(),
    }


def histogram(among: np.ndarray) -> pd.DataFrame:
    """The errors of draws `among` [draws] in bins of one width: low, high (errors), share (of all
    draws).
    """
    counts, edges = np.histogram(among, BINS)
    return pd.DataFrame({"low": edges[:-1], "high": edges[1:], "share": counts / len(among)})


def counterparts(cells: Iterable[Cell]) -> list[Cell]:
    """Cells on their split, and after each its exact counterpart on ours, with whatever number of
    hits is on record.
    """
    found = []
    for cell in cells:
        name = cell.workload.removesuffix(THEIR_SPLIT)
        ours = replace(cell, workload=name, race=None, rungs="goals")
        waited = (replace(ours, hits=hits) for hits in (1, 2, 5))
        found += [cell, *on_record.recorded_of(waited)]
    return found


def at_ends(trials: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`pairs` at every network's hardest goal, and at its easiest."""
    networks = trials.groupby(trials.workload.str.removesuffix(THEIR_SPLIT), sort=False)
    ends = ([pairs(own, goals(own)[end]) for _, own in networks] for end in (0, -1))
    return tuple(pd.concat(found, ignore_index=True) for found in ends)


def pairs(trials: pd.DataFrame, goal: float) -> pd.DataFrame:
    """Searches that were made on both splits with the same trials, a row each.

    trials: as of `lib.records.results.read`, of workloads with and without THEIR_SPLIT.
    Columns: network (its workload on our split), algorithm, sparsity, batch_size,
    replicate, goal, theirs, ours (K*; the last step of a search that missed the goal), ratio (ours
    over theirs), missed (searches of the two).
    """
    found = steps_to_result(trials, goal)
    found = found[found.split == 0]
    there = found.workload.str.endswith(THEIR_SPLIT)
    found = found.assign(
        network=found.workload.str.removesuffix(THEIR_SPLIT),
        missed=found.steps.isna().astype(int),
        steps=found.steps.fillna(found.last_step),
    )
    keys = ["network", "algorithm", "sparsity", "batch_size", "replicate", "goal"]
    same = [*keys, "trials", "checks", "precision"]
    theirs, ours = (found.loc[side, [*same, "steps", "missed"]] for side in (there, ~there))
    both = theirs.merge(ours, on=same, suffixes=("_theirs", "_ours"))
    both = both.rename(columns={"steps_theirs": "theirs", "steps_ours": "ours"})
    both["ratio"] = both.ours / both.theirs
    both["missed"] = both.missed_theirs + both.missed_ours
    return both[[*keys, "theirs", "ours", "ratio", "missed"]].sort_values(keys, ignore_index=True)


def over_theirs(both: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """K* on our split over that on theirs, a row per group of `pairs`: ratio (geometric mean), low,
    high, searches, missed.

    low, high: 5 and 95 %, Student's t on the logarithms; 0 and inf for a single search.  They tell
    of searches on these two splits, not of other splits.
    """
    rows = []
    for key, own in both.groupby(by):
        found = mean_of(np.log(own.ratio)).row("ratio")
        rows.append((*key, *found.values(), len(own), int(own.missed.sum())))
    return pd.DataFrame(rows, columns=[*by, "ratio", "low", "high", "searches", "missed"])
