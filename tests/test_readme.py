"""What the README tells people to type exists."""

import re
import struct

import pandas as pd
import pytest

import lib.__main__ as command
from chapters.intro import one_curve
from lib import ROOT
from lib.claims import front
from lib.measuring import runner, sweeps
from lib.probes import replays
from lib.records import results

README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = (ROOT / "chapters" / "how_the_code_works.md").read_text(encoding="utf-8")
COMMANDS = [
    line.split("#")[0].strip()
    for block in re.findall(r"```bash\n(.*?)```", README + CODE, re.S)
    for line in block.splitlines()
]


def test_it_is_short_and_shows_the_curve_that_the_records_have():
    assert len(README.splitlines()) <= 120
    (picture,) = re.findall(r"!\[[^]]+\]\((\S+)\)", README)
    head = (ROOT / picture).read_bytes()[:24]
    assert head[1:4] == b"PNG" and struct.unpack(">II", head[16:]) == (1200, 630)
    values = one_curve.findings(one_curve.steps(front.collapsed()))
    assert f"**{values['curves']} curves, one shape.**" in README
    share = values["fifth"].replace("\u00a0", " ")
    assert f"{share} of {values['points']} points" in README


def test_the_table_in_one_line_has_the_steps_of_every_batch_size():
    (line,) = re.findall(r"^print\((pd\.read_csv.*)\)$", README, re.M)
    steps = eval(line.replace('"data/', f'"{ROOT}/data/'), {"pd": pd})
    assert {0.0, 0.9} <= set(steps) and (steps[0.0].loc[[1, 64]] > steps[0.0].loc[1024]).all()


def test_papermill_lines_name_chapters_and_their_parameters():
    lines = [c for c in COMMANDS if c.startswith("papermill chapters/")]
    assert len(lines) >= 2
    for line in lines:
        chapter = ROOT / line.split()[1]
        for name in re.findall(r"-p (\w+)", line):
            text = chapter.read_text(encoding="utf-8")
            assert f'"{name}: ' in text, f"{chapter.name} has no parameter {name}"


WORK = [(sweeps, "run"), (results, "status"), (replays, "run"), (runner, "run")]
LINES = [c for c in COMMANDS if c.startswith("python -m lib ") and "--help" not in c]


@pytest.mark.parametrize("line", LINES)
def test_a_line_that_measures_starts_what_it_says(line, monkeypatch):
    """Up to the work itself: its arguments must be known to the command."""
    started = []
    for module, name in WORK:
        start = lambda *_, name=name, **__: started.append(name) or pd.DataFrame()  # noqa: E731
        monkeypatch.setattr(module, name, start)
    monkeypatch.setattr(command, "usable", str)  # there may be no GPU here
    arguments = line.removeprefix("python -m lib ").split()
    command.main(arguments)
    assert started or arguments == ["list"]
    with pytest.raises(SystemExit, match="2"):
        command.main([*arguments, "--unknown"])


def test_the_book_names_no_place_of_ours():
    kinds = ".py", ".md", ".yml", ".ipynb", ".toml", ".txt"
    top = [file for file in ROOT.glob("*.*") if file.suffix in kinds]
    for file in [*top, *ROOT.glob("lib/**/*.py"), *ROOT.glob("chapters/*.ipynb")]:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"/(home|root|work|tmp)/", text), file.name
