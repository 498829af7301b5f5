"""What the batch-size sheet says beyond the facts that other pages share (`lib.claims.front`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from chapters.sheet import decide
from lib.analysis import scaling
from lib.claims import YES, Finding, front, judging
from lib.page import boxes, prose
from lib.probes import timings
from lib.records import searches
from lib.wording import ranged
from lib.workloads.catalogue import workload

SIZES = (16, 64, 256)  # batch sizes of the worked example
GPU = "workload == 'cifar-10-resnet-8' and algorithm == 'momentum' and sparsity == 0"
CLAIMS = "L3 L4 L6 M1 M2 S2 S4 S7 S10 S10b S14 O2".split()


def example() -> tuple[decide.Points, pd.Series]:
    """The worked example: seconds of a step of the front page's network on one core, and its row of
    `front.critical`.

    Raises:
        BookError: if either is not on record.
    """
    timed = boxes.some(timings.results(timings.StepTimes(front.RUN[0])), "step times")
    timed = timed.query(f"batch_size in {SIZES}")
    times = list(zip(timed.batch_size, timed.seconds))
    return times, boxes.some(front.critical().query(front.DENSE), "searches").iloc[0]


def on_gpu() -> tuple[decide.Points, pd.Series]:
    """The same for searches on a GPU, with the times of their steps."""
    rows = searches.table().query(f"{GPU} and not device.str.startswith('cpu')")
    rows = boxes.some(rows.drop_duplicates("record"), "searches on a GPU")
    times = zip(rows.batch_size, rows.core_seconds / rows.trial_steps)
    return list(times), boxes.some(front.critical().query(GPU), "searches").iloc[0]


def worked(times: decide.Points, dense: pd.Series) -> dict[str, object]:
    """Values in the sentences on a worked example, from the results of `example`: times in
    milliseconds, half (the batch at which the device is half busy), near (the range of batches at
    which a run takes hardly longer than at the best), and others.
    """
    choice = decide.decide(times, dense.critical)
    return {
        "network": workload(dense.workload).title,
        "overhead": 1000 * choice.overhead,
        "example": 1000 * choice.example,
        "half": choice.overhead / choice.example,
        "critical": ranged(dense.critical, dense.critical_low, dense.critical_high),
        "best": choice.best,
        "near": [choice.low, choice.high],
    }


def law(judged: Mapping[str, Finding]) -> dict[str, float]:
    """The law for SGD's learning rates: rho (B_eta over C, the geometric mean over networks),
    within (the factor within which a best rate lies of that which the law gives from one, nine
    times in ten, on a further network), smallest and largest (batch sizes at which it was tested).
    Empty unless several networks have enough searches.
    """
    rho, off = (
        np.log([group.effect for group in judged[key].groups if group.n >= scaling.ENOUGH])
        for key in ("M2", "M3")
    )
    if not len(rho) or len(off) < 2:
        return {}
    within = stdtrit(len(off) - 1, 0.95) * np.sqrt((off**2).mean())
    sizes = judging.searches().query("algorithm == 'sgd'").batch_size
    law = {"rho": np.exp(rho.mean()), "within": np.exp(within)}
    return {**law, "smallest": int(sizes.min()), "largest": int(sizes.max())}


def findings(
    judged: Mapping[str, Finding], times: decide.Points, dense: pd.Series
) -> dict[str, object]:
    """All values in the page's sentences; times and dense: from `example`."""
    rivals = judged["O2"]
    return {
        **front.facts(judged),
        **worked(times, dense),
        **{f"gpu_{name}": value for name, value in worked(*on_gpu()).items()},
        **prose.pills({key: judged[key] for key in CLAIMS}),
        "rho": front.effects(judged["M2"]),
        "within": law(judged).get("within"),
        "missed": front.effects(judged["S10b"]),
        "pruned_critical": front.effects(judged["L4"]),
        "rivals": len(rivals.measured),
        "kept_up": sum(group.verdict == YES for group in rivals.groups),
        "behind": sum(group.low > 1 for group in rivals.groups),
    }
