"""What the page on the cost of messages reads and says, as numbers and words, and its tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from chapters.operator_cost import links, message_times
from lib.messages import settings
from lib.probes import timings
from lib.wording import between, brief


def findings(data: Measured, chosen) -> dict:
    """All values of the page's sentences.

    Args:
        data: the timings.
        chosen: the page's parameters.
    """
    times = links.over_gaussian(data.timed)
    longest = times.iloc[-1].to_dict() if len(times) else {}
    slower = data.hooked["top-k / all-reduce"]
    return {
        "hook_least": slower.min(),
        "hook_most": slower.max(),
        "hook_slower": bool(slower.min() > 1),
        "hook_density": f"{HOOKS[0].density:g}",
        "hook_batch": HOOKS[0].batch_size,
        "density": f"{chosen.density:g}",
        "timed": bool(longest),
        "own_slower": longest.get("own", 0) > 1,
        "own": longest.get("own"),
        "library": longest.get("library"),
        "longest": int(longest["d"]) if longest else None,
        "own_range": between(*times.own),
        "library_range": between(*times.library),
        "phi": 1e9 * data.keeping,
        "rho": 1e9 * data.rebuilding,
        **_card(data.normal),
        **_step(data, chosen),
        **_processes(data),
    }


def _card(normal: pd.DataFrame) -> dict:
    """Choosing on a graphics processor."""
    times = links.over_gaussian(normal)
    longest = times.iloc[-1].to_dict() if len(times) else {}
    middle, _, most, _ = links.exact_over_gaussian(normal)
    return {
        "card_timed": bool(longest),
        "card_millions": int(longest["d"] / 1e6) if longest else None,
        "card_own": longest.get("own"),
        "card_library": longest.get("library"),
        "card_middle": middle,
        "card_most": most,
    }


def _step(data: Measured, chosen) -> dict:
    """The time of a step in the model, at the timed length nearest to the network's."""
    sizes = data.timed.d.drop_duplicates()
    wanted = chosen.parameters_millions * 1e6
    nearest = float(sizes.iloc[(sizes - wanted).abs().argmin()]) if len(sizes) else np.nan
    here = data.timed[data.timed.d == nearest].set_index("compressor")
    choose = here.seconds.get("top-k", np.nan)
    by_torch = here.seconds.get("torch.topk", np.nan)
    link = (chosen.bandwidth, chosen.latency)
    kept = here.elements.get("top-k", np.nan)
    sent = links.gather(chosen.workers, kept, *link)
    whole = choose + sent + data.spent * nearest
    added, choice = _of_hook(data)
    beyond = {
        "dense": links.ring(chosen.workers, nearest, *link),
        "top": whole,
        "torch": whole + by_torch - choose,
        "hook": choose + sent + (added - choice) * nearest,
        "bare": choose + sent,
    }
    shares = {name: chosen.compute / (chosen.compute + t) for name, t in beyond.items()}
    return {
        "workers": chosen.workers,
        "gigabits": chosen.bandwidth * 8 / 1e9,
        "millions": round(nearest / 1e6, 1) if len(here) else chosen.parameters_millions,
        "sparse_seconds": whole,
        "dense_seconds": beyond["dense"],
        "keep": data.keeping * nearest,
        "rebuild": data.rebuilding * nearest,
        "hook_behind": bool(shares["hook"] < shares["dense"]),
        **{f"{name}_efficiency": _percent(share) for name, share in shares.items()},
    }


def _percent(share: float) -> str | None:
    return None if np.isnan(share) else f"{100 * share:.0f}\u00a0%"


def _of_hook(data: Measured) -> tuple[float, float]:
    """Seconds an entry that the hook adds to the larger network's step, and those of its choice."""
    large = data.hooked.iloc[-1]
    choices = data.usual[data.usual.compressor == "top-k"]
    choice = np.interp(large.d, choices.d, choices.seconds)
    return (large["top-k"] - large["all-reduce"]) / 1e3 / large.d, choice / large.d


def _processes(data: Measured) -> dict:
    """Real processes: the link, the longest vector, and what a hook adds to a step."""
    table = collectives(data)
    longest = table[table.workers == 2].sort_values("d").iloc[-1]
    bandwidth, latency = link(data.real)
    added, choice = _of_hook(data)
    entries = data.hooked.d.max()
    return {
        "link_gigabytes": bandwidth / 1e9,
        "link_microseconds": f"{1e6 * latency:.0f}",
        "exchange": 1e3 * longest["model: exchange"],
        "pairs": 1e3 * longest.pairs,
        "cores": data.real.attrs["provenance"][0]["cores"],
        "added": 1e3 * added * entries,
        "accounted": 1e3 * (choice + data.spent) * entries,
    }


# --- tables ---------------------------------------------------------------------------------------


METHODS = {
    "torch.topk": "torch.topk",
    "top-k": "Top-k",
    "gaussian-k": "Gaussian-k",
    "gaussian-k-band": "Gaussian-k, banded",
    "dgc-k": "DGC-k",
    "redsync": "RedSync",
    "rand-k": "Rand-k",
}
HOOKS = tuple(work for work in message_times.PLANNED if isinstance(work, message_times.Hooked))
HOOKED = {
    "network": "network",
    "d": "parameters",
    "all-reduce": "all-reduce",
    "gaussian-k": "Gaussian-k",
    "top-k": "Top-k",
    "top-k / all-reduce": "Top-k over all-reduce",
    "gaussian-k / all-reduce": "Gaussian-k over all-reduce",
}
BETWEEN = ["all-reduce", "pairs", "model: exchange", "model: with reassembly"]  # in seconds


@dataclass(frozen=True)
class Measured:
    """What the page is written from.

    Attributes:
        timed: times to choose at the page's density on one core; empty where it is not timed.
        normal: the same of normal entries on a graphics processor.
        hooked: of `hooked`.
        real: of `message_times.Collectives`.
        fed: of `message_times.Feedback`.
        usual: times to choose at the density of these three.
    """

    timed: pd.DataFrame
    normal: pd.DataFrame
    hooked: pd.DataFrame
    real: pd.DataFrame
    fed: pd.DataFrame
    usual: pd.DataFrame

    @property
    def rebuilding(self) -> float:
        """Seconds an entry of adding up what arrives."""
        return links.rebuilding(self.real)

    @property
    def keeping(self) -> float:
        """Seconds an entry of error feedback."""
        return links.keeping(self.fed, self.usual)

    @property
    def spent(self) -> float:
        """Seconds an entry of both."""
        return self.keeping + self.rebuilding


def read(density: float) -> Measured:
    """The timings on record; those of choosing at this density."""
    normal = [t for t in message_times.ON_A_GPU if (t.density, t.drawn) == (density, "normal")]
    feedback = message_times.Feedback()
    return Measured(
        _choices(message_times.Operators(density=density)),
        _choices(*normal),
        _hooked(timings.results(*HOOKS)),
        timings.results(*(message_times.Collectives(workers) for workers in (2, 4))),
        timings.results(feedback),
        timings.results(message_times.Operators(density=feedback.density)),
    )


def _choices(*wanted: message_times.Operators) -> pd.DataFrame:
    timed = timings.results(*wanted)
    if not len(timed):
        return pd.DataFrame(columns="method d elements seconds low high compressor".split())
    return timed.assign(method=timed.compressor.map(METHODS))


def _hooked(timed: pd.DataFrame) -> pd.DataFrame:
    """Milliseconds of a backward pass with its communication, a row per model, smallest first."""
    wide = timed.pivot_table(index=["model", "d"], columns="what", values="seconds")
    table = (1e3 * wide).sort_values("d").reset_index()
    for name in ("top-k", "gaussian-k"):
        table[f"{name} / all-reduce"] = table[name] / table["all-reduce"]
    return table


def hooked(table: pd.DataFrame) -> pd.DataFrame:
    """`Measured.hooked` as the page shows it."""
    titles = table.model.str.upper().str.replace("X", "×")
    return _brief(table.assign(network=titles)[[*HOOKED]].rename(columns=HOOKED), 2)


def link(real: pd.DataFrame) -> tuple[float, float]:
    """Bandwidth (bytes per second) of the longest all-reduce between two processes, latency
    (seconds) of the shortest.
    """
    own = real[(real.workers == 2) & (real.what == "all-reduce")].sort_values("d")
    first, last = own.iloc[0], own.iloc[-1]
    return settings.VALUE_BYTES * last.d / last.seconds, first.seconds / 2


def collectives(data: Measured) -> pd.DataFrame:
    """Seconds of collectives between real processes, and what the model makes of them."""
    table = data.real.pivot_table(index=["workers", "d"], columns="what", values="seconds")
    table = table.reset_index().assign(
        **{"pairs over all-reduce": lambda t: t.pairs / t["all-reduce"]}
    )
    density = message_times.Collectives().density
    sent = np.array([settings.target(density, int(d)) for d in table.d])
    exchange = links.gather(table.workers, sent, *link(data.real))
    together = exchange + data.rebuilding * table.d
    return table.assign(**dict(zip(BETWEEN[2:], (exchange, together), strict=True)))


def in_milliseconds(table: pd.DataFrame) -> pd.DataFrame:
    """`collectives` as the page shows it."""
    scaled = table.assign(**{name: 1e3 * table[name] for name in BETWEEN})
    return _brief(scaled.rename(columns={name: f"{name}, ms" for name in BETWEEN}), 2)


def _brief(table: pd.DataFrame, first: int) -> pd.DataFrame:
    """The table with its columns from `first` on as sentences have them."""
    return table.assign(**{name: table[name].map(brief) for name in list(table)[first:]})
