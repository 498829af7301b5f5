"""What Zhang et al. (2024) say about language models, and what this book measured."""

import numpy as np

from lib import forms
from lib.analysis import scaling
from lib.claims.claim import finding, ratio, unmeasured
from lib.records import results
from lib.studies import plans

TEXT_WIDTHS = {"shakespeare-width-32": 32, "shakespeare-width-128": 128}  # half and double


def two_point(sizes: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """ln of the critical batch size [k] of c1/B + c2 through two points, for rows of ln K* [k, 2];
    limited to REACH if steps do not fall, or fall as fast as the batch grows.
    """
    (small, large), (first, last) = sizes, np.exp(logs).T
    c1, c2 = small * large * (first - last), large * last - small * first
    with np.errstate(divide="ignore"):
        log_critical = np.log(np.maximum(c1, 0)) - np.log(np.maximum(c2, 0))
    return log_critical.clip(np.log(small) - forms.REACH, np.log(large) + forms.REACH)


@finding(
    "G4",
    "A wider model takes no larger batches",
    paper="The critical batch size grows with the amount of data, and hardly with the size of the model. (Here: its width.)",
    source="Zhang et al. 2024, abstract",
    shown="Critical batch size at double the width over that at half, from the steps at "
    "batch sizes 16 and 256.",
)
def double_over_half_the_width():
    trials = results.read(plans.study("shakespeare-widths"))
    curves = {key[0]: curve for key, curve in scaling.curves(trials, least=2).items()}
    if len(curves) < len(TEXT_WIDTHS):
        return [unmeasured("half and double the width")]
    half, double = (curves[name] for name in TEXT_WIDTHS)
    effect = scaling.estimate(lambda a, b: two_point(*a) - two_point(*b), double, half)
    first, last = TEXT_WIDTHS.values()
    name = f"decoder on Tiny Shakespeare, width {last} over {first}"
    return [ratio(name, effect, note="one search a point, scatter borrowed")]
