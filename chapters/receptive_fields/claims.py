"""Claims on receptive fields, and what is measured of them; of the paper we read the abstract."""

from chapters.receptive_fields import experiments, findings, locality
from lib.claims.claim import finding, ratio

SOURCE = "Ingrosso and Goldt 2022, abstract"


@finding(
    "R1",
    "Structure beyond pairs localises receptive fields",
    chapter="receptive_fields",
    paper="Local structure of higher order, which Gaussian inputs lack, triggers fields that are local.",
    source=SOURCE,
    shown="Participation of fields at the goal over that on Gaussian inputs, in the mean "
    "over batch sizes 128, 512 and 2,048.",
)
def beside_gaussian():
    return _judged("over")


@finding(
    "R2",
    "Fully connected networks learn local fields",
    chapter="receptive_fields",
    paper="Fully connected networks learn a convolutional structure from their inputs. (Tested: "
    "that few sites have most of the weight; not that these are neighbours, nor that fields are "
    "copies.)",
    source=SOURCE,
    shown="On inputs with edges, participation of fields at the goal over that of weights "
    "as they are drawn, in the mean over batch sizes 128, 512 and 2,048.",
)
def beside_drawn():
    return _judged("edged_drawn")


def _judged(what):
    met = findings.at_goal(locality.by_search(experiments.FIELDS.results()))
    effect = findings.effects(met)[what]
    return [ratio("two layers on a ring", effect)] if effect else []
