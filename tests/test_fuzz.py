"""A sample of `python -m tests.fuzz`: what must be refused is refused by name, in every chapter, before anything is computed."""

import re
import subprocess
import sys

import pytest

from lib import ROOT
from tests import fuzz


def test_a_sample_of_wrong_parameters_is_refused_by_name():
    command = [sys.executable, "-m", "tests.fuzz", "--wrong", "--share", "0.05"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert int(re.search(r"of (\d+) right", done.stdout)[1]) > 150, "hardly any case was tried"


def test_every_parameter_of_every_chapter_is_tried_and_again_the_same():
    for chapter in fuzz.NAMES:
        tried = fuzz.cases(chapter)
        assert {name for case in tried if case.wrong for name in case.given} >= set(fuzz.defaults(chapter))
        assert list(map(str, tried)) == list(map(str, fuzz.cases(chapter)))


OWN = {"workload": "chapters/own/next_letter.py:next_letter", "trials": 32}


def test_what_once_ended_in_a_raw_error_runs_or_is_refused_by_name():
    tried = {
        fuzz.RAN: [("steps_to_result", OWN), ("smoothness", {"sparsities": 0})],
        fuzz.LACKING: [("pruning_methods", {"trials": 4}), ("gradients", {"learning_rate": 0.02})],
        fuzz.REFUSED: [("contraction", {"entries": 1}), ("messages", {"workloads_shown": ""}), ("operator_cost", {"compute": -1})],
    }
    cases = [fuzz.Case(*case) for of in tried.values() for case in of]
    code = "import sys; from tests import fuzz; from tests.fuzz import Case\n"
    code += "for case, kind, message, _ in fuzz.outcomes(eval(sys.argv[1])): print(kind, '|', case)"
    done = subprocess.run([sys.executable, "-c", code, repr(cases)], cwd=ROOT, capture_output=True, encoding="utf-8")
    expected = {f"{kind} | {fuzz.Case(*case)}" for kind, of in tried.items() for case in of}
    assert set(done.stdout.splitlines()) == expected, done.stderr[-2000:]


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
