"""What Dai et al. (2018) find of late gradients, as others summarise it, and its rules."""

from chapters.late_workers import late_results
from chapters.late_workers.late_results import WORK
from lib.claims.claim import Change, claim, ratio
from lib.claims.names import title
from lib.wording import named

EFFECT = "an effect has to exceed the bound within which there is none"
METHODS = ("sgd", "momentum", "adam")


@claim(
    "A1",
    "Stale gradients slow every training method",
    chapter="late_workers",
    paper="Stale gradients slow convergence down, by how much differs between training methods.",
    source="Dai et al. 2018",
    read="summary",
    rule="With a method, gradients seven steps late take over 1.25 times the steps of timely ones, in the mean over batch sizes 4, "
    "16, 64 and 256.",
    above=1.25,
    history=[Change("2026-11-26", "more steps, with every method", EFFECT)],
)
def late_over_timely():
    return _late(METHODS, ())


@claim(
    "A2",
    "Momentum and Adam suffer more from stale gradients",
    chapter="late_workers",
    paper="Momentum and Adam suffer more from stale gradients than SGD does.",
    source="Dai et al. 2018",
    read="summary",
    rule="Seven steps of delay multiply a method's steps by over 1.25 times what they do with SGD, in the mean over batch sizes 4, "
    "16, 64 and 256.",
    above=1.25,
    history=[Change("2026-11-26", "by more than with SGD, with both methods", EFFECT)],
)
def beside_sgd():
    return _late(METHODS[1:], ((WORK, "sgd", "fixed", late_results.JUDGED),))


def _late(methods, others):
    found = late_results.curves(late_results.measured())
    keys = {m: (WORK, m, "fixed", late_results.JUDGED) for m in methods}
    effects = {m: late_results.slower(found, key, *others) for m, key in keys.items()}
    return [ratio(f"{named(m)}, {title(WORK)}", effect) for m, effect in effects.items() if effect]
