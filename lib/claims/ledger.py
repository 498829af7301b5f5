"""Every claim, judged once from the records and kept: front page, ledger and chapters read the same."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lib import ROOT, code
from lib.analysis import (
    branched,
    curve_forms,
    evidence,
    family_curves,
    fixed_budgets,
    followed_paths,
    framework_costs,
    late_results,
    links,
    message_results,
    method_results,
    network_parts,
    path_geometry,
    rate_rules,
    scaling,
    text_results,
    volunteers,
)
from lib.analysis import without_backpropagation as without
from lib.atomic import whole
from lib.claims import (
    dai,
    guille_escuret,
    language_models,
    large_batches,
    lee,
    shallue,
    shi,
    two_processes,
    without_backpropagation,
)
from lib.claims import network_parts as parts_of_networks
from lib.claims import volunteers as on_volunteers
from lib.claims.verdicts import Claim, Group, Rule
from lib.methods import WITH_MOMENTUM
from lib.probes import branch_runs, framework_times, method_times, paths, portraits, running_noise, tracks
from lib.records import on_record, results
from lib.records.places import DATA
from lib.studies import families, plans
from lib.studies.study import Study
from lib.systems import boolean_readout, growing, halves, subnetworks
from lib.workloads import catalogue

EVERY = (
    lee, guille_escuret, shallue, shi, large_batches, language_models, dai, parts_of_networks, without_backpropagation,
    on_volunteers, two_processes,
)  # fmt: skip
RULES = {rule.key: rule for papers in EVERY for rule in papers.RULES}
BUDGETS = ("digits-budget", *plans.TO_BUDGETS)
BUILD = "BOOK_BUILD"  # names the folder of a build that lies elsewhere, for the chapters that it runs


def judge() -> dict[str, Claim]:
    """Every claim by its key, in the order of the ledger, judged on all records: computed once for this code and these data.

    Claims on training methods of which nothing is measured yet are `planned`, and not among them.
    """
    found = {**on_curves(), **on_others()}
    return {key: _claim(found[key]) for key in RULES if key in found}


def on_curves() -> dict[str, dict]:
    """The fields of the claims on what `usual` returns, by their keys, as `judge` keeps them."""
    return kept("judged-on-curves", lambda: _judged(_of_curves, _of_volunteers))


def on_others() -> dict[str, dict]:
    """The fields of all other claims: about as long to compute, so that a build has both at once (`prepared.prepare`)."""
    return kept("judged-on-others", lambda: _judged(
        _of_paths, _of_families, _of_budgets, _of_messages, _of_methods, _of_texts, _of_late, _of_parts, _of_local_errors,
        _of_flips, _of_two_processes,
    ))  # fmt: skip


def planned() -> dict[str, Rule]:
    """The rules of the claims that wait for the first searches of their methods."""
    known = judge()
    return {key: rule for key, rule in RULES.items() if key not in known}


def kept(name: str, compute: Callable[[], dict], folders: Sequence[Path] = ()) -> dict:
    """What `compute` returns, as JSON knows it: from the file that this code and these data have, or into it.

    folders: where it may lie; () for those of the build.  It is written to the first that takes it, and if none does (they
    are another user's, or the disk is full) kept by this process.  Notebooks that run side by side may both compute.
    """
    files = [folder / f"{name}-{_digest()}.json" for folder in folders or _folders()]
    for file in files:
        with contextlib.suppress(OSError, ValueError):  # none yet, or one that cannot be read
            return json.loads(file.read_text(encoding="utf-8"))
    if files[0] not in UNWRITTEN:
        found = json.dumps(compute(), ensure_ascii=False, indent=1)
        if any(_written(file, found) for file in files):
            return json.loads(found)
        UNWRITTEN[files[0]] = found
    return json.loads(UNWRITTEN[files[0]])


UNWRITTEN: dict[Path, str] = {}


def _folders() -> list[Path]:
    return [Path(build, "claims") for build in (ROOT / "_build", os.environ.get(BUILD)) if build]


def _written(file: Path, text: str) -> bool:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole(file) as stream:
            stream.write(text.encode())
    except OSError:
        return False
    return True


@functools.cache
def _digest() -> str:
    """Of all code in lib, and of when every record was last changed and its size: reading them all takes six times as long."""
    files = [os.path.join(folder, name) for folder, _, names in os.walk(DATA) for name in names if not name.endswith(".part")]
    stamps = [(file, (about := os.stat(file)).st_mtime_ns, about.st_size) for file in sorted(files)]
    return hashlib.sha256(f"{code(['.'])} {stamps}".encode()).hexdigest()[:16]


def _claim(fields: dict) -> Claim:
    return Claim(**{**fields, "groups": tuple(Group(**group) for group in fields["groups"])})


def _judged(*groups: Callable[[], dict]) -> dict[str, dict]:
    found = {key: judged for group in groups for key, judged in group().items()}
    return {key: dataclasses.asdict(rule.judge(*found[key])) for key, rule in RULES.items() if key in found}


def _hours_by(table: pd.DataFrame, group: Callable[[dict], Hashable]) -> dict:
    """Core-hours that a table's records took, by what `group` says of a record's first line; None does not count."""
    spent = {}
    for head in table.attrs["provenance"]:
        if (key := group(head)) is not None:
            spent[key] = spent.get(key, 0.0) + head["wall_s"] / 3600
    return spent


def _hours(table: pd.DataFrame, wanted: Callable[[dict], bool] = lambda head: True) -> float:
    """Core-hours that a table's records took, of those whose first line is wanted; NaN of none."""
    return _hours_by(table, wanted).get(True, np.nan)


def _data_set(head: dict) -> str:
    return evidence.data_set(head["workload"])


def _title(head: dict) -> str:
    return evidence.title(head["workload"])


def _measured(effects: dict[str, pd.DataFrame], hours: float) -> dict[str, tuple[pd.DataFrame, float]]:
    """What is measured of these effects, each with the hours that it took."""
    return {key: (effect, hours) for key, effect in effects.items() if len(effect)}


@functools.cache
def usual() -> tuple[pd.DataFrame, pd.DataFrame, dict]:
    """All trials that pages compare, each workload at the goal that its curves share; and their `scaling.summaries`."""
    trials = results.read(on_record.compared())
    attrs, trials = trials.attrs, scaling.at_shared_goals(trials)
    trials.attrs.update(attrs)
    return trials, *scaling.summaries(trials)


def _of_extremes(trials: pd.DataFrame, summary: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    dense = summary[(summary.sparsity == 0) & summary.identified.astype(bool)].set_index(["workload", "algorithm"])
    ends = {dense.critical_low.idxmax(), dense.critical_high.idxmin()} if len(dense) else set()
    spent = _hours(trials, lambda head: (head["workload"], head["algorithm"]) in ends and not head["sparsity"])
    return evidence.from_extreme_to_extreme(dense), spent


def _of_curves() -> dict[str, tuple[pd.DataFrame, float | dict]]:
    trials, summary, drawn = usual()
    pruned = results.read(plans.prunings())
    paths = pd.concat([f for f in map(tracks.results, tracks.TRACKS) if len(f)])
    over = scaling.sparsest(followed_paths.over_dense(paths))
    beside_sgd, shifted = family_curves.over_sgd(drawn), family_curves.easy_over_hard(trials)
    digits = trials[trials.workload.isin(plans.DIGITS) & (trials.algorithm == "momentum") & (trials.sparsity == 0)]
    searched = digits[digits.replicate == 0]
    searched = scaling.at_goals(searched, {name: catalogue.workload(name).goal for name in plans.DIGITS})
    points = scaling.across_replicates(scaling.steps_to_result(trials))
    spent, by_data = _hours(trials), _hours_by(trials, _data_set)
    least = trials[trials.sparsity == 0].groupby("workload").batch_size.min()

    def at_least(head: dict) -> str | None:
        return _title(head) if head["sparsity"] == 0 and head["batch_size"] == least.get(head["workload"]) else None

    return {
        "L1": (evidence.inside_the_sizes(drawn), spent),
        "L2": (evidence.off_the_line(summary), spent),
        "L2b": (evidence.by_way_of_pruning(scaling.summaries(scaling.at_shared_goals(pruned))[1]), _hours(pruned)),
        "L3": (evidence.cost_of_sparsity(scaling.steps_over_dense(drawn)), spent),
        "L4": (evidence.critical_over_dense(drawn), by_data),
        "L5": (evidence.critical_over_dense(drawn, WITH_MOMENTUM), by_data),
        "L6": (evidence.beside_other_forms(curve_forms.left_out_factors(points)), spent),
        "L7": (evidence.by_workload(over, "lipschitz"), spent),
        "M1": (evidence.noise_scale_off(followed_paths.predicted_bends(paths, summary), drawn), spent),
        "S2": (evidence.folded(evidence.pooled([("all curves", list(shifted.draws))])), spent),
        "S4": _of_extremes(trials, summary),
        "S7": (evidence.over_sgd(beside_sgd, "draws", evidence.data_set), by_data),
        "S7b": (evidence.folded(evidence.over_sgd(beside_sgd, "steps_draws", evidence.title)), _hours_by(trials, at_least)),
        "S10": (evidence.growth_of_rate(rate_rules.exponents(rate_rules.near_best(searched, 16))), spent),
        "S10b": (evidence.rules_missed(rate_rules.costs(searched, 16, 5)), spent),
    }


def _of_paths() -> dict[str, tuple[pd.DataFrame, float]]:
    points = paths.results()
    if points.empty:
        return {}
    found = path_geometry.by_path(points)
    return {"P1": (path_geometry.positive(found), _hours(points)), "P2": (path_geometry.spreads(found), _hours(points))}


def _of_families() -> dict[str, tuple[pd.DataFrame, dict]]:
    trials = family_curves.results(families.FAMILIES)
    effects = family_curves.effects(family_curves.bends(trials))
    by_member = _hours_by(trials, lambda head: (head["workload"], head["algorithm"]))

    def sized(family: str) -> str:
        data, _, what = family.partition(": ")
        return f"{what} on {data}"

    def told(names: tuple[str, ...], name: Callable[[str], str] = lambda family: family.partition(":")[0]) -> tuple:
        own = effects[effects.family.isin(names)]
        ends = {name(r.family): {families.FAMILIES[r.family].members[m] for m in (r.first, r.last)} for r in own.itertuples()}
        return evidence.of_families(own, name), {group: sum(by_member.get(m, 0.0) for m in two) for group, two in ends.items()}

    return {
        "S5": told((families.MODEL, families.MNIST_MODEL)),
        "S6": told((families.WIDTH, families.DEPTH, families.LADDER, families.MNIST_WIDTH, families.MNIST_DEPTH), sized),
        "S8": told((families.FRACTION, families.MNIST_FRACTION)),
    }


def _of_budgets() -> dict[str, tuple[pd.DataFrame, float | dict]]:
    digits, *images = (results.read(plans.study(name)) for name in BUDGETS)
    whole = pd.concat([frame[frame.label_smoothing == 0] for frame in (digits, *images)])
    ladders = {name: both for frame in (digits, *images) for name, both in fixed_budgets.by_workload(frame).items()}
    longest = fixed_budgets.longest(pd.concat([digits, *images, results.read(plans.study("mnist-longer-budget"))]))
    plain, spent = longest[longest.label_smoothing == 0], sum(map(_hours, (digits, *images)))
    several = results.read(plans.study("digits-smoothing"))  # searches on splits of their own
    repeated = fixed_budgets.longest(several) if len(several) else longest[:0]
    risen = _of_several(fixed_budgets.risen(longest), fixed_budgets.risen(repeated))
    helped = _of_several(fixed_budgets.helped(longest), fixed_budgets.helped(repeated))

    def arm(head: dict) -> str:
        return f"{_title(head)}, smoothing {head['label_smoothing']:g}" if head["label_smoothing"] else _title(head)

    by_arm = _hours_by(digits, arm) | (_hours_by(several, arm) if len(several) else {})
    return {
        "S9": (evidence.slopes(helped), by_arm),
        "S12": (evidence.region_moved(fixed_budgets.shares(fixed_budgets.maps(whole))), spent),
        "S13": (evidence.favoured(ladders), spent),
        "S13b": (evidence.left_by_large_budgets(plain), spent),
        "S14": (evidence.slopes(risen), by_arm),
        "S15": (evidence.lost_trials(whole), spent),
    }


def _of_several(single: dict[Hashable, tuple], repeated: dict[Hashable, tuple]) -> dict[Hashable, tuple]:
    """What several searches, whose count is last, say where there are two of them, and else what a single one says."""
    return single | {name: found for name, found in repeated.items() if found[-1] > 1}


def _of_methods() -> dict[str, tuple[pd.DataFrame, float]]:
    """Of claims whose methods have several searches."""
    trials = method_results.compared()
    effects = method_results.claimed(scaling.summaries(trials)[1], method_times.over_sgd())
    adam = results.read(plans.study("digits-adam"))
    asked = {key: method_results.asked(trials, key) for key in effects}
    spent = {key: {name: _hours_at(trials, own) for name, own in groups.items()} for key, groups in asked.items()}
    effects["O7c"] = method_results.kept_beta(rate_rules.costs(adam[adam.replicate == 0] if len(adam) else adam, 16, 5))
    return {key: (effect, spent.get(key, _hours(adam))) for key, effect in effects.items() if len(effect)}


def _hours_at(table: pd.DataFrame, own: pd.DataFrame) -> float:
    """Core-hours that a table's records took at the points that these of its trials are of."""
    at = ["workload", "algorithm", "batch_size", "sparsity"]
    points = set(own[at].drop_duplicates().itertuples(index=False, name=None))
    return _hours(table, lambda head: tuple(head[name] for name in at) in points)


def _of_local_errors() -> dict[str, tuple[pd.DataFrame, float]]:
    """Of claims on errors that are not propagated back."""
    searched, budgets = (results.read(plans.study(name)) for name in plans.LOCALLY)
    found = {"B1": (without.lost(budgets), budgets), "B2": (without.sooner(scaling.summaries(searched)[1]), searched)}
    return {key: (effect, _hours(trials)) for key, (effect, trials) in found.items() if len(effect)}


def _of_flips() -> dict[str, tuple[pd.DataFrame, float]]:
    """Of claims on Boolean readouts."""
    table = boolean_readout.results(boolean_readout.BY_COUNT)
    found = {"B3": without.straightness(table), "B4": without.off_linear(table)} if len(table) else {}
    return _measured(found, _hours(table))


def _of_parts() -> dict[str, tuple[pd.DataFrame, float]]:
    """Of claims whose systems are on record."""
    tables = [system.results(system.planned()) for system in (subnetworks, growing, halves)]
    parts, grown, cut = map(_hours, tables)

    def exchanged(head: dict) -> str | None:
        return f"batches of {head['cell']['batch_size']:,}" if head["cell"]["arm"] != "halves" else None  # which exchange nothing

    own = {"I4": grown, "I5": cut, "I6": _hours_by(tables[2], exchanged)}
    return {key: (effect, own.get(key, parts)) for key, effect in network_parts.claimed(*tables).items()}


def _of_volunteers() -> dict[str, tuple[pd.DataFrame, float]]:
    trials, *_ = usual()
    points = scaling.across_replicates(scaling.steps_to_result(trials[trials.sparsity == 0]))
    found = volunteers.fitted(points.assign(curve=scaling.curve_names(points)))
    return {"V1": (volunteers.claimed(found, rounds(volunteers.Team(volunteers.ONLINE), found)), np.nan)} if len(found) else {}


def rounds(team: volunteers.Team, points: pd.DataFrame, start: Mapping[str, float] = volunteers.START) -> pd.DataFrame:
    """`volunteers.of_settings` of a team at the batch sizes of these points: simulated once, for all pages that draw it."""
    asked = (team, sorted(map(int, points.batch_size.unique())), *volunteers.settings(start).values())
    name = f"rounds-{hashlib.sha256(repr(asked).encode()).hexdigest()[:12]}"
    return pd.DataFrame(kept(name, lambda: volunteers.of_settings(*asked, seed=0).to_dict("list")))


def _of_two_processes() -> dict[str, tuple[pd.DataFrame, float]]:
    """Of claims on processes that were timed or listened to."""
    times, jobs = framework_times.measured(), running_noise.results(running_noise.planned())
    trials = framework_costs.searched(times)
    found = {"W2": (evidence.running_noise_off(jobs), _hours(jobs))} if len(jobs) else {}
    if len(trials):
        points = scaling.across_replicates(scaling.steps_to_result(trials))
        found["W1"] = framework_costs.sooner(framework_costs.to_goal(points, times)), np.nan
    return found


def _of_late() -> dict[str, tuple[pd.DataFrame, float]]:
    """Of claims whose curves, late and timely, have several searches."""
    trials = results.read(late_results.measured())
    effects = late_results.claimed(late_results.curves(late_results.comparable(trials)))
    spent, deep = _hours(trials), _hours(results.read(plans.study("staleness-depth")))
    return {key: (effect, deep if key == "A3" else spent) for key, effect in effects.items() if len(effect)}


def _of_texts() -> dict[str, tuple[pd.DataFrame, float]]:
    """Of claims on language models."""
    checks = branch_runs.results()
    found = {key: (table, _hours(checks)) for key, table in branched.claimed(checks, tracks.results("shakespeare")).items()}
    trials = results.read(text_results.of_widths())
    return {**found, "G4": (text_results.over_widths(trials), _hours(trials))}


def _of_messages() -> dict[str, tuple[pd.DataFrame, dict]]:
    from lib.probes import message_times, timings  # bring PyTorch, which is slow to import, and most pages do without

    cells = [c for name in ("messages", "messages-lenet-5", "messages-resnet-20") for c in plans.study(name).cells]
    trials = results.read(Study("messages", "", tuple(cells)))
    variants = results.read(plans.study("message-variants"))
    sent, warmed = message_results.best(trials), message_results.best(variants[variants.warm_up > 0])
    unfed = pd.concat([frame[(frame.compressor == "rand-k") & ~frame.feedback.astype(bool) & (frame.density == shi.COMPARED)]
                       for frame in (trials, results.read(plans.study("messages-rates"))) if len(frame)])  # fmt: skip
    rivals = pd.concat([sent[sent.method == "dense"], message_results.best(unfed)])
    portrayed = portraits.results(tuple(p for p in portraits.PORTRAITS if p.density == shi.COMPARED))
    shapes = portraits.shapes(portrayed)
    fed = shapes[shapes.feedback.astype(bool) & (shapes.compressor == "top-k")]

    means = message_results.means

    def compared(gaps: pd.DataFrame) -> pd.DataFrame:
        return message_results.long_enough(gaps[gaps.density == shi.COMPARED])

    def lost(gaps: pd.DataFrame) -> pd.DataFrame:
        return evidence.lost_at_best(gaps, means(gaps))

    top, random = message_results.gaps(sent, "Top-k"), message_results.gaps(rivals, "Rand-k")
    gaussian, warm = (compared(message_results.gaps(found, "Gaussian-k", "Top-k")) for found in (sent, warmed))
    equal = message_results.matched_gaps(sent, "Gaussian-k", "Top-k").query("more")
    frames = {
        "T1": evidence.bells(fed),
        "T3": evidence.under_the_bound(portrayed[portrayed.measure == "left"]),
        "T4": lost(compared(top)),
        "T4b": lost(random),
        "T5": pd.concat([lost(gaussian), evidence.points_lost(means(warm, like=top), shi.WARMED)], ignore_index=True),
        "T5b": evidence.points_lost(means(equal)),
        "T6": evidence.table((f"vectors of {t.drawn} entries", *links.exact_over_gaussian(timings.results(t)))
                             for t in message_times.ON_A_GPU if t.density == shi.COMPARED),
        "T9": evidence.narrowed(top),
    }
    return {key: (frame, _hours_by(trials, _title)) for key, frame in frames.items()}
