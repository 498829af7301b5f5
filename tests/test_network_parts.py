"""Parts of a network against the whole: planted searches come back as the ratios they were planted with."""

import itertools

import numpy as np
import pandas as pd
import pytest

from chapters.parts_of_a_network import (
    claims,
    growing,
    halves,
    network_parts,
    subnetworks,
)

WHOLE = {16: 100.0, 32: 60.0, 64: 40.0}  # steps of the whole network by examples a step


def search(workers, local_steps, batch_size, replicate, steps, never=()):
    """Two trials, the first of which takes so many steps to 0.04, and half of them to 0.1."""
    sent, adds = 8970 / workers, batch_size * 1000 / workers
    hard, easy = [np.nan if goal in never else x for goal, x in ((0.04, steps), (0.1, steps / 2))]
    return pd.DataFrame({
        "workers": workers, "local_steps": local_steps, "batch_size": batch_size, "replicate": replicate, "sent": sent,
        "adds": adds, "steps@0.04": [hard, np.nan], "steps@0.1": [easy, 2 * easy],
    })  # fmt: skip


def trials(never=()):
    rows = [search(1, 1, b, n, steps * n) for b, steps in WHOLE.items() for n in (1, 2)]
    rows += [search(2, j, 16, n, 180 * n) for j in (1, 20) for n in (1, 2)]
    rows += [search(4, j, 16, n, 400 * n, never if n == 1 else ()) for j in (1, 20) for n in (1, 2)]
    return pd.concat(rows, ignore_index=True)


def test_parts_are_compared_with_as_many_examples_by_the_same_search():
    beside = network_parts.subnetworks(trials())
    steps = network_parts.over_whole(beside, 0.04, "steps").set_index(["workers", "local_steps"])
    assert steps.effect.to_dict() == pytest.approx({(2, 1): 3, (2, 20): 3, (4, 1): 10, (4, 20): 10})
    assert steps.low[2, 1] == pytest.approx(3) and steps.n.eq(2).all()
    adds = network_parts.over_whole(beside, 0.04, "adds").set_index(["workers", "local_steps"]).effect
    assert adds[2, 1] == pytest.approx(3 / 2) and adds[4, 20] == pytest.approx(10 / 4)  # a worker's own share of the batch
    sent = network_parts.over_whole(beside, 0.04, "sent").set_index(["workers", "local_steps"]).effect
    assert sent[2, 1] == pytest.approx(3 / 2) and sent[2, 20] == pytest.approx(3 / 2 * 9 / 180)  # 180 steps are nine rounds
    assert network_parts.over_alone(beside, 0.1).effect.tolist() == pytest.approx([1.8, 1.8, 4, 4])


def test_claims_are_judged_by_the_searches_that_met_a_goal(monkeypatch):
    monkeypatch.setattr(subnetworks, "results", lambda searches: trials(never=(0.04,)))
    sent, bias = claims.sent(), claims.bias()
    assert [g.effect for g in sent] == pytest.approx([20 * 2 / 3, 20 * 4 / 10]) and [g.n for g in sent] == [2, 2]
    assert [(g.effect, g.n) for g in bias] == [(1, 2), (0.5, 2)], "searches with other local steps share their splits"
    monkeypatch.setattr(growing, "results", lambda searches: grown({("16 to 64: function kept", 64)}))
    first, second = claims.grown()
    assert first.effect == pytest.approx(0.25) and (first.n, second.n) == (2, 0) and "missed" in second.note
    monkeypatch.setattr(halves, "results", lambda searches: cut({(network_parts.APART, 16), (network_parts.RECOVERED, 64)}))
    told = {g.name: (g.effect, g.n) for g in claims.halves_apart()}
    assert told[f"{network_parts.APART}, batches of 16"] == told[f"{network_parts.RECOVERED}, batches of 64"] == (0, 3)
    assert told[f"{network_parts.APART}, batches of 64"] == (1, 3) and len(told) == 4


def grown(missed=()):
    rows = []
    for name, factor in ((network_parts.WHOLE, 1.0), ("16 to 64: function kept", 2.0), ("16 units from the start", 0.5)):
        for batch, n in ((b, n) for b in (16, 64) for n in (1, 2)):
            steps = np.nan if (name, batch) in missed else 50.0 * factor
            rows.append({"arm": name, "batch_size": batch, "replicate": n, "steps@0.04": steps, "adds@0.04": 10 * factor * steps})
            rows.append({**rows[-1], "steps@0.04": 2 * steps, "adds@0.04": steps * factor * 5})  # slower, with less arithmetic
    return pd.DataFrame(rows)


def cut(missed=()):
    """Halves that take three times the steps and send a tenth, recovered ones double and half, with batches of 16 and 64."""
    rows, factors = [], {network_parts.TOGETHER: (1, 1.0), network_parts.APART: (3, 0.1), network_parts.RECOVERED: (2, 0.5)}
    for (arm, (more, less)), b, n in itertools.product(factors.items(), (16, 64), (1, 2, 3)):
        for goal, steps in ((0.04, np.nan if (arm, b) in missed else 100.0), (0.1, 50.0)):
            own = {"steps": n * more * steps, "sent": n * less * steps}
            rows.append({"arm": arm, "batch_size": b, "replicate": n, "goal": goal, **own})
    wide = pd.DataFrame(rows).pivot(index=["arm", "batch_size", "replicate"], columns="goal", values=["steps", "sent"])
    wide.columns = [f"{what}@{goal:g}" for what, goal in wide]
    return wide.assign(**{f"adds@{goal}": wide[f"steps@{goal}"] for goal in (0.04, 0.1)}).reset_index()
