"""Studies: named sets of searches, planned as grids in a file; and the rules of races
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

from lib import BookError, require
from lib.fields import Count, check, spec, unknown
from lib.studies.search import Search
from lib.workloads.catalogue import LIGHT

# --- races ----------------------------------------------------------------------------------------

BY_GOALS = {"race": 2.5}  # fields of a search
# Wide, since at twice the steps a winner with Nesterov momentum would be lost
BY_LOSSES = {"race": 3.0, "rungs": "losses"}
# Multiple of the factor for a second race if nobody wins the first, whose leader may stall short
# of the goal
WIDER = 4
SLOW_TO_START = ("muon",)  # training methods whose winners a race on losses loses
# A race that nobody can lose: an exact search whose record also says when losses fell
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
    """A named set of searches, the most wanted first, each once, kept as a tuple.

    apart: about a separate question, so that its searches are not further curves of the book.
    ample: its limits of steps are far above what its goals take, and count as usual.
    A search that several studies share is measured once.
    """

    name: str
    title: str
    searches: Iterable[Search]
    apart: bool = False
    ample: bool = False

    def __post_init__(self):
        object.__setattr__(self, "searches", tuple(dict.fromkeys(self.searches)))

    def renewed(self) -> Study:
        """The study with readers' workloads and methods as their files are now."""
        sources = {s: s.work.source or s.method.source for s in self.searches}
        return replace(
            self, searches=[replace(s) if file else s for s, file in sources.items()]
        )

    def smoke(self) -> Study:
        """The same code path in seconds: one algorithm, three batch sizes, two sparsities, few
        trials and steps.

        Raises:
            ValueError: for a study without searches, and for searches to a goal on examples larger
                than the digits: chapters need a goal that is met, which takes minutes.
        """
        require(self.searches, "searches", self.searches, "at least one")
        first = self.searches[0]
        light = first.work.light
        allowed = f"cached, or full with few trials, for {first.workload}; smoke needs examples"
        allowed += f" of at most {LIGHT} numbers, like the digits"
        to_budgets = all(s.stop == "budget" for s in self.searches)
        require(light or to_budgets, "budget", "smoke", allowed)
        network = first.workload, first.algorithm
        alike = [s for s in self.searches if (s.workload, s.algorithm) == network]
        sizes = sorted({s.batch_size for s in alike})
        sizes = sizes[len(sizes) // 2], sizes[len(sizes) * 3 // 4], sizes[-1]
        levels = {level(s.sparsity for s in alike) for level in (min, max)}
        toys = [
            replace(s, replicate=0, split=0, **(TOYS[s.stop] if light else HEAVY_TOY))
            for s in alike
            if s.batch_size in sizes and s.sparsity in levels
        ]
        return replace(self, searches=toys)


# --- grids ----------------------------------------------------------------------------------------

RANGE = re.compile(r"(\d+)\.\.(?:\*([2-9]|[1-9]\d+)\.\.)?(\d+)")
FIELDS = (*Search.__dataclass_fields__, "search", "examples", "least")  # of a grid
COUNT = Count(10**8)
RANGES = "a range that reaches its last number, such as 3..12 or 1..*2..1024"


def grid(**fields: object) -> Iterator[Search]:
    """All combinations of these fields' values, the first field the slowest.

    Args:
        **fields: of `Search`, each a value, or several in a tuple, list or range; text such as
            3..12, or 1..*2..1024 for powers of two, is a range. `search` sets both `replicate` and
            `split`: each search has its own split. `examples` and `least` set `max_steps`: the
            steps that take so many examples, and a lower limit. `messages` may be a dictionary of
            fields of `Messages`, all combinations of which are included, too.

    Raises ValueError as `Search`.
    """
    _refuse_unknown(fields, FIELDS)
    for chosen in _combinations(fields):
        if "search" in chosen:
            chosen["replicate"] = chosen["split"] = chosen.pop("search")
        if "examples" in chosen:
            sizes = {"batch_size": chosen.get("batch_size"), "examples": chosen.pop("examples")}
            sizes["least"] = chosen.pop("least", 1)
            batch_size, examples, least = (check(n, v, COUNT) for n, v in sizes.items())
            chosen["max_steps"] = max(examples // batch_size, least)
        yield Search(**chosen)


def _refuse_unknown(fields: dict, names: Sequence[str]) -> None:
    """Raise ValueError naming the first field that does not exist."""
    for name, value in fields.items():
        if name not in names:
            raise ValueError(unknown(name, value, names))


def _combinations(fields: dict) -> Iterator[dict]:
    axes = (_values(name, value) for name, value in fields.items())
    for values in itertools.product(*axes):
        yield dict(zip(fields, values))


def _values(name: str, value: object) -> Iterable:
    """The values of a field that a value in a grid stands for."""
    if isinstance(value, (tuple, list, range)):
        return [single for part in value for single in _values(name, part)]
    if isinstance(value, dict):
        return _combinations(value)
    if isinstance(value, str) and (ends := RANGE.fullmatch(value)):
        first, factor, last = map(int, ends.groups("1"))
        numbers = [first]
        while numbers[-1] < last:
            numbers.append(max(numbers[-1] + 1, numbers[-1] * factor))
        require(numbers[-1] == last, name, value, RANGES)
        return numbers
    return [value]


# --- files of studies -----------------------------------------------------------------------------


@spec
class _Entry:
    """A study in a file."""

    title: str
    grids: list[dict]
    all: dict | None = None
    apart: bool = False
    ample: bool = False


class _Mapping(dict):
    """A mapping read from a file, with the place of each key: "FILE, line N"."""

    def __init__(self, loader: yaml.SafeLoader, node: yaml.MappingNode):
        super().__init__()
        self.places = {}
        for key, value in node.value:
            name = str(loader.construct_object(key))
            place = f"{key.start_mark.name}, line {key.start_mark.line + 1}"
            if name in self:
                raise BookError(f"{place}: {name} comes twice, first at {self.places[name]}")
            self[name] = loader.construct_object(value, deep=True)
            self.places[name] = place


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """Reads mappings as `_Mapping`, with only plain values in them."""


_Loader.add_constructor("tag:yaml.org,2002:map", _Mapping)


def read(file: Path) -> dict[str, Study]:
    """The studies in a YAML file by name, in its order; its head says how they are written.

    Raises:
        ValueError: naming file and line, and the study, field, value and what is allowed.
    """
    with file.open(encoding="utf-8") as stream:
        try:
            entries = yaml.load(stream, _Loader)
        except yaml.YAMLError as error:
            raise BookError(str(error)) from None
    require(isinstance(entries, _Mapping), str(file), entries, "studies by name")
    return {name: _study(name, entries) for name in entries}


class Studies(UserDict):
    """Studies by name, `read` from a file when first used."""

    def __init__(self, file: Path):
        self.file = file

    @functools.cached_property
    def data(self) -> dict[str, Study]:
        return read(self.file)


def _study(name: str, entries: _Mapping) -> Study:
    entry = entries[name]
    with _naming(name, entries.places[name], entry):
        require(isinstance(entry, _Mapping), name, entry, "a study's title and grids")
        _refuse_unknown(entry, [*_Entry.__dataclass_fields__])
        about = _Entry(**entry)
    shared = entry.get("all") or {}
    searches = []
    for fields in entry["grids"]:
        start = next(iter(fields.places.values()), entry.places["grids"])
        with _naming(name, start, fields, shared):
            searches += grid(**{**shared, **fields})
    return Study(name, about.title, searches, about.apart, about.ample)


@contextlib.contextmanager
def _naming(name: str, place: str, *mappings: object) -> Iterator[None]:
    """Within the block, make ValueErrors name the study and the line of their field, or `place`."""
    try:
        yield
    except ValueError as error:
        field = str(error).partition(":")[0]
        places = (m.places[field] for m in mappings if isinstance(m, _Mapping) and field in m)
        raise BookError(f"{next(places, place)}, study {name}: {error}") from None
