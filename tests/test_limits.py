"""Numbers that make no sense are refused by name wherever a reader can give them."""

import functools

import numpy as np
import pytest

from chapters.batch_size_is_data_parallelism.parallel_runs import Run
from chapters.gradients import energy_bounds as bounds
from lib.analysis.hardware import Hardware
from lib.messages import Messages
from lib.methods.spaces import Interval, draw
from lib.studies import study
from lib.studies.search import Search

NAN, INF, HUGE = float("nan"), float("inf"), 10**12


def _search(**given):
    return Search("digits-mlp", **{"batch_size": 64, **given})


FIELDS = [  # what is called, a field, and values that it refuses
    (_search, "batch_size", (0, HUGE, 2.0, np.int64(3))),  # records hold Python's numbers
    (_search, "messages", ("dense",)),
    (_search, "tirals", (4,)),
    (functools.partial(Messages, 4, "top-k"), "density", (0, 1.1, NAN, "0.1")),
    (Hardware, "devices", (0,)),
    (Hardware, "throughput", (0, INF)),
    (Run(4).shard, "rank", (4,)),
    (functools.partial(draw, "lee2021", trials=4), "algorithm", ("lion",)),
    (functools.partial(Interval, 0.5), "high", (0.1,)),
    (bounds.classical, "density", (NAN,)),
]


@pytest.mark.parametrize(("call", "field", "values"), FIELDS, ids=range(len(FIELDS)))
def test_a_field_refuses_what_it_cannot_be(call, field, values):
    for value in values:
        with pytest.raises(ValueError, match=rf"^{field}: .*allowed"):
            call(**{field: value})


PLANNED = """\
first:
  title: "First"
  all: {workload: digits-mlp, sparsity: [0, 0.9], hits: 1}
  grids:
    - {search: [3..5, 9], batch_size: 4..*4..64, messages: {workers: 4, density: [0.1, 0.01]}}
    - {sparsity: 0.9, batch_size: 8, algorithm: sgd}
"""


@pytest.fixture
def planned(tmp_path):
    """Reads a file of studies: PLANNED with a part of it replaced."""

    def read(part="", by=""):
        file = tmp_path / "studies.yaml"
        file.write_text(PLANNED.replace(part, by) if part else PLANNED, encoding="utf-8")
        return study.read(file)

    return read


def test_a_grid_in_a_file_is_all_combinations_of_its_fields(planned):
    *cells, last = planned()["first"].searches
    assert last == Search("digits-mlp", 8, algorithm="sgd", sparsity=0.9, hits=1)
    assert len(set(cells)) == len(cells) == 2 * 4 * 3 * 2 and {c.hits for c in cells} == {1}
    assert {(c.replicate, c.split) for c in cells} == {(n, n) for n in (3, 4, 5, 9)}
    assert {c.batch_size for c in cells} == {4, 16, 64}
    assert {c.messages.density for c in cells} == {0.1, 0.01}
    assert [c.sparsity for c in cells] == [0] * 24 + [0.9] * 24, "the first field is the slowest"


WRONG = [  # a part of PLANNED, what replaces it, the line, and what is said of it
    ("hits: 1", "hist: 1", 3, "hist: 1 is unknown; did you mean hits"),
    ("digits-mlp", "digits-mpl", 3, "workload: 'digits-mpl' is not allowed; .* digits-mlp"),
    ("size: 8", "size: 0", 6, "batch_size: 0 is not allowed; it must be a whole number from 1 to"),
    ("4..*4..64", "64..4", 5, "batch_size: '64..4' is not allowed; it must be a range"),
    ("4..*4..64", "4..*4..65", 5, r"batch_size: '4..\*4..65' is not allowed; it must be a range"),
    ("workers: 4", "by_layer: 2", 5, "messages: by_layer: 2 is not allowed; it must be a valid boolean"),
    ("title", "titel", 2, "titel: 'First' is unknown; did you mean title"),
    ("workload: digits-mlp, ", "", 5, "workload: missing"),
    ("    - {s", "    - [s", 5, ""),  # not YAML
]


@pytest.mark.parametrize(("part", "by", "line", "message"), WRONG, ids=[by for _, by, *_ in WRONG])
def test_what_is_wrong_in_a_file_of_studies_is_told_with_its_line(planned, part, by, line, message):
    place = rf'studies.yaml"?, line {line}, '
    with pytest.raises(ValueError, match=f"{place}(study first: {message}|column)"):
        planned(part, by)


def test_no_study_and_no_field_comes_twice(planned):
    with pytest.raises(ValueError, match="line 7: first comes twice, first at .*line 1"):
        planned("algorithm: sgd}\n", "algorithm: sgd}\nfirst:\n  title: again\n")
    with pytest.raises(ValueError, match="line 6: sparsity comes twice, first at .*line 6"):
        planned("batch_size: 8", "sparsity: 0, batch_size: 8")
