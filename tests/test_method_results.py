"""Training methods side by side: planted curves come out as planted, claims follow in either direction, plans share records."""

import itertools

import numpy as np
import pandas as pd
import pytest

from chapters.which_method import claims
from lib.analysis import method_results, scaling
from lib.claims import AGAINST, FOR
from lib.claims.claim import REGISTRY, judged

SIZES = (1, 4, 16, 64, 256, 1024)


def searched(algorithm, c1, c2, searches=5, sizes=SIZES, sparsity=0.0, trials=40, hits=40, seed=0):
    """Trials whose steps scatter above c1/B + c2; of each search the first hits are known."""
    random = np.random.default_rng([seed, len(algorithm)])
    cells = []
    for b, search in itertools.product(sizes, range(searches)):
        steps = np.sort((c1 / b + c2) * random.lognormal(0, 0.1, trials))
        known = np.where(np.arange(trials) < hits, steps, np.nan)
        cells.append(pd.DataFrame({
            "workload": "digits-mlp", "algorithm": algorithm, "pruning": "connection-sensitivity", "sparsity": sparsity,
            "batch_size": b, "trials": trials, "replicate": search, "split": search, "goal": 0.04, "trial": range(trials),
            "status": "complete", "last_step": np.nanmax(known), "steps": known, "steps@0.04": known,
        }))  # fmt: skip
    return pd.concat(cells, ignore_index=True)


def curves_of(*curves):
    return scaling.curves(pd.concat(curves))


def test_ratios_to_sgd_are_those_planted_and_an_interval_holds_them():
    found = method_results.over(curves_of(searched("sgd", 2000, 40), searched("adam", 2000, 10), searched("momentum", 4000, 40)))
    assert set(found.algorithm) == {"adam", "momentum"} and set(found.what) == set(method_results.QUANTITIES)
    ratio = found.set_index(["algorithm", "what"])
    planted = {"adam": (2000, 10), "momentum": (4000, 40)}
    for name, (c1, c2) in planted.items():
        assert ratio.loc[(name, "critical"), "ratio"] == pytest.approx((c1 / c2) / 50, rel=0.15)
        exact = [(c1 / b + c2) / (2000 / b + 40) for b in SIZES]
        for what, ends in (("small", exact[:2]), ("large", exact[-2:])):
            row = ratio.loc[name, what]
            assert row.ratio == pytest.approx((ends[0] * ends[1]) ** 0.5, rel=0.1)
            assert row.ratio_low < row.ratio < row.ratio_high and row.n == row.searches == 5
    assert method_results.over(curves_of(searched("adam", 2000, 10))).empty  # with none to divide by


# For every claim: its methods with c1 and c2 such that the records are for it, and such that they are against it.
BETTER, WORSE, SAME = (2000, 5), (8000, 160), (2000, 40)
CASES = {
    "O1": ({"lars-warmup": SAME, "clars": BETTER}, {"lars-warmup": BETTER, "clars": SAME}),
    "O2": ({"nesterov": SAME, "lars": SAME, "adam": BETTER, "lamb": SAME},
           {"nesterov": WORSE, "lars": SAME, "adam": WORSE, "lamb": SAME}),
    "O3": ({"momentum": SAME, "adam": BETTER, "kfac": BETTER}, {"momentum": BETTER, "adam": SAME, "kfac": SAME}),
    "O4": ({"momentum": WORSE, "momentum-ema": SAME}, {"momentum": SAME, "momentum-ema": WORSE}),
    "O5": ({"momentum": WORSE, "kfac": SAME}, {"momentum": SAME, "kfac": WORSE}),
    "O6": ({"muon": BETTER, "adam": SAME}, {"muon": SAME, "adam": BETTER}),
    "O7": ({"sgd": SAME, "momentum": SAME, "adam": SAME}, {"sgd": WORSE, "momentum": WORSE, "adam": SAME}),
}  # fmt: skip


@pytest.mark.parametrize("key", CASES)
def test_claims_follow_planted_curves_either_way_and_lack_rows_without_their_methods(key, monkeypatch):
    def found(curves):
        monkeypatch.setattr(claims, "curves", lambda whole=True: curves)
        return judged(REGISTRY.claims[key], REGISTRY.functions[key]())

    for planted, verdict in zip(CASES[key], (FOR, AGAINST)):
        parts = {name: searched(name, *constants, seed=n) for n, (name, constants) in enumerate(planted.items())}
        claim = found(curves_of(*parts.values()))
        assert {group.verdict for group in claim.groups} == {verdict} and all(group.n == 5 for group in claim.groups)
        for left_out in parts:
            fewer = found(curves_of(*(curve for name, curve in parts.items() if name != left_out)))
            assert len(fewer.groups) < len(claim.groups)


def test_the_best_of_five_is_that_of_five_drawn_trials_and_unknown_where_searches_ended_early():
    whole = searched("sgd", 2000, 40, searches=9)
    found = method_results.with_few_trials(whole).set_index("batch_size")
    random = np.random.default_rng(0)
    for b in (1, 1024):
        steps = [own.steps.to_numpy() for _, own in whole[whole.batch_size == b].groupby("replicate")]
        drawn = np.median([np.median([random.choice(s, 5, replace=False).min() for _ in range(400)]) for s in steps])
        assert found.steps[b] == pytest.approx(drawn, rel=0.03) and found.least[b] < found.steps[b]
    assert method_results.with_few_trials(searched("sgd", 2000, 40, hits=2)).empty
    known = method_results.with_few_trials(pd.concat([whole, searched("adam", 2000, 10, hits=2)]))
    assert known.empty  # no goal at which all methods know


# --- plans ------------------------------------------------------------------------------------------------------------
