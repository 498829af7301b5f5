"""What the page on training methods says, as numbers and words."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from chapters.which_method import method_tables as tables
from lib.analysis import method_results
from lib.claims import Claim
from lib.page import boxes, told
from lib.wording import between, percent

FIRST = "digits-mlp"  # the network on which SOAP was searched, and whose times are shown
ALIKE = 1.25  # within which two numbers of steps, or two critical batch sizes, are alike
SOAP = (  # predicted on 27 November 2026: what, over Adam's; a method, its quantity, and the range
    ("steps at the two largest batches", "soap", "large", 0, 1 / ALIKE),
    ("steps at the two smallest batches", "soap", "small", 0, 1 / 2),
    ("critical batch size", "soap", "critical", 0, ALIKE),
    ("steps at the two largest, every 10 steps", "soap-10", "large", 1 / ALIKE, ALIKE),
)


def findings(
    searches: pd.DataFrame, curves: dict, judged: Mapping[str, Claim]
) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        searches: at their goals, momentum over its whole range where that is measured.
        curves: those of dense networks among them.
        judged: the page's claims.
    """
    ratios = tables.compared(curves)
    muon = ratios[(ratios.algorithm == "muon") & (ratios.n >= tables.SEVERAL)]
    muon = {what: between(*rows.ratio) for what, rows in muon.groupby("what")}
    goals = searches.groupby("workload").goal.first()
    over_adam = [group.effect for group in judged["O6"].groups if group.n >= tables.SEVERAL]
    return told.plain(
        {
            "over_sgd": muon["critical"],
            "muon": muon,
            "over_adam": between(*over_adam),
            "methods": searches.algorithm.nunique(),
            "searches": max(curve.n for curve in curves.values()),
            "trials": boxes.trials(searches[searches.space != "whole"]),
            "goals": [f"{percent(g)} ({tables.name_of(name)})" for name, g in goals.items()],
        }
    )


def soap(curves: dict) -> pd.DataFrame:
    """What was predicted of SOAP before its records, as ratios to Adam, beside what came."""
    rows = []
    for title, method, quantity, low, high in SOAP:
        ratio = method_results.QUANTITIES[quantity]
        effect = method_results.between(curves, method, "adam", ratio)[FIRST]
        rows.append((title, low, high, told.interval(effect)))
    return told.predictions(rows)
