"""What Shi et al. (2019) say about training with sparse messages, and the rules that judge it."""

import functools
from dataclasses import replace

import numpy as np
import pandas as pd

from chapters.messages import experiments, message_results
from lib.analysis.scaling import mean_of
from lib.claims.claim import REGISTRY, claim, difference, finding, power_of
from lib.claims.names import SHI2019, title
from lib.records import results
from lib.studies import plans
from lib.wording import number

DENSITY = 0.001  # of the authors' runs
ABSTRACT = "Shi et al. 2019, abstract"


@functools.cache
def sent():
    """The best runs of every method on every network."""
    return message_results.best(message_results.measured())


@functools.cache
def sent_longer():
    """The best runs of four times the length, with dense messages, Top-k and Gaussian-k; dense ones
    also at a rate above the range.
    """
    studies = map(plans.study, ("messages-longer", "messages-higher-rate"))
    trials = pd.concat(map(results.read, studies), ignore_index=True)
    return message_results.best(trials) if len(trials) else sent().head(0)


def lost(method, rival="dense"):
    """`message_results.gaps` at every network's longest runs."""
    tables = [message_results.gaps(runs, method, rival) for runs in (sent(), sent_longer())]
    return message_results.longest(*tables)


def as_published(method, rival):
    """The row for ResNet-20 by the authors' recipe, over seeds that ran both; [] if none did."""
    runs = experiments.PUBLISHED.results()
    if not {method, rival} <= set(runs.get("compressor", ())):
        return []
    ends = runs[runs.epoch == runs.epochs]
    errors = ends.pivot(index="seed", columns="compressor", values="test_error")
    gap = 100 * (errors[method] - errors[rival]).dropna()
    note = f"{number(int(ends.step.max()))} steps"
    return [difference("ResNet-20 on CIFAR-10, as published", mean_of(gap), True, note)]


def groups(gaps, suffix="", theirs=True):
    """A row per network at the authors' density; theirs: whether training follows the authors."""
    return [
        difference(
            title(row.workload) + suffix,
            row.effect,
            theirs and row.workload.startswith(SHI2019),
            row.note,
            decides=not (row.effect.below and row.effect.above),
        )
        for row in message_results.means(gaps[gaps.density == DENSITY]).itertuples()
    ]


def with_power(key, groups):
    """The groups, with the power of a claim's rule if the method loses nothing.

    Where a method fails, seeds scatter by whole points, so the power uses the root mean square
    error of the groups that lose less than a point.
    """
    errors = [g.error for g in groups if g.n > 1 and abs(g.effect) < 1]
    if not errors:
        return groups
    error, rule = float(np.sqrt(np.mean(np.square(errors)))), REGISTRY[key][0]
    return [replace(g, power=power_of(replace(g, error=error), rule)) for g in groups]


@claim(
    "T4",
    "Top-k with feedback trains as well as dense messages (here: to a point)",
    paper="Top-k with error feedback trains with little or no loss of accuracy.",
    source=ABSTRACT,
    rule="On a network, at the authors' density of 0.001, Top-k loses less than one point of test error to dense messages, in the "
    "mean over seeds, in the longest runs that all seeds have. Runs of fewer than d/k steps decide nothing; where most best rates "
    "lie at an edge, the loss is a bound. Runs by the authors' recipe have a row of their own.",
    below=1.0,
    scale="points",
)
def top_k_over_dense():
    return with_power("T4", groups(lost("Top-k")) + as_published("top-k", "dense"))


@finding(
    "T4b",
    "Rand-k trains worse than dense messages",
    paper="Rand-k, with the same classical bound as Top-k, trains far worse.",
    source=f"{ABSTRACT}; runs named in the authors' plotting code",
    scale="points",
    shown="Points of test error that Rand-k without feedback loses to dense messages at "
    "the authors' density, in the mean over seeds, at the best of its rates "
    "up to 10, beyond those that all methods try. That a thousandth of the entries "
    "at random trains worse holds by construction; how much is measured.",
)
def rand_k_over_dense():
    rates = results.read(plans.study("messages-rates"))
    trials = pd.concat([t for t in (message_results.measured(), rates) if len(t)])
    alone = (trials.compressor == "rand-k") & ~trials.feedback.astype(bool)
    bare = message_results.best(trials[alone & (trials.density == DENSITY)])
    dense = sent()[sent().method == "dense"]
    return groups(message_results.gaps(pd.concat([dense, bare]), "Rand-k"))


@claim(
    "T5",
    "Gaussian-k trains almost as well as Top-k",
    paper="Gaussian-k trains almost as well as exact Top-k.",
    source=ABSTRACT,
    rule="On a network, at the authors' density, Gaussian-k loses less than one point of test error to Top-k, in the mean over "
    "seeds. Their runs warm up the density, so that only rows that do are the paper's own. Lengths, edges and recipe as for T4.",
    below=1.0,
    scale="points",
)
def gaussian_k_over_top_k():
    variants = results.read(plans.study("message-variants"))
    warmed = message_results.best(variants[variants.warm_up > 0])
    warm = groups(message_results.gaps(warmed, "Gaussian-k", "Top-k"), ", density warmed up")
    plain = groups(lost("Gaussian-k", "Top-k"), theirs=False)
    return with_power("T5", plain + warm + as_published("gaussian-k", "top-k"))
