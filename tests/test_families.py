"""Families of curves: planted bends come out with their ratio, and normalised curves start at one."""

import numpy as np
import pandas as pd
import pytest

from lib.analysis import family_curves
from lib.studies import families
from lib.studies.families import FAMILIES, WIDTH
from lib.workloads.catalogue import workload


def planted(bends):
    """Trials of the width family whose best steps lie on c1/B + c2 with these bends."""
    rows = []
    for (member, (work, algorithm)), bend in zip(FAMILIES[WIDTH].members.items(), bends, strict=True):
        for b in 2.0 ** np.arange(0, 11, 2):
            steps = 100 * (1 + bend / b) * np.linspace(1, 1.3, 5)
            rows.append(pd.DataFrame({"family": WIDTH, "member": member, "workload": work, "algorithm": algorithm,
                                      "pruning": "connection-sensitivity", "sparsity": 0.0, "batch_size": int(b), "replicate": 0,
                                      "trials": 5, "goal": 0.04, "steps@0.04": steps, "steps": steps, "status": "complete",
                                      "last_step": steps.max(), "trial": range(5)}))  # fmt: skip
    return pd.concat(rows, ignore_index=True)


def test_every_member_is_a_workload_that_has_the_familys_goal():
    for family in FAMILIES.values():
        for work, _ in family.members.values():
            assert family.goal in (0.0, *workload(work).goals)


def test_planted_bends_come_out_with_their_ratio():
    summary = family_curves.bends(planted([16, 32, 128]))
    assert summary.critical.to_numpy() == pytest.approx([16, 32, 128], rel=0.05)
    effect = family_curves.effects(summary).iloc[0]
    assert effect.ratio == pytest.approx(8, rel=0.3) and effect.ratio_low <= 8 <= effect.ratio_high * 1.1 and effect.inside
    outside = family_curves.bends(planted([16, 32, 8000]))
    assert not family_curves.effects(outside).inside.item()


def test_normalised_curves_start_at_one_and_follow_the_line_of_perfect_scaling_at_first():
    curve = family_curves.curves(planted([64, 64, 64]))
    first = curve[curve.batch_size == 1]
    assert (first.relative == 1).all() and (first.relative_perfect == 1).all()
    assert (curve.relative >= curve.relative_perfect - 1e-9).all()


def test_unknown_family_and_nothing_measured():
    with pytest.raises(ValueError, match="family: 'x' .* digits: width"):
        families.choose("x")
    assert family_curves.curves(pd.DataFrame()).empty and family_curves.bends(pd.DataFrame()).empty
    assert family_curves.effects(pd.DataFrame()).empty
