"""The searches, sentences, table and figure of the page on sparse messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import altair as alt
import pandas as pd

from chapters.messages.message_results import gaps, means
from lib.claims import Claim
from lib.claims.claim import NO, YES
from lib.messages import Messages
from lib.methods.intervals import SHI2019
from lib.page import charts, tips
from lib.studies.search import Search
from lib.studies.study import Study
from lib.wording import between, brief, number, ranged
from lib.workloads import catalogue

# Compressor, error feedback: Rand-k without it, as in the published comparison
SENT = (("top-k", True), ("gaussian-k", True), ("rand-k", False), ("dgc-k", True))
DRAWN = {  # in the published figures
    "dense": charts.DENSE,
    "Top-k": charts.RED,
    "Gaussian-k": charts.GREEN,
    "Rand-k": charts.PURPLE,
}
OTHERWISE = ("warmed up", "as published")  # rows with settings other than the page's
COMPARED = ("Top-k", "dense"), ("DGC-k", "Top-k"), ("Gaussian-k", "Top-k")


def planned(chosen) -> Study:
    """Every method, density and network; chosen: the page's parameters."""
    densities = sorted(chosen.densities)
    ways = [("dense", 1.0, False), *((c, d, fed) for d in densities for c, fed in SENT)]
    searches = [
        Search(
            network,
            chosen.batch_size,
            replicate=replicate,
            max_steps=chosen.steps,
            messages=Messages(chosen.workers, *way),
            trials=chosen.trials,
            stop="budget",
            space="shi2019",
        )
        for replicate in range(chosen.replicates)
        for network in chosen.workloads_shown
        for way in ways
    ]
    return Study("messages", "Sparse messages", tuple(searches))


def findings(
    shown: pd.DataFrame, networks: list[str], chosen, judged: Mapping[str, Claim]
) -> dict:
    """All values in the page's sentences; shown: from `message_results.best`; networks: titles."""
    last = shown.groupby("network").budget.max()
    rates, share = SHI2019["learning_rate"], min(chosen.densities)
    groups = [g for g in judged["T4"].groups if g.n > 1 and not g.name.endswith(OTHERWISE)]
    verdicts = Counter(group.verdict for group in groups)
    dgc = gaps(shown[shown.density == share], "DGC-k", "Top-k")
    return {
        "stopped": [f"{name}: {number(n)}" for name, n in last.items() if n < chosen.steps],
        "workers": chosen.workers,
        "batch": chosen.batch_size,
        "steps": int(last[networks[0]]),
        "trials": chosen.trials,
        "rates": f"{rates.low:g} and {rates.high:g}",
        "passed": verdicts[YES],
        "failed": verdicts[NO],
        "compared": len(groups),
        "lost": between(*(g.effect for g in groups)),
        "dgc": between(*dgc.groupby("network").gap.mean()),
        "density": f"{share:g}",
        "over": between(*gaussian_sent(shown, share)),
        "behind": behind(shown, networks[0], share),
    }


def behind(shown: pd.DataFrame, network: str, density: float) -> str:
    """How far sparse messages are behind dense ones after a network's last step, in words."""
    runs = shown[shown.network == network]
    runs = runs[runs.density.isin([density, 1])]
    names = "Top-k", "Gaussian-k"
    top_k, gaussian = (brief(gaps(runs, name).gap.mean()) for name in names)
    return (
        f"After {number(runs.budget.max())} steps of {network} at density {density:g}, Top-k is "
        f"{top_k} points behind dense messages, and Gaussian-k {gaussian}"
    )


def gaussian_sent(shown: pd.DataFrame, density: float) -> pd.Series:
    """Entries that Gaussian-k sends at a density, over k, by network."""
    runs = shown[(shown.method == "Gaussian-k") & (shown.density == density)]
    return runs.groupby(["network", "budget"]).over.mean().groupby("network").last()


def table(shown: pd.DataFrame, density: float) -> pd.DataFrame:
    """A row per network: points that one method loses to another at a density, with intervals over
    seeds, and the entries that Gaussian-k sends, over k.
    """
    pairs = [means(gaps(shown, *pair)).assign(rival=pair[1]) for pair in COMPARED]
    rows = pd.concat(pairs, ignore_index=True)
    rows = rows[rows.density == density]
    titles = rows.workload.map(lambda name: catalogue.workload(name).title)
    points = [ranged(e.value, e.low, e.high) for e in rows.effect]
    names = rows.method + " over " + rows.rival
    cells = pd.DataFrame({"network": titles, "pair": names, "points": points})
    wide = cells.pivot(index="network", columns="pair", values="points")[names.unique()]
    wide["entries sent by Gaussian-k, over k"] = gaussian_sent(shown, density).map(brief)
    wide.insert(0, "density", density)
    return wide.fillna("—").reset_index().rename_axis(columns=None)


def errors(shown: pd.DataFrame, density: float, networks: list[str]) -> alt.LayerChart:
    """Mean test error over seeds against epochs, both logarithmic, one line per method; a menu of
    networks, with a title for each.  shown: from `message_results.best`.
    """
    sizes = shown.workload.map(lambda name: catalogue.workload(name).train_size)
    drawn = (shown.method == "dense") | (shown.density == density)
    rows = shown.assign(epochs=shown.examples / sizes)[drawn & (shown.budget >= 16)]
    means = rows.groupby(["network", "method", "budget"])
    rows = means.agg(epochs=("epochs", "first"), error=("test", "mean")).reset_index()
    colours = {name: colour for name, colour in DRAWN.items() if name in set(rows.method)}
    y = alt.Y("error:Q", title="test error", scale=charts.log(8, base=10))
    base = alt.Chart(rows[rows.method.isin(DRAWN)]).encode(
        x=alt.X("epochs:Q", title="epochs", scale=charts.log(8)).axis(format="~g"),
        y=y.axis(format=".2~p", values=charts.DECADES),
        color=charts.by_name("method", colours, columns=2),
    )
    tooltip = {
        "method:N": "messages",
        "network:N": "network",
        "budget:Q|,": "steps",
        "error:Q|.2%": "test error",
    }
    titles = {name: behind(shown, name, density) for name in networks}
    menu = charts.menu("network", networks, networks[0], "network")
    lines = charts.dotted(base, 30, tooltip=tips.listed(tooltip))
    chart = charts.controlled([lines], menu)
    return charts.sized(chart.add_params(charts.title(titles, menu)), 320)
