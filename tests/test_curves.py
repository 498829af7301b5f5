"""Intervals cover what was planted, forms are rejected when they are wrong, goals that are missed are bounds."""

import numpy as np
import pandas as pd
import pytest

from lib.analysis import scaling
from lib.analysis.scaling import forms

SIZES = {"eleven": 2.0 ** np.arange(11), "six": 4.0 ** np.arange(1, 7)}
DENSE, SPARSE = (1300.0, 20.0), (4000.0, 40.0)  # c1, c2
SCATTER = 0.3  # of ln K*: of a search as a whole, of its order of the data, and of a single cell


def planted(random, constants, sizes, shared, limit=np.inf, exponent=1.0):
    """A curve of searches [n] whose ln K* scatters about c1/B^p + c2; what takes more than `limit` steps is missed."""
    c1, c2 = constants
    logs = np.log(c1 / sizes**exponent + c2) + shared + random.normal(0, SCATTER, shared.shape)
    missed = logs > np.log(limit)
    index = pd.MultiIndex.from_product([[0], range(len(shared))], names=["replicate", "split"])
    frames = (pd.DataFrame(v, index, sizes.astype(int)) for v in (np.minimum(logs, np.log(limit)), missed))
    return scaling.Curve(*frames, scatter=0.45)


def pairs(n, sizes, limit, times, seed=0):
    """Dense and sparse curves of the same n searches, again and again."""
    random = np.random.default_rng(seed)
    for _ in range(times):
        shared = random.normal(0, SCATTER, (n, 1)) + random.normal(0, SCATTER, (n, len(sizes)))
        yield tuple(planted(random, constants, sizes, shared, limit) for constants in (DENSE, SPARSE))


TIMES = 150
SLACK = 1.645 * np.sqrt(0.9 * 0.1 / TIMES)  # of a share of so many, at 90 %: the band itself is 86 to 94 %


@pytest.mark.parametrize(("n", "limit"), [(3, 1100.0), (10, np.inf)], ids=["missed", "met"])
def test_intervals_cover_what_was_planted(n, limit):
    """90 % within 86 to 94 %, for a critical batch size, ratios of two, and steps over steps; `missed`: some 7 % of searches."""
    sizes = SIZES["six"]
    truths = {"critical": np.log(65), "ratio": np.log(100 / 65), "steps": np.log((1000 + 40) / (325 + 20))}
    hits = dict.fromkeys(truths, 0)
    for dense, sparse in pairs(n, sizes, limit, TIMES):
        first = scaling.steps_ratio(sparse, dense).effect[0]
        found = {"critical": scaling.critical(dense), "ratio": scaling.critical_ratio(sparse, dense), "steps": first}
        for name, effect in found.items():
            hits[name] += effect.low <= truths[name] <= effect.high
    for name, count in hits.items():
        assert 0.86 - SLACK <= count / TIMES <= 0.94 + SLACK, name


def test_a_point_that_every_search_missed_still_bends_the_curve():
    """Left out, the smallest batch would be as if never tried; as a bound it keeps the critical batch size from falling."""
    sizes, random = SIZES["six"], np.random.default_rng(0)
    shared = random.normal(0, 0.1, (8, 6))
    whole, cut = (planted(np.random.default_rng(1), SPARSE, sizes, shared, limit) for limit in (np.inf, 500.0))
    assert cut.missed[4].all() and not cut.met[0]
    assert scaling.critical(cut).value == pytest.approx(scaling.critical(whole).value, abs=0.25)
    assert len(cut.points()) == 5


@pytest.mark.parametrize("n", [3, 20])
def test_a_form_is_rejected_as_often_as_it_should_be(n, monkeypatch):
    sizes = SIZES["six"]
    monkeypatch.setattr(forms, "_exponent_range", lambda *_: (np.nan, np.nan))  # a hundred fits that no p-value needs
    random, times = np.random.default_rng(0), 200
    scatter = np.linspace(0.4, 0.15, len(sizes))  # small batches scatter more
    rejected = {1.0: 0, 0.75: 0}
    for exponent in rejected:
        for _ in range(times):
            logs = np.log(DENSE[0] / sizes**exponent + DENSE[1]) + random.normal(0, 0.3, (n, 1))
            logs = logs + random.normal(0, 1, (n, len(sizes))) * scatter
            rejected[exponent] += forms.test_form(sizes, logs).p_value < 0.1
    assert 0.06 <= rejected[1.0] / times <= 0.16
    assert rejected[0.75] / times > (0.9 if n == 20 else 0.2)


def test_the_fit_is_that_of_scipy():
    from scipy.optimize import least_squares

    random, sizes = np.random.default_rng(3), SIZES["eleven"]
    for exponent in (0.7, 1.0, 1.3):
        logs = np.log(900 / sizes**exponent + 12) + random.normal(0, 0.1, 11)
        own = forms.fit(sizes, logs, forms.EXPONENTS)

        def off(p, logs=logs):
            return p[0] + np.logaddexp(0, p[2] * (p[1] - np.log(sizes))) - logs

        other = least_squares(off, [np.log(12), np.log(75), 1.0], bounds=([-9, -9, 0.55], [9, 20, 1.6]))
        assert own.loss[0] == pytest.approx(2 * other.cost, rel=1e-3)
        assert [own.floor[0], own.bend[0], own.exponent[0]] == pytest.approx(other.x, abs=0.02)


@pytest.mark.parametrize("constants, side", [((1e5, 1e-3), "above"), ((1e-3, 20.0), "below")])
def test_a_curve_without_a_bend_bounds_its_critical_batch_size(constants, side):
    random = np.random.default_rng(0)
    curve = planted(random, constants, SIZES["six"], random.normal(0, 0.1, (5, 6)))
    found = scaling.critical(curve)
    assert getattr(found, side) and np.isinf(found.high if side == "above" else found.low)
