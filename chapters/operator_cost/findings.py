"""What the page on the cost of messages says, as numbers and words."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.operator_cost import cost_tables, links, message_times
from chapters.operator_cost.cost_tables import HOOKS, Measured
from lib.messages import settings
from lib.wording import between


def findings(data: Measured, chosen) -> dict[str, object]:
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
        "holders": message_times.Feedback().workers,
        **_card(data.normal),
        **_uniform(data, chosen.density),
        **_step(data, chosen),
        **_processes(data),
    }


def _card(normal: pd.DataFrame) -> dict[str, object]:
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


def _uniform(data: Measured, density: float) -> dict[str, object]:
    """Choosing from uniform entries, and what Gaussian-k then sends."""
    own = data.uniform[data.uniform.compressor == "gaussian-k"].sort_values("d")
    last = own.iloc[-1] if len(own) else None
    return {
        "uniform_timed": last is not None,
        "uniform_middle": links.exact_over_gaussian(data.uniform)[0],
        "uniform_sent": int(last.elements) if last is not None else None,
        "uniform_asked": settings.target(density, int(last.d)) if last is not None else None,
    }


def _step(data: Measured, chosen) -> dict[str, object]:
    """The time of a step in the model, at the timed length nearest to the network's."""
    sizes, wanted = data.timed.d.drop_duplicates(), chosen.parameters_millions * 1e6
    nearest = float(sizes.iloc[(sizes - wanted).abs().argmin()]) if len(sizes) else np.nan
    here = data.timed[data.timed.d == nearest].set_index("compressor")
    choose = here.seconds.get("top-k", np.nan)
    link = (chosen.bandwidth, chosen.latency)
    sent = links.gather(chosen.workers, here.elements.get("top-k", np.nan), *link)
    whole = choose + sent + data.spent * nearest
    added, choice = _of_hook(data)
    beyond = {
        "dense": links.ring(chosen.workers, nearest, *link),
        "top": whole,
        "torch": whole + here.seconds.get("torch.topk", np.nan) - choose,
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


def _processes(data: Measured) -> dict[str, object]:
    """Real processes: the link, the longest vector, and what a hook adds to a step."""
    table = cost_tables.between(data)
    longest = table[table.workers == 2].sort_values("d").iloc[-1]
    bandwidth, latency = cost_tables.link(data.real)
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
