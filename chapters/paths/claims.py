"""What Guille-Escuret et al. (2024) say of paths, and the rule that judges it."""

from chapters.paths import experiments, path_geometry
from lib.claims.claim import Change, claim, ratio
from lib.claims.names import title
from lib.wording import named


@claim(
    "P2",
    "The geometry of a path is stable",
    chapter="paths",
    paper="Trajectories keep stable dynamics during the majority of training. (Here: restricted secant and error bound.)",
    source="Guille-Escuret et al. 2024, abstract, in our words",
    rule="On a network, with a method, a quantity of the full gradient varies less than fourfold over the middle 80 % of a path. "
    "Taken are its 90th percentile over its 10th, the median over a search's paths, and the mean over searches. "
    "On a random walk the error bound "
    "varies 2.1-fold, and the restricted secant 4.6-fold.",
    below=4.0,
    history=[
        Change(
            "2026-11-26",
            "the same for the median path of all networks",
            "networks disagree; paths of a search are no independent repeats",
        )
    ],
)
def spreads():
    found = path_geometry.spreads(path_geometry.by_path(experiments.WALKS.results()))
    return [
        ratio(f"{title(r.workload)}, {named(r.algorithm)}: {r.quantity}", r.effect)
        for r in found.itertuples()
    ]
