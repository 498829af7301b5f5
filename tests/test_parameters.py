"""A mistyped papermill parameter stops the chapter, and the error says what to write instead."""

from dataclasses import dataclass
from typing import Literal

import pytest

from lib.page import parameters


@dataclass(frozen=True)
class Chosen:
    batch_size: int
    learning_rate: float
    budget: Literal["cached", "smoke", "full"]


def notebook(**injected):
    """Globals of a chapter at its guard cell: setup, `begin`, the parameters cell, papermill's injected cell."""
    names = {"In": [], "Out": {}, "pd": parameters, "cores": 2}
    parameters.begin(names)
    return {**names, "batch_size": 64, "learning_rate": 0.1, "budget": "cached", **injected}


def test_the_defaults_pass_and_come_back_typed():
    assert parameters.guard(Chosen, notebook()) == Chosen(64, 0.1, "cached")
    assert type(parameters.guard(Chosen, notebook(learning_rate=1)).learning_rate) is float


def test_a_mistyped_name_is_named_with_its_nearest_match():
    with pytest.raises(ValueError, match="bach_size: unknown .*did you mean batch_size.*learning_rate, budget"):
        parameters.guard(Chosen, notebook(bach_size=32))


@pytest.mark.parametrize("injected", [{"cores": 4}, {"pd": "1"}, {"zzz": None}])
def test_a_name_that_the_chapter_already_uses_is_no_parameter_either(injected):
    with pytest.raises(ValueError, match="unknown parameter"):
        parameters.guard(Chosen, notebook(**injected))


@pytest.mark.parametrize(
    "injected, message",
    [
        ({"batch_size": "64"}, r"batch_size: '64' is not allowed; it must be a whole number \(int\)"),
        ({"batch_size": 64.0}, "batch_size: 64.0"),
        ({"batch_size": True}, "batch_size: True"),
        ({"learning_rate": float("nan")}, r"learning_rate: nan is not allowed; it must be a finite number \(float\)"),
        ({"budget": "chached"}, "budget: 'chached' is not allowed; it must be one of 'cached', 'smoke', 'full'"),
    ],
)
def test_a_mistyped_value_names_field_value_and_what_is_allowed(injected, message):
    with pytest.raises(ValueError, match=message):
        parameters.guard(Chosen, notebook(**injected))


def test_every_problem_is_reported_at_once():
    with pytest.raises(ValueError, match="bach_size.*budget: 3"):
        parameters.guard(Chosen, notebook(bach_size=32, budget=3))


def test_a_parameters_cell_without_a_field_is_an_error():
    names = notebook()
    del names["budget"]
    with pytest.raises(ValueError, match="budget: missing"):
        parameters.guard(Chosen, names)


def test_the_guard_cell_can_be_run_again_by_hand():
    names = notebook()
    parameters.guard(Chosen, names)
    names |= {"later": 3, "batch_size": 128}
    assert parameters.guard(Chosen, names).batch_size == 128
    names["batch_size"] = "128"
    with pytest.raises(ValueError, match="batch_size"):
        parameters.guard(Chosen, names)


def test_guard_without_begin_says_so():
    with pytest.raises(ValueError, match="begin"):
        parameters.guard(Chosen, {"batch_size": 64})


def test_an_unknown_name_is_refused_as_often_as_it_is_tried():
    names = notebook(bach_size=32)
    for _ in range(2):
        with pytest.raises(ValueError, match="bach_size"):
            parameters.guard(Chosen, names)


def test_a_list_is_passed_as_numbers_separated_by_spaces():
    assert parameters.numbers("sparsities", "0.0 0.9", float) == [0.0, 0.9]
    for text in "", "1 2.5", "1,2":
        with pytest.raises(ValueError, match=f"batch_sizes: '{text}' is not allowed; it must be numbers"):
            parameters.numbers("batch_sizes", text, int)
    for text, kind in (("64 16 64", int), ("0 0.0", float)):
        with pytest.raises(ValueError, match=f"x: '{text}' is not allowed; it must hold every number once"):
            parameters.numbers("x", text, kind)


@pytest.mark.parametrize(("injected", "kind", "expected"), [(64, int, [64]), (0.05, float, [0.05]), (1e-05, float, [1e-05])])
def test_a_list_of_one_number_may_come_as_that_number(injected, kind, expected):
    @dataclass(frozen=True)
    class Listed:
        batch_size: int
        learning_rate: float
        budget: str

    text = parameters.guard(Listed, notebook(budget=injected)).budget
    assert parameters.numbers("budget", text, kind) == expected
    with pytest.raises(ValueError, match=r"budget: True is not allowed; it must be text \(str\)"):
        parameters.guard(Listed, notebook(budget=True))


@dataclass(frozen=True)
class Counted:
    batch_size: parameters.Count
    learning_rate: float
    budget: str


@pytest.mark.parametrize("value", [0, -3, True, 2.0, "2"])
def test_a_count_is_a_whole_number_from_one(value):
    assert type(parameters.guard(Counted, notebook()).batch_size) is int
    with pytest.raises(ValueError, match=f"^batch_size: {value!r} is not allowed; it must be a whole number from 1$"):
        parameters.guard(Counted, notebook(batch_size=value))


def test_one_of_the_values_of_another_parameter():
    assert parameters.among("base", 16, [16, 64]) == 16
    with pytest.raises(ValueError, match="base: 7 is not allowed; it must be one of 16, 64"):
        parameters.among("base", 7, [16, 64])
