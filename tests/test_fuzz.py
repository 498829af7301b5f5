"""A sample of `python -m tests.fuzz`: what must be refused is refused by name, in every chapter."""

import subprocess
import sys

from lib import ROOT
from tests import fuzz

OWN = {"workload": "chapters/own/next_letter.py:next_letter", "trials": 32}
ONCE = [  # what once ended in a raw error
    (fuzz.RAN, "steps_to_result", OWN),
    (fuzz.LACKING, "sparsity", {"trials": 4}),
    (fuzz.REFUSED, "operator_cost", {"compute": -1}),
]


def test_wrong_parameters_are_refused_by_name_in_every_chapter():
    expected = [(fuzz.Case(chapter, given), kind) for kind, chapter, given in ONCE]
    expected += [(case, fuzz.REFUSED) for name in fuzz.NAMES for case in fuzz.cases(name, 0.01)]
    assert len(expected) > 20, "hardly any case is tried"
    code = "import sys; from math import inf, nan; from tests import fuzz\n"
    code += "from tests.fuzz import Case\n"
    code += "for case, kind, _ in fuzz.outcomes(eval(sys.stdin.read())): print(kind)"
    asked = repr([case for case, _ in expected])
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, input=asked, capture_output=True, encoding="utf-8")
    found = done.stdout.splitlines()
    assert len(found) == len(expected), done.stderr[-2000:]
    pairs = zip(expected, found, strict=True)
    assert {str(case): kind for (case, right), kind in pairs if kind != right} == {}
