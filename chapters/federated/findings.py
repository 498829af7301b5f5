"""What training where the data lie costs, beside large batches, and what the page says of it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.federated import experiments
from lib.analysis import replicates, scaling
from lib.analysis.scaling import Effect
from lib.claims.claim import Group, ratio, unmeasured
from lib.claims.names import title
from lib.page.told import times
from lib.wording import brief, percent

LARGE, WHOLE, EPOCH, LONGER, _, TURNS = experiments.ARMS
TOGETHER = "split, all together"  # the steps of LARGE, the network cut
COSTS = {"rounds": "rounds", "sent": "numbers sent", "adds": "multiply-adds"}
POINT = ["workload", "skewed", "way", "local_steps", "batch_size"]


def searches(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search and goal: arm, goal, rounds of its best trial (NaN where none meets it), and
    what they cost a client, sent and adds.
    """
    arms = {how[:3]: name for name, how in experiments.ARMS.items()}
    goals = [name for name in trials if name.startswith("rounds@")]
    each = ["sent", "adds", "cut_sent", "cut_adds"]
    found = trials.groupby([*POINT, "replicate"])[[*goals, *each]].min().reset_index()
    found = found.melt([*POINT, "replicate", *each], goals, "goal", "rounds")
    found[each] = found[each].mul(found.rounds, axis=0)
    names = [arms[how] for how in zip(*(found[name] for name in POINT[2:]))]
    found = found.assign(goal=found.goal.str[7:].astype(float), arm=names)
    cut = found[found.arm == LARGE].assign(arm=TOGETHER)
    return pd.concat([found, cut.assign(sent=cut.cut_sent, adds=cut.cut_adds)])


def over(own: pd.DataFrame, what: str, one: str, other: str) -> Effect | None:
    """`replicates.over` of what two ways cost; own: searches of one network, kind and goal."""
    return replicates.over(own[own.arm == one], own[own.arm == other], what)


def beside(what: str, one: str, other: str) -> list[Group]:
    """A way's rounds or costs over another's, a row per network and kind of shards, at the hardest
    goal that all searches of both meet.
    """
    trials, rows = experiments.FEDERATED.results(), []
    for (work, skewed), own in searches(trials).groupby(POINT[:2]) if len(trials) else ():
        name = f"{title(work)}, {experiments.KINDS[skewed]}"
        met = (over(some, what, one, other) for _, some in own.groupby("goal"))
        effect = next(filter(None, met), None)
        rows.append(ratio(name, effect) if effect else unmeasured(name, note="no goal was met"))
    return rows


def points(found: pd.DataFrame, goal: float) -> pd.DataFrame:
    """What the figure draws: network, kind, arm, cost, value (geometric mean), value_low,
    value_high, searches; without the ways of which a search misses the goal.
    """
    rows = []
    for (work, skewed, arm), own in found[found.goal == goal].groupby([*POINT[:2], "arm"]):
        for what, name in COSTS.items() if own.rounds.notna().all() else ():
            ends = scaling.mean_of(np.log(own[what])).row().values()
            rows.append((title(work), experiments.KINDS[skewed], arm, name, *ends, len(own)))
    columns = "network kind arm cost value value_low value_high searches"
    return pd.DataFrame(rows, columns=columns.split())


def beside_large(found: pd.DataFrame, goal: float) -> pd.DataFrame:
    """Rounds over those of the large batch of 150, told, a row per network and way."""
    rows = {}
    for (work, skewed), own in found[found.goal == goal].groupby(POINT[:2]):
        for arm in [*experiments.ARMS][1:]:
            told = times(over(own, "rounds", arm, LARGE))
            rows.setdefault((title(work), arm), {})[experiments.KINDS[skewed]] = told
    return pd.DataFrame(rows).T.rename_axis(["network", "way"]).reset_index()


def findings(found: pd.DataFrame, trials: pd.DataFrame, goal: float) -> dict[str, object]:
    """All values of the page's sentences; found: of `searches`, trials: the records."""
    own, values = found[found.goal == goal], {}
    pairs = {"rounds": (WHOLE, EPOCH), "adds": (EPOCH, TURNS), "sent": (TURNS, EPOCH)}
    for skewed, kind in ((False, "alike"), (True, "skewed")):
        some = dict(list(own[own.skewed == skewed].groupby("workload")))
        for what, both in pairs.items():
            effects = {work: over(part, what, *both) for work, part in some.items()}
            effects = {work: one for work, one in effects.items() if one}
            ratios = {work: float(np.exp(one.value)) for work, one in effects.items()}
            undecided = [one for one in effects.values() if one.low <= 0 <= one.high]
            values[f"{what}_{kind}_open"] = len(undecided)
            values[f"{what}_{kind}"] = list(ratios.values())
            values[f"{what}_{kind}_cnn"] = ratios.get("digits-cnn")
        base = own[(own.skewed == skewed) & (own.arm == LARGE)].dropna(subset="rounds")
        means = np.exp(np.log(base.rounds).groupby(base.workload).mean())
        values[f"base_{kind}"] = [f"{brief(n)} ({title(work)})" for work, n in means.items()]
    skew = own[own.skewed]
    for name, work in (("mlp", "digits-mlp"), ("cnn", "digits-cnn")):
        effect = over(skew[skew.workload == work], "rounds", LONGER, EPOCH)
        values[f"longer_{name}"] = times(effect) if effect else None
    longer = skew[(skew.workload == "digits-cnn") & (skew.arm == LONGER)]
    met = trials.dropna(subset=f"rounds@{goal:g}").sort_values(f"rounds@{goal:g}", kind="stable")
    best = met.groupby([*POINT, "replicate"]).learning_rate.first()
    told = ("rounds_alike", "rounds_skewed", "adds_alike", "adds_skewed", "sent_alike")
    return {
        **{name: values[name] for name in (*told, "sent_alike_cnn")},
        **{
            name: values[name] for name in ("base_alike", "base_skewed", "longer_mlp", "longer_cnn")
        },
        "skewed_open": values["rounds_skewed_open"],
        "longer_missed": int(longer.rounds.isna().sum()),
        "goal": percent(goal),
        "clients": experiments.CLIENTS,
        "shard": experiments.SHARD,
        "trials": int(trials.trial.max()) + 1,
        "searches": int(trials.replicate.nunique()),
        "missed": int(own[own.arm != TOGETHER].rounds.isna().sum()),
        "upper": percent((best > 2).mean()),
    }
