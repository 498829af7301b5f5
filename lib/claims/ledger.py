"""Every claim, judged once from the records and kept: front page, ledger and chapters read the same."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from lib import ROOT, code
from lib.analysis import (
    curve_forms,
    evidence,
    family_curves,
    fixed_budgets,
    followed_paths,
    message_results,
    rate_rules,
    scaling,
)
from lib.claims import lee, shallue, shi
from lib.claims.verdicts import Claim, Group
from lib.probes import portraits, tracks
from lib.records import on_record, results
from lib.records.places import DATA
from lib.studies import families, plans
from lib.studies.study import Study

RULES = {rule.key: rule for rule in (*lee.RULES, *shallue.RULES, *shi.RULES)}
KEPT = ROOT / "_build" / "claims"


def judge() -> dict[str, Claim]:
    """Every claim by its key, in the order of the ledger, judged on all records: computed once for this code and these data."""
    return {key: _claim(fields) for key, fields in kept("judged", _judged).items()}


def kept(name: str, compute: Callable[[], dict], folder: Path = KEPT) -> dict:
    """What `compute` returns, as JSON knows it, from the file that this code and these data have in folder, or into it.

    Notebooks that run side by side may both compute; each writes a file of its own and renames it.
    """
    file = folder / f"{name}-{_digest()}.json"
    if not file.exists():
        found = json.dumps(compute(), ensure_ascii=False, indent=1)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as new:
            new.write(found)
        os.replace(new.name, file)
    return json.loads(file.read_text(encoding="utf-8"))


@functools.cache
def _digest() -> str:
    """Of all code in lib and all records, as they are when first asked for."""
    found = hashlib.sha256(code(["."]).encode())
    for file in sorted(f for f in DATA.rglob("*") if f.is_file() and not f.name.endswith(".part")):
        found.update(str(file.relative_to(DATA)).encode() + file.read_bytes())
    return found.hexdigest()[:16]


def _claim(fields: dict) -> Claim:
    return Claim(**{**fields, "groups": tuple(Group(**group) for group in fields["groups"])})


def _judged() -> dict:
    found = {**_of_curves(), **_of_families(), **_of_budgets(), **_of_messages()}
    return {key: dataclasses.asdict(rule.judge(*found[key])) for key, rule in RULES.items()}


def _hours(trials: pd.DataFrame) -> float:
    """Core-hours that the records of a table's workloads took; NaN without any."""
    shown = set(trials.workload) if len(trials) else ()
    return sum(head["wall_s"] for head in trials.attrs["provenance"] if head["workload"] in shown) / 3600 if shown else np.nan


def _of_curves() -> dict[str, tuple[pd.DataFrame, float]]:
    trials = results.read(on_record.gathered(**plans.USUAL))
    pruned = results.read(plans.study("digits-methods"))
    summary, drawn = scaling.summaries(trials)
    paths = pd.concat([f for f in map(tracks.results, tracks.TRACKS) if len(f)])
    over = scaling.sparsest(followed_paths.over_dense(paths))
    beside_sgd, shifted = family_curves.over_sgd(drawn), family_curves.easy_over_hard(trials)
    digits = trials[trials.workload.isin(plans.DIGITS) & (trials.algorithm == "momentum") & (trials.sparsity == 0)]
    searched = digits[digits.replicate == 0]
    frames = {
        "L2": evidence.off_the_line(summary),
        "L3": evidence.cost_of_sparsity(scaling.steps_over_dense(drawn)),
        "L4": evidence.critical_over_dense(drawn),
        "L5": evidence.critical_over_dense(drawn, sparsest=True),
        "L6": evidence.beside_other_forms(curve_forms.left_out_factors(scaling.across_replicates(scaling.steps_to_result(trials)))),
        "L7": evidence.by_workload(over, "lipschitz"),
        "M1": evidence.noise_scale_off(followed_paths.predicted_bends(paths, summary), drawn),
        "S2": evidence.folded(evidence.pooled([("all curves", list(shifted.draws))])),
        "S7": evidence.pooled([("all pairs", list(beside_sgd.draws))]),
        "S7b": evidence.folded(evidence.pooled([("all pairs", list(beside_sgd.steps_draws))])),
        "S10": evidence.growth_of_rate(rate_rules.exponents(rate_rules.near_best(searched, 16))),
        "S10b": evidence.rules_missed(rate_rules.costs(searched, 16, 5)),
    }
    spent, long = _hours(trials), summary[summary.sizes >= scaling.LONG].workload
    return {
        **{key: (frame, spent) for key, frame in frames.items()},
        "L1": (evidence.all_regimes(summary), _hours(trials[trials.workload.isin(long)])),
        "L2b": (evidence.by_way_of_pruning(scaling.summaries(pruned)[1]), _hours(pruned)),
    }


def _of_families() -> dict[str, tuple[pd.DataFrame, float]]:
    trials = family_curves.results(families.FAMILIES)
    bends = family_curves.bends(trials)
    effects = family_curves.effects(bends)
    kinds, fractions = (
        effects[effects.family.isin(names)]
        for names in ((families.MODEL, families.MNIST_MODEL), (families.FRACTION, families.MNIST_FRACTION))
    )
    frames = {
        "S4": evidence.from_extreme_to_extreme(bends),
        "S5": evidence.of_families(kinds),
        "S6": evidence.either_direction(effects),
        "S8": evidence.of_families(fractions),
    }
    return {key: (frame, _hours(trials)) for key, frame in frames.items()}


def _of_budgets() -> dict[str, tuple[pd.DataFrame, float]]:
    studies = [results.read(plans.study(name)) for name in ("digits-budget", "mnist-budget", "fashion-mnist-budget")]
    whole = pd.concat([frame[frame.label_smoothing == 0] for frame in studies])
    ladders = {name: both for frame in studies for name, both in fixed_budgets.by_workload(frame).items()}
    longest = int(ladders["digits-mlp"][0].budget.max())
    slopes = fixed_budgets.slopes(ladders)
    settled = {name: slope for name, slope in slopes["steps"].items() if name in slopes["settled"]}
    frames = {
        "S9": evidence.slopes(fixed_budgets.helped(fixed_budgets.smoothed(studies[0], longest))),
        "S12": evidence.region_moved(fixed_budgets.shares(fixed_budgets.maps(whole))),
        "S13": evidence.favoured(ladders),
        "S13b": evidence.left_by_large_budgets(ladders, fixed_budgets.enough(ladders)),
        "S14": evidence.slopes(settled),
        "S15": evidence.lost_trials(whole),
    }
    return {key: (frame, sum(map(_hours, studies))) for key, frame in frames.items()}


def _of_messages() -> dict[str, tuple[pd.DataFrame, float]]:
    cells = [c for name in ("messages", "messages-lenet-5") for c in plans.study(name).cells]
    trials = results.read(Study("messages", "", tuple(cells)))
    variants = results.read(plans.study("message-variants"))
    sent, warmed = message_results.best(trials), message_results.best(variants[variants.warm_up > 0])
    portrayed = portraits.results(tuple(p for p in portraits.PORTRAITS if p.density == shi.COMPARED))
    shapes = portraits.shapes(portrayed)
    fed = shapes[shapes.feedback.astype(bool) & (shapes.compressor == "top-k")]

    def compared(gaps: pd.DataFrame) -> pd.DataFrame:
        return gaps[gaps.density == shi.COMPARED]

    top, random = message_results.gaps(sent, "Top-k"), compared(message_results.gaps(sent, "Rand-k"))
    gaussian, warm = (compared(message_results.gaps(found, "Gaussian-k", "Top-k")) for found in (sent, warmed))
    equal = message_results.matched_gaps(sent, "Gaussian-k", "Top-k").query("more")
    means, lost = message_results.means, evidence.points_lost
    frames = {
        "T1": evidence.bells(fed),
        "T3": evidence.under_the_bound(portrayed[portrayed.measure == "left"]),
        "T4": lost(means(compared(top))),
        "T4b": evidence.lost_at_best(random, means(random)),
        "T5": pd.concat([lost(means(gaussian)), lost(means(warm), " with a density warmed up")], ignore_index=True),
        "T5b": lost(means(equal)),
        "T6": evidence.unmeasured("a graphics processor"),
        "T9": evidence.narrowed(means(top)),
    }
    return {key: (frame, _hours(trials)) for key, frame in frames.items()}
