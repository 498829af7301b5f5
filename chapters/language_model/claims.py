"""What Zhang et al. (2024) say of language models, and the rule that judges it."""

from chapters.language_model import text_results
from lib.analysis import scaling
from lib.claims.claim import Change, claim, ratio, unmeasured
from lib.records import results


@claim(
    "G4",
    "A wider model takes no larger batches",
    chapter="language_model",
    paper="The critical batch size grows with the amount of data, and hardly with the size of the model. (Here: its width.)",
    source="Zhang et al. 2024, abstract",
    rule="From half the width to double, the critical batch size changes by less than a factor of 1.25, read from the steps at "
    "batch sizes 16 and 256.",
    within=1.25,
    history=[
        Change(
            "2026-11-26",
            "by less than a factor of two",
            "no effect has to stay within what an effect exceeds",
        )
    ],
)
def double_over_half_the_width():
    curves = text_results.curves_of_widths(results.read(text_results.of_widths()))
    if len(curves) < 2:
        return [unmeasured("half and double the width")]
    (first, narrow), *_, (last, wide) = curves.items()
    found = scaling.estimate(
        lambda a, b: text_results.two_point(*a) - text_results.two_point(*b), wide, narrow
    )
    return [
        ratio(
            f"decoder on Tiny Shakespeare, width {last} over {first}",
            found,
            note="one search a point, scatter borrowed",
        )
    ]
