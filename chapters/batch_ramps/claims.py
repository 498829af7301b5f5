"""Claims on batches that grow in place of rates that fall, and the rules that judge them.

Of the paper the abstract was at hand, not the text.
"""

from chapters.batch_ramps.experiments import WHOLE
from chapters.batch_ramps.findings import beside
from lib.claims.claim import Change, claim

HISTORY = [
    Change(
        "2026-11-27",
        "at the hardest goal that all searches of both meet",
        "on the digits that is a goal met before the first cut, where schedules do not differ yet",
    ),
    Change(
        "2026-11-27",
        "the same, decided however many searches miss the goal",
        "where most miss it, the ratio is that of last steps, which the plan sets",
    ),
    Change(
        "2026-11-27",
        "the same, on two networks of images alone",
        "a language model was added; its goal was fixed before its records, after a pilot",
    ),
]
BOTH = Change(
    "2026-11-28",
    "the same, with searches of both that miss the goal",
    "both count as their last steps there, whose ratio the plan sets",
)
SOURCE = "Meterez et al. 2025, abstract"


@claim(
    "H1",
    "A batch ramp costs no more examples",
    chapter="batch_ramps",
    paper="Where a schedule would halve the rate, dividing it by √2 and doubling the batch reaches "
    "the same loss at equal arithmetic.",
    source=SOURCE,
    rule="Begun at the critical batch size, or at a quarter of it, Seesaw takes under 1.25 times "
    "the examples of halving the rate to 4 % error, on text to 2.2 nats.  A search that misses it "
    "counts as its last step, and a replicate in which both do is left out; nothing is decided "
    "where over half do.",
    below=1.25,
    since="2026-11-28",
    history=[*HISTORY, BOTH],
    fixed=True,
)
def examples():
    return beside("examples")


@claim(
    "H2",
    "A batch ramp saves serial steps",
    chapter="batch_ramps",
    paper="The ramp takes about 36 % less time, begun at the critical batch size.",
    source=SOURCE,
    rule="Begun at the critical batch size, Seesaw takes under 0.8 times the serial steps of "
    "halving the rate to 4 % error, on text to 2.2 nats.  A search that misses it counts as its "
    "last step, and a replicate in which both do is left out; nothing is decided where over half "
    "do.",
    below=0.8,
    since="2026-11-28",
    history=[
        *HISTORY,
        Change(
            "2026-11-28",
            "the same, begun at a quarter of the critical batch size, too",
            "the paper begins at the critical batch size",
        ),
        BOTH,
    ],
    fixed=True,
)
def steps():
    return beside("steps", (WHOLE,))
