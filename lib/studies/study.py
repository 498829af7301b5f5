"""Studies: named sets of searches, which a file plans as grids; and by which rules searches race
(`lib.engine.lockstep`), which the chapter steps_to_result judges on record.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections import UserDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from lib import Told, require
from lib.fields import Count, check, spec, unknown
from lib.studies.search import Search
from lib.workloads.catalogue import LIGHT

# --- races ----------------------------------------------------------------------------------------

BY_GOALS = {"race": 2.5}  # fields of a cell
# Wide, since at twice the steps a winner with Nesterov momentum is gone
BY_LOSSES = {"race": 3.0, "rungs": "losses"}
# times the factor, for the second race where nobody wins the first: its leader may stall short of
# the goal
WIDER = 4
SLOW_TO_START = ("muon",)  # training methods whose winners a race on losses loses
# a race that nobody can lose: an exact search of which the record says when losses fell, too
WATCHED = 1e6

# --- studies --------------------------------------------------------------------------------------

# What a toy trains, by how its trials stop
TOYS = {
    "goal": {"trials": 16, "hits": 2, "max_steps": 400},
    "budget": {"trials": 4, "max_steps": 64},
}
HEAVY_TOY = {"trials": 2, "hits": 2, "max_steps": 2}


@dataclass(frozen=True)
class Study:
    """A named set of searches, the most wanted first, each once; they are kept as a tuple.

    apart: of a question of its own, so that its searches are no further curves of the book.
    A search that several studies share is measured once.
    """

    name: str
    title: str
    searches: Iterable[Search]
    apart: bool = False

    def __post_init__(self):
        object.__setattr__(self, "searches", tuple(dict.fromkeys(self.searches)))

    def smoke(self) -> Study:
        """The same code path in seconds: one algorithm, three batch sizes, two sparsities, few
        trials and steps.

        Raises:
            ValueError: for a study without cells; and where examples are larger than the digits,
                for cells that run to a goal: chapters need one that is met, which takes minutes.
        """
        require(self.searches, "searches", self.searches, "at least one")
        first, *_ = self.searches
        light = first.work.light
        able = light or all(c.stop == "budget" for c in self.searches)
        allowed = (
            f"cached, or full with few trials, for {first.workload}; smoke is for examples"
        )
        require(
            able, "budget", "smoke", f"{allowed} of at most {LIGHT} numbers, as the digits are"
        )
        network = first.workload, first.algorithm
        alike = [c for c in self.searches if (c.workload, c.algorithm) == network]
        toys = []
        for cell in _thinned(alike):
            fields = TOYS[cell.stop] if light else HEAVY_TOY
            toys.append(replace(cell, replicate=0, split=0, **fields))
        return replace(self, searches=toys)


def _thinned(cells: Sequence[Search]) -> list[Search]:
    """Those of three batch sizes, from the median up, and of the ends of the sparsities."""
    sizes = sorted({c.batch_size for c in cells})
    sizes = sizes[len(sizes) // 2], sizes[len(sizes) * 3 // 4], sizes[-1]
    levels = sorted(c.sparsity for c in cells)
    levels = levels[0], levels[-1]
    return [c for c in cells if c.batch_size in sizes and c.sparsity in levels]


# --- grids ----------------------------------------------------------------------------------------

RANGE = re.compile(r"(\d+)\.\.(?:\*([2-9]|[1-9]\d+)\.\.)?(\d+)")
FIELDS = (*Search.__dataclass_fields__, "search", "examples", "least")  # of a grid
COUNT = Count(10**8)
RANGES = "a range that ends at its last number, such as 3..12 or 1..*2..1024"


def grid(**fields: object) -> Iterator[Search]:
    """All combinations of these fields' values, the first field the slowest.

    Args:
        **fields: of `Search`, each a value, or several in a tuple, list or range; text such as
            3..12, or 1..*2..1024 for powers of two, is a range. `search` stands for `replicate` and
            `split`: searches on splits of their own. `examples` and `least` stand for `max_steps`:
            the steps that so many examples make, and at least so many. `messages` may be a
            dictionary of fields of `Messages`, of which all combinations are meant, too.

    Raises ValueError as `Search`.
    """
    _known(fields, FIELDS)
    for chosen in _combinations(fields):
        if "search" in chosen:
            chosen["replicate"] = chosen["split"] = chosen.pop("search")
        if "examples" in chosen:
            limit = chosen.pop("examples"), chosen.pop("least", 1)
            chosen["max_steps"] = _steps(chosen.get("batch_size"), *limit)
        yield Search(**chosen)


def _known(fields: dict, names: Sequence[str]) -> None:
    """Raise ValueError that names the first field which there is not."""
    for name, value in fields.items():
        if name not in names:
            raise ValueError(unknown(name, value, names))


def _steps(batch_size: object, examples: object, least: object) -> int:
    """The steps that so many examples make, and at least so many."""
    for name, value in (("batch_size", batch_size), ("examples", examples), ("least", least)):
        check(name, value, COUNT)
    return max(examples // batch_size, least)


def _combinations(fields: dict) -> Iterator[dict]:
    axes = (_values(name, value) for name, value in fields.items())
    for values in itertools.product(*axes):
        yield dict(zip(fields, values))


def _values(name: str, value: object) -> Iterable:
    """The values of a field that one in a grid stands for."""
    if isinstance(value, (tuple, list, range)):
        return [one for part in value for one in _values(name, part)]
    if isinstance(value, dict):
        return _combinations(value)
    if isinstance(value, str) and (ends := RANGE.fullmatch(value)):
        return _range(name, value, *ends.groups("1"))
    return [value]


def _range(name: str, text: str, *ends: str) -> list[int]:
    first, factor, last = map(int, ends)
    numbers = [first]
    while numbers[-1] < last:
        numbers.append(max(numbers[-1] + 1, numbers[-1] * factor))
    require(numbers[-1] == last, name, text, RANGES)
    return numbers


# --- files of studies -----------------------------------------------------------------------------


@spec
class _Entry:
    """A study in a file."""

    title: str
    grids: list[dict]
    all: dict | None = None
    apart: bool = False


class _Mapping(dict):
    """A mapping in a file that knows the place of each of its keys: "FILE, line N"."""

    def __init__(self, loader: yaml.SafeLoader, node: yaml.MappingNode):
        super().__init__()
        self.places = {}
        for key, value in node.value:
            name = str(loader.construct_object(key))
            mark = key.start_mark
            place = f"{mark.name}, line {mark.line + 1}"
            if name in self:
                raise Told(f"{place}: {name} comes twice, first at {self.places[name]}")
            self[name] = loader.construct_object(value, deep=True)
            self.places[name] = place


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """Reads mappings as `_Mapping`, and nothing but plain values in them."""


_Loader.add_constructor("tag:yaml.org,2002:map", _Mapping)


def read(file: Path) -> dict[str, Study]:
    """The studies of a YAML file by name, in its order; its head says how they are written.

    Raises:
        ValueError: naming file and line, and the study, field, value and what is allowed.
    """
    with file.open(encoding="utf-8") as stream:
        try:
            entries = yaml.load(stream, _Loader)
        except yaml.YAMLError as error:
            raise Told(str(error)) from None
    require(isinstance(entries, _Mapping), str(file), entries, "studies by name")
    return {name: _study(name, entries) for name in entries}


class Studies(UserDict):
    """Studies by name, which a file is `read` for when the first is asked for."""

    def __init__(self, file: Path):
        self.file = file

    @functools.cached_property
    def data(self) -> dict[str, Study]:
        return read(self.file)


def _study(name: str, entries: _Mapping) -> Study:
    entry = entries[name]
    with _placed(name, entries.places[name], entry):
        require(isinstance(entry, _Mapping), name, entry, "a study's title and grids")
        _known(entry, [*_Entry.__dataclass_fields__])
        _Entry(**entry)
    shared = entry.get("all") or {}
    cells = []
    for fields in entry["grids"]:
        start = next(iter(fields.places.values()), entry.places["grids"])
        with _placed(name, start, fields, shared):
            cells += grid(**{**shared, **fields})
    return Study(name, entry["title"], cells, entry.get("apart", False))


@contextlib.contextmanager
def _placed(name: str, place: str, *mappings: object) -> Iterator[None]:
    """A ValueError names the place of its field in these mappings, or else this place, and the
    study.
    """
    try:
        yield
    except ValueError as error:
        field = str(error).partition(":")[0]
        places = (m.places[field] for m in mappings if isinstance(m, _Mapping) and field in m)
        raise Told(f"{next(places, place)}, study {name}: {error}") from None
