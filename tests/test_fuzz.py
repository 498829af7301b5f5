"""A sample of `python -m tests.fuzz`: what must be refused is refused by name, in every chapter, before anything is computed."""

import subprocess
import sys

import pytest

from lib import ROOT
from tests import fuzz

OWN = {"workload": "chapters/own/next_letter.py:next_letter", "trials": 32}
ONCE = {  # what once ended in a raw error
    fuzz.RAN: [("steps_to_result", OWN), ("smoothness", {"sparsities": 0})],
    fuzz.LACKING: [("pruning_methods", {"trials": 4}), ("gradients", {"learning_rate": 0.02})],
    fuzz.REFUSED: [("contraction", {"entries": 1}), ("messages", {"workloads_shown": ""}), ("operator_cost", {"compute": -1})],
}


@pytest.fixture(scope="module")
def told():
    """What the cases of ONCE and a sample of wrong ones came to, in one process: lines "kind | case | message"."""
    sample = [case for name in fuzz.NAMES for case in fuzz.cases(name, share=0.025) if case.wrong]
    assert len(sample) > 75, "hardly any case is tried"
    cases = [fuzz.Case(*case) for of in ONCE.values() for case in of]
    code = "import sys; from math import inf, nan; from tests import fuzz; from tests.fuzz import Case\n"
    code += "for case, kind, message, _ in fuzz.outcomes(eval(sys.stdin.read())): print(f'{kind} | {case} | {message!r}')"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, input=repr(cases + sample), capture_output=True, encoding="utf-8")
    lines = [line.split(" | ") for line in done.stdout.splitlines()]
    assert len(lines) == len(cases + sample), done.stderr[-2000:]
    return {case: (kind, message) for kind, case, *message in lines}, list(map(str, sample))


def test_a_sample_of_wrong_parameters_is_refused_by_name(told):
    found, sample = told
    assert {case: found[case] for case in sample if found[case][0] not in fuzz.RIGHT} == {}


def test_what_once_ended_in_a_raw_error_runs_or_is_refused_by_name(told):
    for kind, of in ONCE.items():
        assert [told[0][str(fuzz.Case(*case))][0] for case in of] == [kind] * len(of)


def test_every_parameter_of_every_chapter_is_tried_and_again_the_same():
    for chapter in fuzz.NAMES:
        tried = fuzz.cases(chapter)
        assert {name for case in tried if case.wrong for name in case.given} >= set(fuzz.defaults(chapter))
        assert list(map(str, tried)) == list(map(str, fuzz.cases(chapter)))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (KeyError("trials"), "raw error"),
        (ValueError("trials: 0 is not allowed; it must be a whole number from 1 to 4096"), fuzz.REFUSED),
        (ValueError("sparsity: 0 is not allowed; it must be a whole number"), "names another field"),
        (ValueError("trials: -3 is not allowed; it must be a whole number"), "value not named"),
        (ValueError("trials: 0 does not do"), "not said what is allowed"),
        (ValueError("trials: 0 is not allowed;\nit must be more"), "raw error"),
        (MemoryError(), "memory"),
    ],
)
def test_a_refusal_must_name_field_value_and_what_is_allowed(error, kind):
    assert fuzz.verdict(fuzz.Case("theory", {"trials": 0}), error)[0] == kind
    assert fuzz.judged(fuzz.Case("theory", {"trials": 0}, True), fuzz.RAN, "")[0] not in fuzz.RIGHT
