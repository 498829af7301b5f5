"""What Lee et al. (2021) say about the form of a curve, and McCandlish et al. (2018) about its
critical batch size.
"""

from dataclasses import replace

import numpy as np

from lib import forms
from lib.analysis import ranges, scaling
from lib.claims.claim import claim, finding, interval
from lib.claims.names import REPEATS, curve_title, is_lee2021, marked, rows
from lib.probes import tracks

ALLOWED = 1.1  # factor by which a curve may depart from the form


@claim(
    "L6",
    "Curves have the form of the theory (here: to 10 %)",
    paper="Convergence theory of stochastic gradient methods accounts for the relation between batch size and steps to result. "
    "(Here: the form c₁/B + c₂, which other models share, not the values of its constants.)",
    source="Lee et al. 2021, abstract",
    rule="The curve of a dense network departs from c₁/B + c₂ by a factor of less than 1.1: root mean square over batch "
    "sizes, the scatter of its searches taken off. It has five batch sizes or more, of three searches or more.",
    below=ALLOWED,
    tried=("c₁/B + c₂", "steps as 1/√B", "a sharp corner at its C"),
)
def departure_from_form(curves, searches):
    dense = {
        key: curve for key, curve in curves.items() if key[3] == 0 and key[0] not in REPEATS
    }
    tests = scaling.tests_of_form(dense).set_index(scaling.CURVE, drop=False)
    groups = [
        interval(
            curve_title(key),
            (row.depart, row.depart_low, row.depart_high),
            row.searches,
            is_lee2021(row.workload),
            tested(row),
            log=True,
            power=power(dense[key]),
        )
        for key, row in tests.iterrows()
    ]
    return marked(tests.index, groups, ranges.whole_curves(searches))


def tested(row):
    """How well c1/B + c2 fits a curve, in words, from a row of `scaling.tests_of_form`."""
    p_value = f"p = {row.p_value:.2g}" if row.p_value >= 0.001 else "p < 0.001"
    return f"χ² = {row.chi2:.0f} on {row.freedom:.0f} degrees of freedom ({p_value})"


def power(curve):
    """How often the rule says yes and no for a curve with these batch sizes, searches and scatter: one of
    the form, a power law without a floor, and one with a corner at its critical batch size.
    """
    logs = curve.logs.where(~curve.missed).dropna().to_numpy()
    places = np.log(curve.sizes)
    bend = forms.fit(curve.sizes, curve.means).bend[0]
    shapes = np.stack([-places / 2, np.maximum(bend - places, 0.0)])
    losses = forms.fit(curve.sizes, shapes).loss / len(places)  # mean squares
    departs = [0.0, *np.sqrt(losses)]
    return tuple(forms.power_of_form(logs, depart, np.log(ALLOWED)) for depart in departs)


@finding(
    "M1",
    "The noise scale predicts the critical batch size",
    paper="The gradient noise scale predicts the largest useful batch size.",
    source="McCandlish et al. 2018, in our words",
    read="summary",
    shown="Critical batch size over the noise scale along the fastest trials, in the "
    "geometric mean over batch sizes (n: splits); momentum at 0.9 or more, as in "
    "these trials.",
)
def critical_over_noise(published_curves):
    followed = tracks.every()
    scales = tracks.noise_scales(followed[followed.sparsity == 0])
    effects, notes = {}, {}
    for key, curve in published_curves.items():
        along = scales[(scales.workload == key[0]) & (scales.algorithm == key[1])]
        # Each of a search of its own
        by_size = np.log(along.noise_scale).groupby(along.batch_size).mean()
        if len(by_size):
            splits = len(along.drop_duplicates(["replicate", "split"]))
            predicted = replace(scaling.mean_of(by_size), n=splits)
            effects[key] = scaling.less(scaling.critical(curve), predicted)
            notes[key] = f"batch sizes: {len(by_size)}"
    return rows(effects, note=lambda key, effect: notes[key])
