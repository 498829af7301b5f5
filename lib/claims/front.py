"""What the front page says: sentences computed from the records, kept as the judged claims are."""

from __future__ import annotations

from lib.analysis import family_curves, message_results, scaling
from lib.analysis.evidence import title
from lib.claims.ledger import judge, kept
from lib.records import on_record, results
from lib.studies import families, plans
from lib.wording import brief, named


def findings() -> dict[str, str | int]:
    """Names and what the page prints for them: KEY (a claim's verdict, with the part that holds), KEY_found, and numbers."""
    told = {}
    for key, claim in judge().items():
        told[key] = f"{claim.verdict}{claim.part and f' ({claim.part})'}"
        told[f"{key}_found"] = claim.ours
    return {**told, **kept("front", _numbers)}


def _numbers() -> dict[str, str | int]:
    usual = results.read(on_record.gathered(**plans.USUAL))
    mlp = usual[(usual.workload == "digits-mlp") & (usual.algorithm == "momentum")]
    curve = scaling.summaries(mlp[mlp.sparsity == 0])[0].iloc[0]
    steps = scaling.across_replicates(scaling.steps_to_result(mlp[mlp.sparsity == 0])).steps
    bends = family_curves.bends(family_curves.results(families.FAMILIES))
    bends = bends[bends.identified.astype(bool)].sort_values("critical")
    first, last = bends.iloc[0], bends.iloc[-1]
    beyond = scaling.steps_to_result(results.read(plans.study("digits-sparsest")))
    joint = message_results.joint_costs(message_results.joint_curves(results.read(plans.study("both-sparsities"))))
    cells = on_record.gathered().cells
    cost = next(group for group in judge()["L3"].groups if group.name == "sparsity 0.9")
    return {
        "cells": len(cells),
        "trials": sum(cell.trials for cell in cells),
        "saved": brief(steps.max() / steps.min()),
        "critical": f"{curve.critical:.0f}",
        "critical_least": f"{first.critical:.0f} ({title(first.workload)}, {named(first.algorithm)})",
        "critical_most": f"{last.critical:.0f} ({title(last.workload)}, {named(last.algorithm)})",
        "cost": brief(cost.effect),
        "beyond_met": int(beyond.steps.notna().sum()),
        "beyond_cells": len(beyond),
        "joint": brief(joint.over.median()),
    }
