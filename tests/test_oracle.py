"""What a change of the code must leave as it is: names of all records, steps to result of all searches, all judged claims.

Where records, rules or plans have changed on purpose, `python -m tests.test_oracle` writes `tests/oracle.json` anew; its diff
then says what else has.
"""

import hashlib
import json
import math
from pathlib import Path

from lib import __main__ as command_line
from lib import claims
from lib.records import store
from lib.records.store import DATA
from lib.studies import plans

ORACLE = Path(__file__).with_name("oracle.json")


def checksum(lines):
    """How many lines there are, and a digest of them in any order."""
    lines = sorted(lines)
    return f"{len(lines)} {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:16]}"


def names(files):
    return checksum(file.relative_to(DATA).as_posix() for file in files)


def planned_records():
    """Where the records of everything planned lie: their names hold the digests of their specs."""
    places = {}
    for name, study in plans.STUDIES.items():
        places[f"study {name}"] = names(map(store.record, study.searches))
    for name, experiment in command_line.EXPERIMENTS.items():
        places[f"experiment {name}"] = names(map(experiment.record, experiment.planned()))
    return places


def steps_to_result():
    """For the searches of every study: the fewest steps to each goal, as their records say."""
    steps = {}
    for name, study in plans.STUDIES.items():
        lines = []
        files = store.existing(study.searches, store.record)
        _, trials = store.read_all(files, ("best@", "test@", "loss@"))
        by_record = trials.filter(like="steps@").groupby(level=0)
        fewest, met = by_record.min(), by_record.count().eq(by_record.size(), axis=0)
        for row, (file, cell) in enumerate(files.items()):
            columns = [f"steps@{goal:g}" for goal in cell.work.goals]
            # As in a table read by itself: whole numbers where every trial met every goal
            kind = int if met.loc[row, columns].all() else float
            best = {goal: kind(fewest.at[row, goal]) for goal in columns}
            lines.append(f"{file.stem} {cell.workload} {best}")
        steps[name] = checksum(lines)
    return steps


def judged_claims():
    """For every claim and finding, its verdicts on the papers' networks and ours, and the verdict,
    effect with interval and number of searches on each."""
    judged = {}
    for key, claim in claims.every().items():
        networks = {}
        for g in claim.groups:
            ends = (rounded(v) for v in (g.effect, g.low, g.high))
            networks[g.name] = [g.verdict, *ends, g.n]
        words = [getattr(claim, side, "") for side in ("theirs", "ours")]
        judged[key] = {"verdict": words, "networks": networks}
    return judged


def rounded(value):
    """To six significant digits: another processor may round the last ones otherwise."""
    return float(f"{value:.6g}") if math.isfinite(value) else str(value)


def close(value, expected):
    """Equal, numbers up to a last digit."""
    if isinstance(expected, dict):
        same = value.keys() == expected.keys()
        return same and all(close(value[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(value) == len(expected) and all(map(close, value, expected))
    if isinstance(expected, float) and isinstance(value, float):
        return math.isclose(value, expected, rel_tol=1e-4, abs_tol=1e-9)
    return value == expected


def oracle(name):
    return json.loads(ORACLE.read_text(encoding="utf-8"))[name]


def test_every_spec_is_recorded_under_the_name_it_had():
    assert planned_records() == oracle("records")


def test_steps_to_result_of_every_search_are_what_they_were():
    assert steps_to_result() == oracle("steps")


def test_every_claim_is_judged_as_it_was():
    judged, expected = judged_claims(), oracle("claims")
    assert [key for key in expected if not close(judged.get(key), expected[key])] == []
    assert judged.keys() == expected.keys()


if __name__ == "__main__":
    values = {"records": planned_records(), "steps": steps_to_result(), "claims": judged_claims()}
    ORACLE.write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
