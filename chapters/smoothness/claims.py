"""What Lee et al. (2021) say of smoothness, and the rule that judges it."""

from chapters.smoothness import followed_paths
from lib.claims.claim import Change, claim
from lib.claims.names import is_lee2021, rows
from lib.probes import tracks


@claim(
    "L7",
    "Pruned networks’ loss is less smooth",
    chapter="smoothness",
    paper="A lack of smoothness, a larger local Lipschitz constant of the gradient, accounts for the difficulty of training sparse "
    "networks. (Here: whether it is larger.)",
    source="Lee et al. 2021, abstract",
    rule="On a network, the Lipschitz constant along the fastest trials at the highest sparsity is over 1.25 times the dense "
    "network's, in the mean of paths. (The trials compared have different learning rates.)",
    above=1.25,
    history=[
        Change(
            "2026-11-26",
            "over one on every workload with three paths, in the median of paths of both methods",
            "left out ResNet-8, which has two; medians of few paths were bootstrapped",
        ),
    ],
)
def roughness():
    means = followed_paths.typical(followed_paths.followed())
    dense = means[means.sparsity == 0].drop_duplicates(tracks.PATH[:-1])
    searches = dense.groupby(["workload", "algorithm"]).size()
    return rows(
        followed_paths.lipschitz_ratios(means),
        is_lee2021,
        lambda key, _: f"n: followed paths; of searches there are {searches[key]}",
    )
