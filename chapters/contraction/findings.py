"""Vectors, synthetic and from training, what the page on bounds says of them, and its tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.contraction import energy_bounds
from lib.probes import portraits
from lib.wording import percent
from lib.workloads import catalogue

GRID = portraits.DENSITIES
NORMAL = "normal"
ENTRIES = 100_000  # of a made-up vector
AT = 0.1  # density at which bounds and vectors are compared
BINS = (10, 20, portraits.FINE, portraits.PROFILE)  # in which profiles are judged
NORMALS = 20  # vectors of every network's length


def made_up() -> dict[str, np.ndarray]:
    """Vectors [ENTRIES] of known distributions."""
    r, d = np.random.default_rng(0), ENTRIES
    return {
        NORMAL: r.normal(size=d),
        "Laplace": r.laplace(size=d),
        "Student t, 4": r.standard_t(4, size=d),
        "uniform": r.uniform(-1, 1, d),
        "signs": r.choice([-1.0, 1.0], d),
        "signs with 10 % noise": r.choice([-1.0, 1.0], d) + 0.1 * r.normal(size=d),
    }


def profiles(made: dict[str, np.ndarray]) -> pd.DataFrame:
    """Sorted squared entries over the largest: vector, x (rank as a share), value."""
    ranks = (np.arange(portraits.PROFILE) + 0.5) / portraits.PROFILE
    return _long(made, ranks, portraits.profile)


def shares_left(made: dict[str, np.ndarray]) -> pd.DataFrame:
    """What Top-k leaves of the energy: vector, x (density), value."""
    return _long(made, GRID, lambda vector: portraits.left(vector, GRID))


def _long(made: dict[str, np.ndarray], x: np.ndarray, of) -> pd.DataFrame:
    return pd.concat(pd.DataFrame({"vector": n, "x": x, "value": of(u)}) for n, u in made.items())


def bounds() -> pd.DataFrame:
    curves = {
        "1 − k/d (any vector)": energy_bounds.classical(GRID),
        "(1 − k/d)² (bell)": energy_bounds.tighter(GRID),
        "normal distribution": energy_bounds.gaussian(GRID),
    }
    return pd.concat(pd.DataFrame({"bound": n, "x": GRID, "value": v}) for n, v in curves.items())


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """Vectors from training by the names that menus show, in their order: vector, x, value."""
    fields = rows[["workload", "compressor", "feedback", "step"]].itertuples(index=False)
    found = rows.assign(vector=[_name(*row) for row in fields])[["vector", "x", "value"]]
    order = sorted(found.vector.unique(), key=_place)
    return found.sort_values("vector", key=lambda v: v.map(order.index), kind="stable")


def _name(workload: str, compressor: str, feedback: bool, step: int) -> str:
    way = f"{compressor.capitalize()}, {'with' if feedback else 'without'} feedback"
    way = "everything sent" if compressor == "dense" else way
    return f"{catalogue.workload(workload).title}: {way}, step {step:,}"


def _place(vector: str) -> tuple:
    return "with feedback" not in vector, vector.split(", step ")[0], len(vector), vector


def with_feedback(rows: pd.DataFrame) -> pd.DataFrame:
    """Vectors of runs with Top-k and feedback."""
    return rows[rows.feedback.astype(bool) & (rows.compressor == "top-k")]


def band(left: pd.DataFrame) -> pd.DataFrame:
    """What is left with Top-k and feedback, over vectors: x, low, middle, high."""
    levels = with_feedback(left).groupby("x").value
    found = {"low": levels.min(), "middle": levels.median(), "high": levels.max()}
    return pd.DataFrame(found).reset_index()


def inside(rows: pd.DataFrame) -> float:
    """Share of the pairs of a vector and a density that are within the tighter bound."""
    return float((rows.value <= energy_bounds.tighter(rows.x) + 1e-6).mean())


def findings(left: pd.DataFrame, shapes: pd.DataFrame, density: float) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        left: what is left of vectors from training, of `portraits.results`.
        shapes: of `portraits.shapes`.
        density: share of the entries that is sent.
    """
    levels, fed = band(left), with_feedback(shapes)
    middle, most = (np.interp(density, levels.x, levels[name]) for name in ("middle", "high"))
    bound = float(energy_bounds.tighter(density))
    room = np.interp(AT, levels.x, energy_bounds.tighter(levels.x) - levels.high)
    failing = fed.workload[~fed.bell].unique()
    vectors = left.groupby(["workload", "compressor", "feedback", "step"])
    return {
        "density": f"{density:g}",
        "sent": percent(1 - middle),
        "promised": percent(1 - bound),
        "least_sent": percent(1 - most),
        "loose": bool(middle < bound),
        "obeyed": inside(left) == 1,
        "within": percent(inside(left)),
        "met": int(fed.bell.sum()),
        "of": len(fed),
        "bins": portraits.FINE,
        "apiece": NORMALS,
        "failing": [catalogue.workload(name).title for name in failing],
        "roomy": bool(room > 0),
        "room": percent(room),
        "vectors": vectors.ngroups,
        "networks": sorted({catalogue.workload(name).title for name in left.workload}),
        "below_line": bool(shapes.above.max() == 0),
    }


# --- tables ---------------------------------------------------------------------------------------


def of_condition(made: dict[str, np.ndarray]) -> pd.DataFrame:
    """Whether synthetic vectors meet the condition and obey the bound."""
    left = [own for _, own in shares_left(made).groupby("vector", sort=False)]
    bells = [energy_bounds.bell(vector) for vector in made.values()]
    return pd.DataFrame(
        {
            "vector": list(made),
            "meets the condition": ["yes" if bell else "no" for bell in bells],
            "densities within (1 − k/d)²": [percent(inside(own)) for own in left],
        }
    )


def of_bins(taken: pd.DataFrame) -> pd.DataFrame:
    """How many vectors meet the condition in how many bins: those with Top-k and feedback, and
    normal ones.

    taken: of `portraits.results`.
    """
    fed = with_feedback(taken[taken.measure == "profile"]).sort_values("x")
    trained = [own.value.to_numpy() for _, own in fed.groupby(portraits.KEY)]
    normal = [p for name in fed.workload.unique() for p in _normal_profiles(name)]
    both = {"from training": trained, "normal, of the same lengths": normal}
    table = {name: [_met(profiles, bins) for bins in BINS] for name, profiles in both.items()}
    return pd.DataFrame({"bins": BINS, **table})


def _normal_profiles(workload: str) -> list[np.ndarray]:
    """Profiles of normal vectors as long as a workload's."""
    from lib.workloads import models  # brings PyTorch, which is slow to import

    d = models.parameter_count(models.build(catalogue.workload(workload).model))
    r = np.random.default_rng(0)
    return [portraits.profile(r.normal(size=d), portraits.PROFILE) for _ in range(NORMALS)]


def _met(profiles: list[np.ndarray], bins: int) -> str:
    """How many meet the condition, for values of five digits, as those on record."""
    met = [portraits.bell(profile, bins, rounding=5e-5) for profile in profiles]
    return f"{sum(met)} of {len(met)}"
