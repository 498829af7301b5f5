"""What the page on the cost of messages reads and says, as numbers and words, and its tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from chapters.operator_cost import links, message_times
from lib.messages import target
from lib.probes import timings
from lib.wording import between, brief, percent

CORE = message_times.Operators()
CARD = message_times.ON_A_GPU[0]
HOOKS = tuple(work for work in message_times.PLANNED if isinstance(work, message_times.Hooked))
BETWEEN = tuple(map(message_times.Collectives, (2, 4)))
FEEDBACK = message_times.Feedback()
READ = (CORE, CARD, *HOOKS, *BETWEEN, FEEDBACK)


@dataclass(frozen=True)
class Measured:
    """What the page is written from.

    Attributes:
        core: times to choose on one core.
        card: the same on a graphics processor.
        hooked: milliseconds of a backward pass with its communication, a row per model, smallest
            first.
        real: of `message_times.Collectives`.
        keeping: seconds an entry of error feedback.
        rebuilding: seconds an entry of adding up what arrives.
    """

    core: pd.DataFrame
    card: pd.DataFrame
    hooked: pd.DataFrame
    real: pd.DataFrame
    keeping: float
    rebuilding: float


def read() -> Measured:
    """The timings on record."""
    core, card, fed = map(timings.results, (CORE, CARD, FEEDBACK))
    real = timings.results(*BETWEEN)
    wide = timings.results(*HOOKS).pivot_table(
        index=["model", "d"], columns="what", values="seconds"
    )
    hooked = (1e3 * wide).sort_values("d").reset_index()
    for name in ("top-k", "gaussian-k"):
        hooked[f"{name} / all-reduce"] = hooked[name] / hooked["all-reduce"]
    spent = links.keeping(fed, core), links.rebuilding(real)
    return Measured(core, card, hooked, real, *spent)


def findings(data: Measured, chosen) -> dict:
    """All values of the page's sentences.

    Args:
        data: the timings.
        chosen: the page's parameters.
    """
    slower = data.hooked["top-k / all-reduce"]
    own, library = links.over_gaussian(data.core)
    card_own, card_library = links.over_gaussian(data.card)
    bandwidth, latency = links.link(data.real)
    seconds = seconds_of_messages(data, chosen)
    two, four = (beyond_the_model(data, workers) for workers in (2, 4))
    return {
        "hook_least": slower.min(),
        "hook_most": slower.max(),
        "hook_slower": bool(slower.min() > 1),
        "hook_batch": HOOKS[0].batch_size,
        "density": f"{CORE.density:g}",
        "own": own,
        "library": library,
        "card_millions": int(data.card.d.max() / 1e6),
        "card_own": card_own,
        "card_library": card_library,
        "phi": 1e9 * data.keeping,
        "rho": 1e9 * data.rebuilding,
        "workers": chosen.workers,
        "gigabits": chosen.bandwidth * 8 / 1e9,
        "compute": chosen.compute,
        "millions": round(_nearest(data, chosen) / 1e6, 1),
        "sparse_seconds": seconds[OURS],
        "hook_seconds": seconds[HOOK],
        "dense_seconds": seconds[DENSE],
        "link_gigabytes": bandwidth / 1e9,
        "link_gigabits": bandwidth * 8 / 1e9,
        "link_microseconds": f"{1e6 * latency:.0f}",
        "two_beyond": between(two.min(), two.max()),
        "two_worst": f"{two.idxmax():,}",
        "four_beyond": between(four.min(), four.max()),
        "cores": data.real.attrs["provenance"][0]["cores"],
    }


# --- the model ------------------------------------------------------------------------------------

DENSE = "dense"
OURS = "our Top-k"
HOOK = "our Top-k at the cost of the hook"


def _nearest(data: Measured, chosen) -> int:
    """The timed length nearest to that of the network."""
    sizes = data.core.d
    return sizes.iloc[(sizes - 1e6 * chosen.parameters_millions).abs().argmin()]


def seconds_of_messages(data: Measured, chosen) -> dict[str, float]:
    """What a step takes beyond computing, in the model, by what is sent."""
    d = _nearest(data, chosen)
    link = chosen.bandwidth, chosen.latency
    here = data.core[data.core.d == d].set_index("compressor")
    sent = links.gather(chosen.workers, here.elements["top-k"], *link)
    spent = d * (data.keeping + data.rebuilding)
    hook = d * hook_keeps(data)
    choose = here.seconds["top-k"]
    return {
        DENSE: links.ring(chosen.workers, d, *link),
        OURS: choose + sent + spent,
        "torch.topk": here.seconds["torch.topk"] + sent + spent,
        "our Top-k without feedback and reassembly": choose + sent,
        HOOK: choose + sent + hook,
    }


def hook_keeps(data: Measured) -> float:
    """Seconds an entry that the hook takes besides choosing and exchanging, on the larger network.

    What a pass with the hook takes more than one with an all-reduce, and that all-reduce itself,
    which the hook spares: as if it did not overlap with computing.
    """
    larger = data.hooked.iloc[-1]
    d = int(larger.d)
    timed = data.core.compressor == "top-k"
    choices = data.core[timed]
    reduced = exchanges(data, 2)
    link = links.link(data.real)
    spared = np.interp(d, reduced.d, reduced["all-reduce"])
    choose = np.interp(d, choices.d, choices.seconds)
    k = target(CORE.density, d)
    sent = links.gather(2, k, *link)
    more = larger["top-k"] - larger["all-reduce"]
    added = more / 1e3 + spared
    return (added - choose - sent) / d


def exchanges(data: Measured, workers: int) -> pd.DataFrame:
    """Seconds of collectives between processes, and what the model makes of the exchange of pairs
    without and with reassembly.
    """
    rows = data.real[data.real.workers == workers]
    table = rows.pivot(index="d", columns="what", values="seconds").reset_index()
    sent = np.array([target(BETWEEN[0].density, d) for d in table.d.tolist()])
    exchange = links.gather(workers, sent, *links.link(data.real))
    both = {"exchange": exchange, "with reassembly": exchange + data.rebuilding * table.d}
    return table.assign(**both)


def beyond_the_model(data: Measured, workers: int) -> pd.Series:
    """How many times as long as the model has it the exchange of pairs took, by d."""
    table = exchanges(data, workers).set_index("d")
    return table.pairs / table["with reassembly"]


# --- tables ---------------------------------------------------------------------------------------

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
    return _brief(data.hooked.assign(network=titles)[[*HOOKED]].rename(columns=HOOKED), 2)


def efficiencies(data: Measured, chosen) -> pd.DataFrame:
    """Seconds beyond computing, and time of computing over time of a step, in the model."""
    seconds = pd.Series(seconds_of_messages(data, chosen))
    shares = chosen.compute / (chosen.compute + seconds)
    words = {"seconds": seconds.map(brief), "efficiency": shares.map(percent)}
    return pd.DataFrame(words).rename_axis("messages").reset_index()


def collectives(data: Measured) -> pd.DataFrame:
    """`exchanges` between two processes in milliseconds."""
    table = exchanges(data, 2)
    times = {
        "all-reduce, ms": table["all-reduce"],
        "pairs, ms": table.pairs,
        "model: exchange, ms": table.exchange,
        "model: with reassembly, ms": table["with reassembly"],
    }
    return _brief(table[["d"]].assign(**{name: 1e3 * time for name, time in times.items()}), 1)


def _brief(table: pd.DataFrame, first: int) -> pd.DataFrame:
    """The table with its columns from `first` on as sentences have them."""
    return table.assign(**{name: table[name].map(brief) for name in list(table)[first:]})
