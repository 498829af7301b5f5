"""The values of the sentences on smoothness, the tables, and the data of the figures."""

from __future__ import annotations

import pandas as pd

from chapters.smoothness import experiments, followed_paths
from chapters.smoothness.followed_paths import MEASURES, THEORY
from lib.analysis import scaling
from lib.analysis.followed_paths import PATH
from lib.claims import AGAINST, FOR, UNDECIDED, Claim
from lib.claims.names import is_lee2021
from lib.page.multiples import arranged
from lib.probes import tracks
from lib.studies import plans
from lib.wording import brief, named, number, ranged
from lib.workloads.catalogue import workload

TOLD = [measure for measure in MEASURES if measure != "along"]  # in tables
FITTED = "c₁, fitted"


def sparsest(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows at the highest sparsity of their workload and algorithm."""
    return rows[rows.sparsity == rows.groupby(["workload", "algorithm"]).sparsity.transform("max")]


def followed(*paths: pd.DataFrame) -> pd.DataFrame:
    """These paths and all on record, each curve by its name."""
    every = tracks.every(*paths).dropna(subset="lipschitz")
    return every.assign(curve=scaling.curve_names(every))


def twins(every: pd.DataFrame) -> pd.DataFrame:
    """Sparse paths over dense ones of the same hyperparameters and initialisation."""
    again = pd.concat([experiments.TWINS.results(), tracks.TRACKS["mnist"].results()])
    sparse = again[again.sparsity > 0].dropna(subset="lipschitz")
    return followed_paths.over_twin(every, sparse)


def at_rates(every: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """`followed_paths.at_rates`, each curve by its name."""
    rated = followed_paths.at_rates(every, trials)
    return rated.assign(curve=scaling.curve_names(rated))


def ratios(every: pd.DataFrame) -> pd.DataFrame:
    """Lipschitz constants of sparse paths over dense ones, the smoothest network first."""
    over = followed_paths.over_dense(every)
    over["row"] = scaling.curve_names(over)
    middle = sparsest(over).groupby("row").lipschitz.median()
    over = over.assign(place=over.row.map(middle)).sort_values("place", kind="stable")
    rows = over[["row", "sparsity", "batch_size", "trial", "lipschitz"]]
    return rows.rename(columns={"lipschitz": "ratio"})


def panels(every: pd.DataFrame) -> pd.DataFrame:
    """What the first figure draws: dense paths and the sparsest, at one batch size of a network.

    Args:
        every: of `followed`.

    Returns:
        points of paths, with panel, in the order of the panels, the papers' networks first.
    """
    size = every.groupby("workload").batch_size.median().astype(int)
    own = every[every.batch_size == every.workload.map(size)]
    own = own[own.sparsity.isin([0.0, own.sparsity.max()])].dropna(subset="lipschitz")
    ahead = sorted(size.index, key=lambda name: (not is_lee2021(name), name))
    keys = [(name, method) for name in ahead for method in ("sgd", "momentum", "nesterov")]
    panels = {(name, method): f"{workload(name).title}, {named(method)}" for name, method in keys}
    return arranged(own, panels)


def explained(trials: pd.DataFrame, paths: pd.DataFrame) -> pd.DataFrame:
    """Sparse over dense: c1 of the fits with its interval, and predictions of the theory's factors.

    Args:
        trials: searches at their goals.
        paths: of one network and method.
    """
    own = trials.workload.isin(paths.workload) & trials.algorithm.isin(paths.algorithm)
    curves = scaling.curves(trials[own])
    fits = []
    for key, *pair in scaling.with_partner(curves, scaling.dense_key):
        c1, _ = scaling.line_over(*scaling.alike(*pair))
        fits.append({"row": FITTED, "sparsity": key[3], **c1.row("ratio")})
    each = followed_paths.over_dense(paths).rename(columns=THEORY)
    each = each.melt(PATH, list(THEORY.values()), "row", "ratio")
    spread = each.groupby(["row", "sparsity"], sort=False).ratio
    spread = spread.agg(ratio="median", ratio_low="min", ratio_high="max").reset_index()
    shown = pd.concat([spread, pd.DataFrame(fits, columns=spread.columns)][: 1 + bool(fits)])
    levels = shown.sparsity.map("sparsity {:g}".format)
    return shown.assign(label=levels, sizes=paths.batch_size.nunique())


def findings(
    every: pd.DataFrame,
    rated: pd.DataFrame,
    factors: pd.DataFrame,
    claim: Claim,
    network: str,
    seeds: int,
) -> dict:
    """All values of the page's sentences.

    Args:
        every: of `followed`.
        rated: of `at_rates`.
        factors: of `explained`.
        claim: L7.
        network: the network and method asked for.
        seeds: trials followed in each search.
    """
    against = claim.decided(AGAINST)
    smoother = [group.effect for group in against]
    rest = claim.decided(UNDECIDED)
    known = set(every.curve)
    return {
        "smoother": bool(smoother and not claim.decided(FOR) and all(g.own for g in rest)),
        "smoother_least": min(smoother, default=None),
        "smoother_most": max(smoother, default=None),
        "smoother_high": max((group.high for group in against), default=None),
        "part": claim.part,
        "trials": len(every.drop_duplicates([*PATH, "trials"])),
        "networks": sorted({workload(name).title for name in every.workload}),
        "seeds": seeds,
        "network": network if network in known else min(known),
        "asked": network,
        **_counts(every),
        **_samples(every),
        **_twins(twins(every)),
        **_rate_law(rated),
        **_explained(factors),
        **_ends(every),
    }


def _counts(every: pd.DataFrame) -> dict[str, int]:
    """In how many trials the sparsest path is smoother, and rougher."""
    over = sparsest(followed_paths.over_dense(every))
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


def _twins(rows: pd.DataFrame) -> dict:
    """The Lipschitz constants of the sparsest twins, at their least and at their most."""
    far = rows[rows.sparsity == rows.sparsity.max()]
    middles = far.groupby("workload").lipschitz.median().sort_values()
    return {
        "level": f"{far.sparsity.max():g}",
        "twin_least": float(middles.iloc[0]),
        "twin_least_on": workload(middles.index[0]).title,
        "twin_most": float(middles.iloc[-1]),
        "twin_most_on": workload(middles.index[-1]).title,
    }


def _rate_law(rated: pd.DataFrame) -> dict:
    """How the Lipschitz constant varies with the learning rate of SGD on digits."""
    own = rated[rated.workload.isin(plans.DIGITS) & (rated.algorithm == "sgd")]
    law = followed_paths.rate_law(own)
    _, _, highest = power = law["power"].row(log=False).values()
    return {
        "smoother_at_larger_rates": bool(highest < 0),
        "power": ranged(*power),
        "factor": ranged(*law["factor"].row().values()),
        "law_level": f"{own.sparsity.max():g}",
        "law_paths": law["power"].n,
    }


def _explained(factors: pd.DataFrame) -> dict:
    """c1 of the sparsest curve, and what smoothness and the whole theory predict for it."""
    last = factors[factors.sparsity == factors.sparsity.max()].set_index("row").ratio
    wanted, alone, whole = (last.get(n) for n in (FITTED, THEORY["smoothness"], THEORY["theory"]))
    return {
        "c1_measured": wanted is not None,
        "c1": wanted,
        "c1_by_smoothness": alone,
        "c1_by_theory": whole,
        "falls_short": bool(wanted and alone < 1 < wanted and whole < wanted),
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


# --- tables ---------------------------------------------------------------------------------------


def of_twins(every: pd.DataFrame) -> pd.DataFrame:
    """Sparse twins over dense ones: pairs, those that are rougher, medians of all measures."""
    rows = twins(every).assign(network=lambda t: [workload(name).title for name in t.workload])
    groups = rows.assign(rougher=rows.lipschitz > 1).groupby(["network", "sparsity"])
    counts = groups.rougher.agg(["size", "sum"])
    counts.columns = ["pairs", "rougher in"]
    return _medians(groups, counts, "sparse over dense")


def of_paths(every: pd.DataFrame) -> pd.DataFrame:
    """Medians of all measures of every followed curve."""
    means = followed_paths.typical(every)
    groups = means.assign(curve=scaling.curve_names(means)).groupby(["curve", "sparsity"])
    return _medians(groups, groups.size().to_frame("trials"), "followed")


def _medians(groups, counts: pd.DataFrame, name: str) -> pd.DataFrame:
    """Counts of groups by name and sparsity beside the medians of their measures."""
    medians = groups[TOLD].median().map(brief).rename(columns=MEASURES)
    rows = counts.join(medians).rename_axis([name, "sparsity"]).reset_index()
    return rows.assign(sparsity=rows.sparsity.map("{:g}".format))
