"""What the papers on other networks and messages say, and what this book measured.

We read the abstracts of these papers, not the texts.
"""

from chapters.other_networks import fields, local_errors, locality, readouts, revealed, spikes
from chapters.other_networks.spiking import SPIKES
from lib.analysis import replicates
from lib.claims.claim import difference, finding, ratio, share, unmeasured
from lib.claims.names import title
from lib.methods.local_alignment import THEIRS
from lib.records import results
from lib.studies import plans

# --- without backpropagation ----------------------------------------------------------------------


@finding(
    "B1",
    "Local representation alignment generalises as well as backpropagation",
    paper="Local representation alignment generalises as well as backpropagation. (Theirs: a "
    "recursive variant on residual networks; here: the basic rule on a small MLP. Their code of "
    f"that rule sets β = {THEIRS:g}.)",
    source="Ororbia et al. 2020, abstract",
    scale="points",
    shown="Test error, at the lowest validation error of a search, less that of backpropagation, in "
    "points.",
)
def test_error():
    study = plans.study("digits-local-budget")
    network = title(study.searches[0].workload)
    effects = local_errors.lost(results.read(study)).items()
    return [
        difference(f"{local_errors.BETAS[name]}, {network}", effect) for name, effect in effects
    ]


@finding(
    "B3",
    "Boolean weights, flipped one by one, converge exponentially",
    paper="Coordinate descent on Boolean weights converges exponentially. (Theirs: reservoirs; "
    "here: readouts of digits.)",
    source="Andreoli et al. 2023, abstract",
    shown="How long the third e-fold of the error above its floor takes, over the first.",
)
def straightness():
    rows = local_errors.convergence(readouts.READOUTS.results())
    return [ratio(f"{row.features:,} {row.kind}", row.slower) for row in rows.itertuples()]


# --- spikes ---------------------------------------------------------------------------------------


@finding(
    "U1",
    "Spiking networks are sparsely active",
    paper="Training spiking networks asks for sparse operations. (Theirs: on an IPU, for energy "
    "and throughput, which are not measured here.)",
    source="Sun et al. 2022, abstract",
    shown="The share of 8 time steps in which a unit fires over the share of examples for "
    "which a rectifier is on, at the goal, in the mean over batch sizes.",
)
def rate_over_rectifiers():
    rows = SPIKES.results()
    effect = spikes.ratio(rows, "rate") if len(rows) else None
    return [ratio("MLP on digits, 8 time steps", effect)] if effect else []


# --- receptive fields -----------------------------------------------------------------------------

FIELDS = {"source": "Ingrosso and Goldt 2022, abstract"}


@finding(
    "R1",
    "Structure beyond pairs localises receptive fields",
    **FIELDS,
    paper="Local structure of higher order, which Gaussian inputs lack, triggers local receptive "
    "fields.",
    shown="Participation of fields at the goal over that on Gaussian inputs, in the mean "
    "over batch sizes.",
)
def beside_gaussian():
    return _participation("fields_edged")


@finding(
    "R2",
    "Fully connected networks learn local fields",
    **FIELDS,
    paper="Fully connected networks learn a convolutional structure from their inputs. (Tested: "
    "that few sites have most of the weight; not that these are neighbours, nor that fields are "
    "copies.)",
    shown="On inputs with edges, participation of fields at the goal over that of weights "
    "as they are drawn, in the mean over batch sizes.",
)
def beside_drawn():
    return _participation("edged_drawn")


def _participation(name):
    met = locality.at_goal(locality.by_search(fields.FIELDS.results()))
    effect = locality.effects(met)[name]
    return [ratio("two layers on a ring", effect)] if effect else []


# --- messages -------------------------------------------------------------------------------------

LEAKAGE = {"source": "Vepakomma et al. 2020, abstract, in our words"}


def penalised(goal):
    """The name of every network and estimator, with its searches at α = 3 and batches of 128, and
    those without a penalty.
    """
    for (network, unbiased, *point), *pair in revealed.with_penalty(revealed.measured(), goal):
        if point == [3, 128]:
            yield f"{title(network)}, {revealed.ESTIMATORS[unbiased]} estimator", *pair


@finding(
    "N1",
    "A penalty on distance correlation hides the images",
    **LEAKAGE,
    paper="Lowering the distance correlation of activations with the data makes them resist "
    "reconstruction.",
    shown="With α = 3 and batches of 128, the squared error that a decoder leaves over "
    "that without a penalty, at the goal of 6 %.",
)
def hidden():
    pairs = penalised(revealed.GOAL)
    effects = {name: replicates.over(*pair, "lost") for name, *pair in pairs}
    return [
        ratio(name, effect) if effect else unmeasured(name) for name, effect in effects.items()
    ]


@finding(
    "N2",
    "The penalty keeps the accuracy",
    **LEAKAGE,
    paper="Less leakage leaves the accuracy of the task as it is.",
    scale="share",
    shown="Share of searches, with α = 3 and batches of 128, that meet the hardest goal, "
    "which all meet without a penalty.",
)
def kept():
    met = {name: rows.steps.notna() for name, rows, _ in penalised(revealed.HARDEST)}
    return [share(name, int(steps.sum()), len(steps)) for name, steps in met.items()]
