"""What Lee et al. (2021) say of smoothness, and the rule that judges it."""

from chapters.smoothness import followed_paths
from lib.analysis.scaling import Effect
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
    "network's, in the mean of searches; n counts splits. (The trials compared have different learning rates.)",
    above=1.25,
    history=[
        Change(
            "2026-11-26",
            "over one on every workload with three paths, in the median of paths of both methods",
            "left out ResNet-8, which has two; medians of few paths were bootstrapped",
        ),
        Change(
            "2026-11-28",
            "the same, with Welch's interval over paths, which were counted in n",
            "paths of one search are no independent repeats",
        ),
    ],
)
def roughness():
    means = followed_paths.typical(followed_paths.followed())
    dense = means[means.sparsity == 0]
    followed = dense.groupby(["workload", "algorithm"]).size()
    searches = dense.drop_duplicates(tracks.PATH[:-1]).groupby(["workload", "algorithm"]).size()

    def note(key: tuple, effect: Effect) -> str:
        return f"searches: {searches[key]}, dense paths followed: {followed[key]}"

    return rows(followed_paths.lipschitz_ratios(means), is_lee2021, note)
