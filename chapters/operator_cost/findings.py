"""What the page on the cost of messages reads and says, as numbers and words, and its table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from chapters.operator_cost import links, message_times
from lib.messages import target
from lib.probes import timings
from lib.wording import brief

CORE = message_times.Operators()
CARD = message_times.ON_A_GPU[0]
HOOKS = tuple(work for work in message_times.PLANNED if isinstance(work, message_times.Hooked))
BETWEEN = message_times.Collectives(2)
FEEDBACK = message_times.Feedback()
READ = (CORE, CARD, *HOOKS, BETWEEN, FEEDBACK)


@dataclass(frozen=True)
class Measured:
    """What the page is written from.

    Attributes:
        core: times to choose on one core.
        card: the same on a graphics processor.
        hooked: milliseconds of a backward pass with its communication, a row per model, smallest
            first.
        real: of `message_times.Collectives`, two workers.
    """

    core: pd.DataFrame
    card: pd.DataFrame
    hooked: pd.DataFrame
    real: pd.DataFrame


def read() -> Measured:
    """The timings on record."""
    core, card, real = map(timings.results, (CORE, CARD, BETWEEN))
    wide = timings.results(*HOOKS).pivot_table(
        index=["model", "d"], columns="what", values="seconds"
    )
    hooked = (1e3 * wide).sort_values("d").reset_index()
    for name in ("top-k", "gaussian-k"):
        hooked[f"{name} / all-reduce"] = hooked[name] / hooked["all-reduce"]
    return Measured(core, card, hooked, real)


def findings(data: Measured, chosen) -> dict:
    """All values of the page's sentences; chosen: the page's parameters."""
    slower = data.hooked["top-k / all-reduce"]
    own, library = links.over_gaussian(data.core)
    sizes = data.core.d
    d = sizes.iloc[(sizes - 1e6 * chosen.parameters_millions).abs().argmin()]
    link = chosen.bandwidth, chosen.latency
    here = data.core[sizes == d].set_index("compressor").loc["top-k"]
    sent = here.seconds + links.gather(chosen.workers, here.elements, *link)
    terms = links.keeping(timings.results(FEEDBACK), data.core) + links.rebuilding(data.real)
    return {
        "hook_least": slower.min(),
        "hook_most": slower.max(),
        "own": own,
        "library": library,
        "dense": links.ring(chosen.workers, d, *link),
        "sparse": sent + d * terms,
        "hook": sent + d * hook_keeps(data),
    }


def hook_keeps(data: Measured) -> float:
    """Seconds an entry that the hook takes besides choosing and exchanging, on the larger network.

    What a pass with the hook takes more than one with an all-reduce, and that all-reduce itself,
    which the hook spares: as if it did not overlap with computing.
    """
    larger = data.hooked.iloc[-1]
    d = int(larger.d)
    choices = data.core[data.core.compressor == "top-k"]
    reduced = data.real[data.real.what == "all-reduce"].sort_values("d")
    spared = np.interp(d, reduced.d, reduced.seconds)
    choose = np.interp(d, choices.d, choices.seconds)
    sent = links.gather(2, target(CORE.density, d), *links.link(data.real))
    more = larger["top-k"] - larger["all-reduce"]
    return (more / 1e3 + spared - choose - sent) / d


HOOKED = {
    "network": "network",
    "d": "parameters",
    "all-reduce": "all-reduce",
    "gaussian-k": "Gaussian-k",
    "top-k": "Top-k",
    "top-k / all-reduce": "Top-k over all-reduce",
    "gaussian-k / all-reduce": "Gaussian-k over all-reduce",
}


def hooked(data: Measured) -> pd.DataFrame:
    """`Measured.hooked` as the page shows it."""
    titles = data.hooked.model.str.upper().str.replace("X", "×")
    table = data.hooked.assign(network=titles)[[*HOOKED]].rename(columns=HOOKED)
    return table.assign(**{name: table[name].map(brief) for name in list(table)[2:]})
