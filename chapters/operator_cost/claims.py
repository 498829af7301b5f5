"""What Shi et al. (2019) say of the time that choosing takes, and the rule that judges it."""

from chapters.operator_cost import links, message_times
from lib.claims.claim import Change, claim, interval, unmeasured
from lib.probes import timings


@claim(
    "T6",
    "Gaussian-k selects much faster on an H100",
    chapter="operator_cost",
    paper="Gaussian-k selects in a fraction of the time of exact Top-k on a graphics processor. (Theirs: a V100 of 2019.)",
    source="Shi et al. 2019, abstract",
    rule="On a card, PyTorch's exact Top-k takes over twice the time of Gaussian-k on normal vectors of 16 million entries or "
    "more: the median over lengths. Its interval is the range over repeats.",
    above=2.0,
    history=[
        Change(
            "2026-11-26",
            "vectors of uniform entries were a group, too",
            "there Gaussian-k sends next to nothing",
        ),
        Change(
            "2026-11-26",
            "exact Top-k, whichever",
            "ours and PyTorch's differ; made precise when a card was timed",
        ),
    ],
)
def exact_over_gaussian():
    wanted = next(
        t for t in message_times.ON_A_GPU if (t.density, t.drawn) == (0.001, "normal")
    )
    timed = timings.results(wanted)
    if not len(timed):
        return [unmeasured("a graphics processor")]
    head = timed.attrs["provenance"][0]
    *ends, lengths = links.exact_over_gaussian(timed)
    name = f"{head['device']}, PyTorch {head['torch'].partition('+')[0]}"
    note = f"one card, {lengths} lengths, {wanted.repeats} repeats each"
    return [interval(name, *ends, 1, note=note, log=True)]
