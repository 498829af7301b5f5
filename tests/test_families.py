"""Families of curves: planted bends come out with their ratio, and normalised curves start at one."""

import numpy as np
import pandas as pd
import pytest

from chapters.limits import claims as limits
from chapters.limits import family_curves
from lib.analysis import scaling
from lib.claims.claim import judged
from lib.claims.judging import registered
from lib.studies import families
from lib.studies.families import FAMILIES, WIDTH


def planted(bends, family=WIDTH, searches=8, scatter=0.02):
    """Trials of a family whose best steps lie near c1/B + c2 with these bends, by searches that scatter."""
    random, rows = np.random.default_rng(0), []
    for (member, (work, algorithm)), bend in zip(FAMILIES[family].members.items(), bends, strict=True):
        for b in 2.0 ** np.arange(0, 11, 2):
            for search in range(searches):
                steps = 100 * (1 + bend / b) * random.lognormal(0, scatter) * np.linspace(1, 1.3, 5)
                rows.append(pd.DataFrame({"family": family, "member": member, "workload": work, "algorithm": algorithm,
                                          "pruning": "connection-sensitivity", "sparsity": 0.0, "batch_size": int(b),
                                          "replicate": search, "split": search, "trials": 5, "goal": 0.05, "steps@0.05": steps,
                                          "steps": steps, "status": "complete", "last_step": steps.max(),
                                          "trial": range(5)}))  # fmt: skip
    return pd.concat(rows, ignore_index=True)


def test_planted_bends_come_out_with_their_ratio():
    summary = family_curves.bends(planted([16, 32, 128]))
    assert summary.critical.to_numpy() == pytest.approx([16, 32, 128], rel=0.1)
    effect = family_curves.effects(summary).iloc[0]
    assert (effect["first"], effect["last"], effect.n, effect.goal) == ("MLP 16×2", "MLP 256×2", 8, 0.05)
    assert effect.ratio == pytest.approx(8, rel=0.1) and effect.ratio_low < 8 < effect.ratio_high and effect.inside
    outside = family_curves.effects(family_curves.bends(planted([16, 32, 8000])))
    assert not outside.inside.item() and np.isinf(outside.ratio_high.item())


def dense(bends, searches, names=("digits-mlp", "digits-cnn"), algorithm="sgd"):
    """Curves by their keys."""
    found = {}
    for i, (name, bend) in enumerate(zip(names, bends, strict=True)):
        random = np.random.default_rng(i)
        sizes = 2 ** np.arange(11)
        logs = np.log(100 * (1 + bend / sizes)) + random.normal(0, 0.03, (searches, 11))
        index = pd.MultiIndex.from_product([range(searches), [i]], names=["replicate", "split"])
        own = pd.DataFrame(logs, index, sizes)
        found[name, algorithm, "connection-sensitivity", 0.0] = scaling.Curve(own, own.isna(), 0.3)
    return found


def test_the_spread_of_equal_critical_batch_sizes_includes_one_about_nine_times_in_ten():
    """The largest of eight over the smallest is well above one by chance alone."""
    held = []
    for seed in range(60):
        random = np.random.default_rng(seed)
        curves = []
        for i in range(8):
            index = pd.MultiIndex.from_product([range(5), [i]], names=["replicate", "split"])
            means = np.log(100 * (1 + 64 / 2.0 ** np.arange(8)))
            logs = pd.DataFrame(means + random.normal(0, 0.2, (5, 8)), index, 2 ** np.arange(8))
            curves.append(scaling.Curve(logs, logs.isna(), 0.3))
        value, low, high = family_curves.spread(curves)
        held.append(low == 1 and value > 1)
    assert np.mean(held) >= 0.85
    value, low, high = family_curves.spread([*dense([16, 160], 20).values()])
    assert value == pytest.approx(10, rel=0.1) and 7 < low < 10 < high < 14


@pytest.mark.parametrize(
    ("bend", "kind", "amount"), [(16, "for", "against"), (64, "against", "for")]
)
def test_families_are_judged_either_way_and_no_effect_by_the_same_bound(bend, kind, amount, monkeypatch):
    trials = planted([64, bend], families.MODEL, 20)
    monkeypatch.setattr(family_curves, "results", lambda wanted: trials)
    (group,) = judged(registered()["S5"], limits.kinds()).groups
    assert group.verdict == kind and group.effect == pytest.approx(max(bend / 64, 64 / bend), rel=0.1) and group.low >= 1
    monkeypatch.setattr(limits, "AMOUNTS", limits.KINDS)
    (group,) = judged(registered()["S8"], limits.amounts()).groups
    assert group.verdict == amount and group.effect == pytest.approx(bend / 64, rel=0.1)
