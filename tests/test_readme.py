"""What the README tells people to type exists."""

import re
import shutil
import subprocess

import pytest

from lib import ROOT, studies, sweeps

README = (ROOT / "README.md").read_text()
COMMANDS = [
    line.split("#")[0].strip()
    for block in re.findall(r"```bash\n(.*?)```", README, re.S)
    for line in block.splitlines()
]


@pytest.mark.skipif(not shutil.which("make"), reason="no make")
@pytest.mark.parametrize("target", sorted(set(re.findall(r"make (\w+)", "\n".join(COMMANDS)))))
def test_make_knows_the_target(target):
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_papermill_lines_name_chapters_and_their_parameters():
    lines = [c for c in COMMANDS if c.startswith("papermill chapters/")]
    assert len(lines) >= 2
    for line in lines:
        chapter = ROOT / line.split()[1]
        for name in re.findall(r"-p (\w+)", line):
            assert f'"{name}: ' in chapter.read_text(), f"{chapter.name} has no parameter {name}"


def test_sweep_lines_name_studies_and_options():
    lines = [c for c in COMMANDS if c.startswith("python -m lib.sweeps run")]
    assert lines and all(line.split()[4] in studies.STUDIES for line in lines)
    with pytest.raises(SystemExit, match="0"):
        sweeps.main(["run", "--help"])


def test_every_path_of_the_table_exists():
    for path in re.findall(r"^\| `([\w.]+)/` \|", README, re.M):
        assert (ROOT / path).is_dir(), path


def test_the_book_names_no_place_of_ours():
    for file in [*ROOT.glob("*.*"), *(ROOT / "lib").rglob("*.py"), *(ROOT / "chapters").glob("*.ipynb")]:
        if file.suffix in {".py", ".md", ".yml", ".ipynb", ".toml", ".txt"}:
            assert not re.search(r"/(home|root|work|tmp)/", file.read_text()), file.name
