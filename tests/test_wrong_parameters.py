"""Whatever is set wrongly in a chapter is refused by name, before anything is read or trained."""

import ast
import itertools
import json
import math
import random
import re

import pytest

from lib import ROOT

WRONG = [
    *(None, True, [], [1], {}, {"a": 1}, "", " ", "\n", "x", "x" * 100_000, "ünïcode ☃", "NaN"),
    *("0 x", "-", "None", math.nan, math.inf, -math.inf, 1.5),
]
SHARE = 0.2  # of all cases, drawn


def opening(file):
    """A chapter's code up to the cell that checks its parameters, and that of the parameters."""
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    sources = ["".join(cell["source"]) for cell in code]
    tagged = ["parameters" in cell["metadata"].get("tags", []) for cell in code].index(True)
    guard = ["parameters.guard(" in source for source in sources].index(True)
    return sources[: tagged + 1], sources[tagged + 1 : guard + 1]


FILES = sorted((ROOT / "chapters").glob("*.ipynb"))
OPENINGS = {f.stem: opening(f) for f in FILES if "parameters.guard(" in f.read_text("utf-8")}


def cases(chapter):
    """Wrong values of a chapter's parameters, and names that it does not have."""
    usual = {line.target.id: ast.literal_eval(line.value) for line in ast.parse(OPENINGS[chapter][0][-1]).body}
    pairs = list(itertools.product(usual, WRONG))
    pairs = [(name, value) for name, value in pairs if value != 1.5 or type(usual[name]) is not float]
    misspelt = ((wrong, value) for name, value in usual.items() for wrong in (f"{name}s", name.upper()))
    pairs += [(wrong, value) for wrong, value in misspelt if wrong not in usual]
    return random.Random(chapter).sample(pairs, int(SHARE * len(pairs)))


@pytest.mark.parametrize("chapter", OPENINGS)
def test_a_chapter_names_what_it_refuses(chapter):
    before, after = OPENINGS[chapter]
    for name, value in cases(chapter):
        names = {"__name__": "page"}
        for source in before:
            exec(source, names)
        names[name] = value
        with pytest.raises(ValueError) as refused:
            for source in after:
                exec(source, names)
        text = str(refused.value)
        assert "\n" not in text.strip() and re.search(rf"\b{name}: ", text), (name, value, text[:200])
        assert re.search("must be|allowed|did you mean|unknown", text), (name, value, text[:200])

    assert len(OPENINGS) >= 10
