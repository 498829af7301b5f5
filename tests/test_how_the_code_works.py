"""The page for newcomers: a search goes its way, examples run, a chapter is one folder."""

import importlib.util
import json
import operator
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

import nbformat
import pytest

from chapters.three_regimes import regime_figures
from lib import ROOT
from lib.analysis import goals, scaling
from lib.claims import cache, claim, judging
from lib.measuring import sweeps
from lib.page import boxes, charts, parameters, prose
from lib.records import on_record, results
from lib.studies import plans
from lib.studies.study import Study
from tests.test_chapters import papermill

PAGE = (ROOT / "chapters" / "how_the_code_works.md").read_text(encoding="utf-8")
WALK, GUIDE = PAGE.split("## Add a training method")
# A line such as "- `lib/studies/cells.py`: `Cell`", as (path, names), in the page's order.
LINES = [
    (path, re.findall(r"`([^`]+)`", names))
    for path, names in re.findall(r"^- `([^`]+)`(.*)$", WALK, re.M)
]
# An example's place, told by its first line, and its text.
EXAMPLES = {
    place: f"# {place}\n{text}"
    for place, text in re.findall(r"^```python\n# (\S+)\n(.*?)^```$", PAGE, re.M | re.S)
}
METHOD, WORKLOAD = "chapters/own/unit_sgd.py", "chapters/own/odd_digits.py"
CLAIMS, EXPERIMENTS = "chapters/large_batches/claims.py", "chapters/large_batches/experiments.py"
NOTEBOOK = "chapters/large_batches.ipynb"


def test_every_path_that_the_page_names_exists_or_is_an_example():
    paths = set(re.findall(r"[\w./-]+/[\w.-]+\.(?:py|ipynb|json|md)\b", PAGE)) - {
        "_build/runs/out.ipynb"
    }
    assert len(paths) > 25
    assert {path for path in paths if not (ROOT / path).exists()} == set(EXAMPLES)


@pytest.fixture(scope="module")
def called(tmp_path_factory):
    """What one search calls until its figure stands: (path, name) -> place of its first call."""
    folder, found = tmp_path_factory.mktemp("walk"), {}

    def watch(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(ROOT)):
            path = os.path.relpath(frame.f_code.co_filename, ROOT).replace(os.sep, "/")
            found.setdefault((path, frame.f_code.co_qualname), len(found))

    with pytest.MonkeyPatch.context() as patch:
        # One claim of this search's curve stands for all claims of all curves, which take a minute.
        every = judging.registered
        patch.setattr(judging, "registered", lambda: {"L1": every()["L1"]})
        patch.setattr(cache, "_folders", lambda: [folder / "claims"])
        before = sys.getprofile()
        sys.setprofile(watch)
        try:
            walk(folder / "data", patch)
        finally:
            sys.setprofile(before)
    return found


@dataclass(frozen=True)
class Parameters:
    workload: parameters.Name()
    trials: parameters.TRIALS


def walk(folder, patch):
    """A search of digits, trained into a folder; then a curve on record, a claim, a figure."""
    namespace = {}
    parameters.begin(namespace)
    namespace |= {"workload": "digits-mlp", "trials": 4}
    chosen = parameters.guard(Parameters, namespace)
    asked = on_record.grid(
        chosen.workload, [64], ["momentum"], [0.0], trials=chosen.trials, max_steps=30, replicate=7
    )
    planned = plans.study("digits")
    assert set(asked.cells).isdisjoint(planned.cells), (
        "a search of this test's own, so that it has no record"
    )
    assert len(sweeps.results(asked, "full", folder=folder)) == 4

    key = operator.attrgetter("workload", "algorithm", "sparsity", "replicate")
    one = tuple(c for c in planned.cells if key(c) == ("digits-mlp", "momentum", 0, 0))
    trials = goals.at_goals(results.read(Study("one", "One curve", one)))
    points = scaling.across_replicates(scaling.steps_to_result(trials))
    summary, curves = scaling.summaries(trials)
    patch.setitem(judging.PROVIDED, "curves", lambda: curves)
    judged = judging.judge()["L1"]
    assert [group.name for group in judged.groups] == ["MLP on digits, momentum"]
    charts.enable()
    searches = trials.groupby(
        ["sparsity", "batch_size", "goal", "split"], as_index=False
    ).steps.min()
    slider = charts.goal_slider(sorted(points.goal.unique()), points.goal.iloc[0])
    chart = regime_figures.regimes_chart(
        scaling.label(points.assign(trials=100)), searches, summary, slider
    )
    shown = prose.figure(
        chart, "One curve", "MLP on digits.", "fig-walk", "Steps to result against batch size."
    )
    assert 'id="fig-walk"' in shown
    assert "MLP on digits, momentum" in boxes.claim(judged)
    assert "11 of 11 searches" in boxes.provenance(trials)


def first_call(called, path, name):
    """When a function, or any method of a class, was first called; None if never."""
    own = [
        at
        for (file, spelt), at in called.items()
        if file == path and f"{spelt}.".startswith(f"{name}.")
    ]
    return min(own, default=None)


def walked():
    """The functions that the walk names, in its order; a notebook and a constant are not called."""
    return [(path, name) for path, names in LINES for name in names if not name.isupper()]


def test_a_search_calls_every_function_that_the_walk_names(called):
    assert [step for step in walked() if first_call(called, *step) is None] == []


def test_a_search_enters_the_steps_in_their_order(called):
    """By the function that each step names first; others, as `record`, may be asked before."""
    steps = [
        re.search(r"^- `([^`]+\.py)`: `([^`]+)`", text, re.M).groups()
        for text in WALK.split("\n### ")[1:]
    ]
    firsts = [first_call(called, *step) for step in steps]
    assert len(firsts) == 9 and firsts == sorted(firsts)


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes an example into an empty folder, the current one; returns its name there."""
    monkeypatch.chdir(tmp_path)

    def write(place):
        file = tmp_path / place.rpartition("/")[2]
        file.write_text(EXAMPLES[place], encoding="utf-8")
        return file.name

    return write


def test_the_method_of_the_page_learns_digits(written, tmp_path):
    name = f"{written(METHOD)}:unit_sgd"
    study = on_record.grid("digits-mlp", [64], [name], [0.0, 0.9], trials=8, hits=1, max_steps=300)
    frame = sweeps.results(study, "full", folder=tmp_path / "data")
    assert (frame.groupby("sparsity").best_error.min() < 0.3).all(), "chance is 0.9"
    assert all(
        file.relative_to(tmp_path / "data").parts[0] == "own"
        for file in (tmp_path / "data").rglob("*.csv")
    )


def test_the_workload_of_the_page_meets_its_goal(written, tmp_path):
    name = f"{written(WORKLOAD)}:odd_digits"
    study = on_record.grid(name, [64], ["momentum"], [0.0], trials=8, hits=1)
    frame = sweeps.results(study, "full", folder=tmp_path / "data")
    assert frame.steps.notna().any() and (frame.goal == 0.05).all()


def loaded(place, tmp_path):
    """An example as a module."""
    file = tmp_path / place.rpartition("/")[2]
    file.write_text(EXAMPLES[place], encoding="utf-8")
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_file_location("example", file)
    )
    sys.modules["example"] = module  # dataclasses ask for it
    module.__spec__.loader.exec_module(module)
    return module


@pytest.fixture
def own_registry(monkeypatch):
    """The registry of claims as it was, once the test is over."""
    monkeypatch.setattr(claim.REGISTRY, "claims", dict(claim.REGISTRY.claims))
    monkeypatch.setattr(claim.REGISTRY, "functions", dict(claim.REGISTRY.functions))
    yield claim.REGISTRY
    sys.modules.pop("example", None)


def test_the_claim_of_the_page_measures_what_its_rule_says(tmp_path, own_registry):
    """Against the records themselves: the mean ratio of the fewest steps of every search."""
    example = loaded(CLAIMS, tmp_path)
    study = on_record.grid("digits-mlp", list(example.SIZES), ["sgd", "momentum"], [0.0])
    trials = goals.at_goals(results.read(study))
    (group,) = example.sgd_over_momentum(scaling.curves(trials))
    best = trials.groupby(["algorithm", "batch_size"]).steps.min()
    expected = ((best["sgd"] / best["momentum"]).prod()) ** (1 / 3)
    assert (
        group.n == 1
        and group.effect == pytest.approx(expected)
        and group.low < group.effect < group.high
    )
    assert claim.judged(own_registry.claims["S99"], [group]).verdict
    assert example.sgd_over_momentum({})[0].n == 0, "where nothing is measured"


def test_the_experiment_of_the_page_is_measured_once(tmp_path, own_registry):
    """A network that knows nothing yet: ln 10 nats, as of ten equal chances, or somewhat more."""
    example = loaded(EXPERIMENTS, tmp_path)
    (collection,) = example.EXPERIMENTS.values()
    what = example.FreshLoss(seeds=8)
    collection.run([what], tmp_path)
    found = collection.results([what], tmp_path)
    assert len(found) == 8 and 2.2 < found.loss.mean() < 3.5
    assert collection.missing([what], tmp_path) == []
    assert [one.seeds for one in collection.planned()] == [20]


ASKED = """
import contextlib, dataclasses, io, json, lib
from lib.__main__ import gathered, main
from lib.claims.judging import registered

with contextlib.redirect_stdout(io.StringIO()) as listed:
    main(["list"])
print(json.dumps({
    "claims": {key: dataclasses.asdict(claim) for key, claim in registered().items()},
    "experiments": {name: one.help for name, one in gathered().items()},
    "list": {line.split()[0]: line for line in listed.getvalue().splitlines() if line},
    "code": lib.SOURCE,
}))
"""


def copy(folder):
    """Copy the book's code and notebooks, without records, into a folder; returns the folder."""
    left_out = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    for name in ("lib", "chapters"):
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    return folder


def called_in(tree, *arguments):
    """What a new process in the copy prints; compiled code is kept, beside the copy."""
    clean = {**os.environ, "PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": str(tree / "compiled")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=clean, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def told_in(tree):
    """The copy's claims, experiments, lines of `list`, and the digest of its measuring code."""
    return json.loads(called_in(tree, "-c", ASKED))


def without(told, claims, experiments):
    """The same with some claims and experiments less."""
    gone = {"claims": claims, "experiments": experiments, "list": experiments}
    left = {
        part: {k: one for k, one in told[part].items() if k not in names}
        for part, names in gone.items()
    }
    return {**told, **left}


def as_notebook(text):
    """An example as a notebook: a cell at each # %%, the second with the parameters."""
    cells = [nbformat.v4.new_code_cell(part.strip()) for part in text.split("# %%\n")[1:]]
    cells[1].metadata["tags"] = ["parameters"]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return nbformat.v4.new_notebook(cells=cells, metadata=kernel)


def add_chapter(tree):
    """The page's chapter, put in by hand as the page says."""
    (tree / CLAIMS).parent.mkdir()
    for place in (CLAIMS, EXPERIMENTS):
        (tree / place).write_text(EXAMPLES[place], encoding="utf-8")
    nbformat.write(as_notebook(EXAMPLES[NOTEBOOK]), tree / NOTEBOOK)


SIDE = (
    *("batch_ramps", "decay_and_batch", "federated", "leakage", "local_steps", "lora"),
    *("moving_masks", "noise_in_norms", "receptive_fields", "spiking"),
)


def test_chapters_come_and_go_with_their_folders(tmp_path):
    """The page's chapter is put in and all side studies are taken out: nothing else changes."""
    tree = copy(tmp_path)
    before = told_in(tree)
    for side in SIDE:
        shutil.rmtree(tree / "chapters" / side)
        (tree / "chapters" / f"{side}.ipynb").unlink()
    add_chapter(tree)
    told = told_in(tree)
    claims = {key for key, one in before["claims"].items() if one["chapter"] in SIDE}
    assert {before["claims"][key]["chapter"] for key in claims} == {*SIDE}
    files = [importlib.import_module(f"chapters.{side}.experiments") for side in SIDE]
    experiments = {name for file in files for name in file.EXPERIMENTS}
    assert told["claims"]["S99"]["chapter"] == "large_batches" and "fresh-losses" in told["list"]
    assert without(told, {"S99"}, {"fresh-losses"}) == without(before, claims, experiments)


def test_the_chapter_of_the_page_is_made_of_its_records(tmp_path):
    """As papermill runs it, with the records of one network and no other chapter's folder."""
    tree = copy(tmp_path)
    for folder in (tree / "chapters").iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)
    add_chapter(tree)
    place = "data/digits/digits-mlp"
    shutil.copytree(ROOT / place, tree / place)
    done = papermill(tree, "large_batches")
    assert done.returncode == 0, done.stderr[-2000:]
    shown = json.dumps(nbformat.read(tree / "out.ipynb", 4))
    assert "vl-chart" in shown and "6 of 6 searches" in shown
    assert "SGD takes" in shown and "nan times" not in shown
