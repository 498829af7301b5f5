"""What Lee et al. (2021) say about smoothness and Guille-Escuret et al. (2024) about paths, and the
rules that judge these claims.
"""

from dataclasses import replace

from chapters.smoothness import experiments, followed_paths, path_geometry
from lib.analysis.scaling import Effect
from lib.claims.claim import claim, finding, ratio
from lib.claims.names import curve_title, is_lee2021, rows
from lib.probes import tracks


@claim(
    "L7",
    "Pruned networks’ loss is less smooth",
    paper="A lack of smoothness, a larger local Lipschitz constant of the gradient, accounts for the difficulty of training sparse "
    "networks. (Here: whether it is larger.)",
    source="Lee et al. 2021, abstract",
    rule="On a network, the Lipschitz constant along the fastest trials at the highest sparsity is over 1.25 times the dense "
    "network's, in the mean of searches; n counts splits. (The trials compared have different learning rates.)",
    above=1.25,
)
def roughness():
    means = followed_paths.typical(followed_paths.followed())
    dense = means[means.sparsity == 0]
    followed = dense.value_counts(["workload", "algorithm"])
    searches = dense.drop_duplicates(tracks.PATH[:-1]).value_counts(["workload", "algorithm"])

    def note(key: tuple, effect: Effect) -> str:
        return f"searches: {searches[key]}, dense paths followed: {followed[key]}"

    groups = rows(followed_paths.lipschitz_ratios(means), is_lee2021, note)
    return [replace(group, decides=group.n > 1) for group in groups]


@finding(
    "P2",
    "The geometry of a path is stable",
    paper="Trajectories keep stable dynamics during the majority of training. (Here: restricted secant and error bound.)",
    source="Guille-Escuret et al. 2024, abstract, in our words",
    shown="How much a quantity of the full gradient varies over the middle 80 % of a "
    "path: its 90th percentile over its 10th, the median over a search's paths and "
    "the mean over searches. On a random walk the error bound varies 2.1-fold, the "
    "restricted secant 4.6-fold.",
)
def steadiness():
    spreads = path_geometry.spreads(path_geometry.by_path(experiments.WALKS.results()))
    return [
        ratio(f"{curve_title((row.workload, row.algorithm))}: {row.quantity}", row.effect)
        for row in spreads.itertuples()
    ]
