"""The values of the sentences on smoothness, the table, and the data of the figure."""

from __future__ import annotations

import math

import pandas as pd

from chapters.smoothness import experiments, followed_paths
from chapters.smoothness.followed_paths import MEASURES
from lib.claims import AGAINST, FOR, Claim
from lib.claims.names import is_lee2021
from lib.page.shared_figures import arranged
from lib.probes import tracks
from lib.probes.tracks import PATH
from lib.studies import plans
from lib.wording import brief, named, number
from lib.workloads.catalogue import workload


def panels(every: pd.DataFrame) -> pd.DataFrame:
    """What the figure draws: dense paths and the sparsest, at one batch size of a network.

    Args:
        every: of `followed_paths.followed`.

    Returns:
        points of paths, with panel, in the order of the panels, the papers' networks first.
    """
    size = every.groupby("workload").batch_size.median().astype(int)
    own = every[every.batch_size == every.workload.map(size)]
    own = own[own.sparsity.isin([0.0, own.sparsity.max()])]
    ahead = sorted(size.index, key=lambda name: (not is_lee2021(name), name))
    keys = [(name, method) for name in ahead for method in ("sgd", "momentum")]
    panels = {(name, method): f"{workload(name).title}, {named(method)}" for name, method in keys}
    return arranged(own, panels)


def twins(every: pd.DataFrame) -> pd.DataFrame:
    """Sparse paths over dense ones of the same trial: same hyperparameters and initialisation."""
    again = pd.concat([experiments.TWINS.results(), tracks.TRACKS["mnist"].results()])
    again = again.dropna(subset="lipschitz")
    all_points = pd.concat([every, again]).drop_duplicates([*PATH, "step"])
    same = [column for column in PATH if column != "sparsity"]
    return followed_paths.over_dense(again, all_points, same)


def findings(every: pd.DataFrame, pairs: pd.DataFrame, claim: Claim) -> dict:
    """All values of the page's sentences.

    Args:
        every: of `followed_paths.followed`.
        pairs: of `twins`.
        claim: L7.
    """
    against = claim.decided(AGAINST)
    smoother = [group.effect for group in against]
    own = pairs.workload.map(is_lee2021).astype(bool)
    smaller = pairs.lipschitz < 1
    return {
        "smoother": bool(smoother and not claim.decided(FOR)),
        "smoother_in": len(against),
        "small": sum(not group.own for group in claim.measured),
        "smoother_least": min(smoother, default=None),
        "smoother_most": max(smoother, default=None),
        "smoother_high": max((group.high for group in against), default=None),
        "part": claim.part,
        "level": f"{every.sparsity.max():g}",
        "trials": len(every.drop_duplicates([*PATH, "trials"])),
        "networks": sorted({workload(name).title for name in every.workload}),
        "twins": len(pairs),
        "twins_smoother": int(smaller.sum()),
        "own_twins": int(own.sum()),
        "own_twins_smoother": int((own & smaller).sum()),
        "own_reach": _reaches(claim),
        **_counts(every),
        **_samples(every),
        **_ends(every),
    }


def _reaches(claim: Claim) -> list[str]:
    """How wide the intervals are on the paper's own networks of several searches."""
    told = []
    for group in claim.measured:
        if group.own and math.isfinite(group.high):
            factor = math.sqrt(group.high / group.low)
            told.append(f"a factor of {brief(factor)} either way on {group.name}")
    return told


def _counts(every: pd.DataFrame) -> dict[str, int]:
    """In how many trials the sparsest path is smoother, and rougher."""
    over = followed_paths.over_dense(every, every, ["workload", "algorithm", "batch_size"])
    most = over.groupby(["workload", "algorithm"]).sparsity.transform("max")
    over = over[over.sparsity == most]
    own = over.workload.map(is_lee2021).astype(bool)
    rougher = over.lipschitz > 1
    return {
        "digits_smoother": int((~own & ~rougher).sum()),
        "digits_paths": int((~own).sum()),
        "own_rougher": int((own & rougher).sum()),
        "own_paths": int(own.sum()),
    }


def _samples(every: pd.DataFrame) -> dict:
    """How many searches of the papers' networks were followed, and the training images on which
    their gradients are estimated where these are not all.
    """
    own = every[every.workload.map(is_lee2021).astype(bool)]
    searches = own[own.sparsity == 0].drop_duplicates(PATH[:-1]).groupby("workload").size()
    return {
        "own_searches": [f"{count} of {workload(name).title}" for name, count in searches.items()],
        "sampled": [number(count) for count in sorted(own.examples[own.examples > 0].unique())],
    }


def _ends(every: pd.DataFrame) -> dict:
    """How many paths on images end above their goal, which bfloat16 may do."""
    images = every[~every.workload.isin(plans.DIGITS)].sort_values("step")
    last = images.groupby(PATH)[["error"]].last().reset_index()
    goals = last.workload.map(lambda name: workload(name).goal)
    behind = last.error / goals
    return {
        "image_paths": len(behind),
        "image_missed": int((behind > 1).sum()),
        "image_worst": f"{behind.max():.2f}",
    }


def of_twins(pairs: pd.DataFrame) -> pd.DataFrame:
    """The page's table, of `twins`: pairs, those that are rougher, medians of the measures."""
    titles = [workload(name).title for name in pairs.workload]
    rows = pairs.assign(network=titles, rougher=pairs.lipschitz > 1)
    groups = rows.groupby(["network", "sparsity"])
    counts = groups.rougher.agg(["size", "sum"]).set_axis(["pairs", "rougher in"], axis=1)
    medians = groups[[*MEASURES]].median().map(brief).rename(columns=MEASURES)
    return counts.join(medians).rename_axis(["sparse over dense", "sparsity"]).reset_index()
