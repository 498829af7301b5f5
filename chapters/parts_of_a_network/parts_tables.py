"""What the page on parts of a network reads, and its table."""

from __future__ import annotations

import pandas as pd

from chapters.parts_of_a_network import growing, halves, subnetworks
from lib.wording import with_interval

TITLES = {
    "steps": "steps",
    "adds": "multiply-adds of a worker",
    "sent": "numbers that a worker sends",
}


def read() -> dict[str, pd.DataFrame]:
    """The trials of parts, of parts of the wider network, of growing networks and of halves."""
    return {
        "parts": subnetworks.results(subnetworks.planned()),
        "wide": subnetworks.results(subnetworks.wider()),
        "grown": growing.results(growing.planned()),
        "cut": halves.results(halves.planned()),
    }


def saved(ratios: pd.DataFrame) -> pd.DataFrame:
    """What parts take over data parallelism, by the number of workers; ratios: of
    `network_parts.over_whole`, with one row for each number of workers and what is compared.
    """
    told = [
        "goal not met" if pd.isna(row.effect) else with_interval(row.effect, row.low, row.high)
        for row in ratios.itertuples()
    ]
    table = ratios.assign(told=told).pivot(index="workers", columns="what", values="told")
    titles = {what: f"{title}, over data parallelism" for what, title in TITLES.items()}
    table = table[[*TITLES]].rename(columns=titles)
    return table.rename_axis(columns=None).reset_index()
