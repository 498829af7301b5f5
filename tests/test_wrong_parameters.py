"""Whatever is set wrongly in a chapter is refused by name, before anything is read or trained."""

import ast
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
    code = [c for c in json.loads(file.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
    sources = ["".join(c["source"]) for c in code]
    last = next((n for n, source in enumerate(sources) if "parameters.guard(" in source), None)
    tagged = next((n for n, c in enumerate(code) if "parameters" in c["metadata"].get("tags", [])), None)
    return sources[: (tagged or 0) + 1], sources[(tagged or 0) + 1 : (last or -1) + 1]


OPENINGS = {file.stem: opening(file) for file in sorted((ROOT / "chapters").glob("*.ipynb"))}
OPENINGS = {name: parts for name, parts in OPENINGS.items() if parts[1]}


def cases(chapter):
    """Wrong values of a chapter's parameters, and names that it does not have."""
    usual = {line.target.id: ast.literal_eval(line.value) for line in ast.parse(OPENINGS[chapter][0][-1]).body}
    types = {name: type(value) for name, value in usual.items()}
    every = [(name, value) for name in usual for value in WRONG if not (value == 1.5 and types[name] is float)]
    every += [(wrong, usual[name]) for name in usual for wrong in (f"{name}s", name.upper()) if wrong not in usual]
    return random.Random(chapter).sample(every, int(SHARE * len(every)))


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


def test_most_chapters_take_parameters():
    assert len(OPENINGS) >= 10
