"""Claims on receptive fields, and the rules that judge them; of the paper we read the abstract."""

from chapters.receptive_fields import experiments, findings, locality
from lib.claims.claim import claim, ratio

SOURCE = "Ingrosso and Goldt 2022, abstract"


@claim(
    "R1",
    "Structure beyond pairs localises receptive fields",
    chapter="receptive_fields",
    paper="Local structure of higher order, which Gaussian inputs lack, triggers fields that are local.",
    source=SOURCE,
    rule="The participation of fields at the goal is over 1.25 times that on Gaussian inputs, in the mean over batch sizes "
    "128, 512 and 2,048; five searches.",
    above=1.25,
    since="2026-11-27",
    fixed=True,
)
def beside_gaussian():
    return _judged("over")


@claim(
    "R2",
    "Fully connected networks learn local fields",
    chapter="receptive_fields",
    paper="Fully connected networks learn a convolutional structure from their inputs. (Tested: "
    "that few sites have most of the weight; not that these are neighbours, nor that fields are "
    "copies.)",
    source=SOURCE,
    rule="On inputs with edges, the participation of fields at the goal is over 1.25 times that of weights as they are "
    "drawn, in the mean over batch sizes 128, 512 and 2,048; five searches.",
    above=1.25,
    since="2026-11-27",
    fixed=True,
)
def beside_drawn():
    return _judged("edged_drawn")


def _judged(what):
    met = findings.at_goal(locality.by_search(experiments.FIELDS.results()))
    effect = findings.effects(met)[what]
    return [ratio("two layers on a ring", effect)] if effect else []
