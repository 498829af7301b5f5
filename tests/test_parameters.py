"""A mistyped papermill parameter stops the chapter, and the error says what to write instead."""

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Literal

import pytest

from lib.page import parameters


@dataclass(frozen=True)
class Chosen:
    batch_size: parameters.Count(512)
    learning_rate: parameters.Number("(0, 1]")
    budget: Literal["cached", "smoke", "full"]


def notebook(**injected):
    """Globals of a chapter at its guard cell: setup, `begin`, the parameters cell, papermill's injected cell."""
    names = {"In": [], "Out": {}, "pd": parameters, "cores": 2}
    parameters.begin(names)
    return {**names, "batch_size": 64, "learning_rate": 0.1, "budget": "cached", **injected}


def one(kind, value):
    """What a chapter with one field of this type gets of a value."""

    @dataclass(frozen=True)
    class Single:
        x: kind

    names = {}
    parameters.begin(names)
    return parameters.guard(Single, {**names, "x": value}).x


def test_the_defaults_pass_and_come_back_typed():
    assert parameters.guard(Chosen, notebook()) == Chosen(64, 0.1, "cached")
    assert type(parameters.guard(Chosen, notebook(learning_rate=1)).learning_rate) is float


def test_a_mistyped_name_is_named_with_its_nearest_match():
    with pytest.raises(ValueError, match="bach_size: unknown .*did you mean batch_size.*learning_rate, budget"):
        parameters.guard(Chosen, notebook(bach_size=32))


@pytest.mark.parametrize("injected", [{"cores": 4}, {"pd": "1"}, {"zzz": None}, {"_batch_size": 32}])
def test_a_name_that_the_chapter_already_uses_is_no_parameter_either(injected):
    with pytest.raises(ValueError, match="unknown parameter"):
        parameters.guard(Chosen, notebook(**injected))


def test_what_a_notebook_keeps_for_itself_is_no_unknown_parameter():
    own = {"_": "1", "__": "", "_i": "x", "_iii": "", "_i12": "x = 1", "_3": [1], "_ih": [], "_oh": {}, "_dh": [], "_exit_code": 0}
    assert parameters.guard(Chosen, notebook(**own)) == Chosen(64, 0.1, "cached")


@pytest.mark.parametrize(
    "injected, message",
    [
        ({"batch_size": "64"}, "batch_size: '64' is not allowed; it must be a whole number from 1 to 512"),
        ({"learning_rate": math.nan}, r"learning_rate: nan is not allowed; it must be a number in \(0, 1\]"),
        ({"budget": "chached"}, "budget: 'chached' is not allowed; it must be one of cached, smoke, full"),
    ],
)
def test_a_mistyped_value_names_field_value_and_what_is_allowed(injected, message):
    with pytest.raises(ValueError, match=message):
        parameters.guard(Chosen, notebook(**injected))


def test_every_problem_is_reported_at_once():
    with pytest.raises(ValueError, match="bach_size.*batch_size: 0.*budget: 3"):
        parameters.guard(Chosen, notebook(bach_size=32, batch_size=0, budget=3))


def test_the_guard_cell_can_be_run_again_by_hand():
    names = notebook()
    parameters.guard(Chosen, names)
    names |= {"later": 3, "batch_size": 128}
    assert parameters.guard(Chosen, names).batch_size == 128
    names["batch_size"] = "128"
    with pytest.raises(ValueError, match="batch_size"):
        parameters.guard(Chosen, names)


@pytest.mark.parametrize(
    ("interval", "inside", "outside"),
    [
        ("[0, 1)", [0, 0.5, 0.999, -0.0], [-1e-9, 1, 1.0, math.nan, math.inf, "0.5", True]),
        ("(0, 1]", [1, 1e-300], [0, -0.0, 1.1]),
        ("(0, 1e18]", [1e18, 10**18], [1e300, 10**400, -math.inf]),
    ],
)
def test_a_number_lies_in_its_interval(interval, inside, outside):
    for value in inside:
        assert repr(one(parameters.Number(interval), value)) == repr(abs(float(value)))
    for value in outside:
        with pytest.raises(ValueError, match="^x: .* is not allowed; it must be a number in .0, 1"):
            one(parameters.Number(interval), value)


def test_a_list_is_passed_as_numbers_separated_by_spaces():
    sparsities, sizes = parameters.Numbers(parameters.SPARSITY), parameters.Numbers(parameters.SIZE)
    assert one(sparsities, "0.0 0.9") == [0.0, 0.9]
    assert one(sizes, 64) == [64] and one(sparsities, 1e-05) == [1e-05]
    for text in "", "1 2.5", "1,2", "0 1", " ".join(map(str, range(1, 1000))), None, ["1"], True:
        with pytest.raises(ValueError, match="^x: .* not allowed; it must be whole numbers from 1 to 1000000, separated by spaces"):
            one(sizes, text)
    for text in "64 16 64", "64 064":
        with pytest.raises(ValueError, match="is there twice"):
            one(sizes, text)
    with pytest.raises(ValueError, match=r"'0.5 1.5' .* it must be numbers in \[0, 1\), .* \('1.5' is none\)"):
        one(sparsities, "0.5 1.5")


def test_names_are_of_workloads_or_of_those_allowed():
    assert one(parameters.Names(), "digits-mlp mnist-fnn-3") == ["digits-mlp", "mnist-fnn-3"]
    assert one(parameters.Names(("top-k", "rand-k")), "rand-k") == ["rand-k"]
    for text in "", "digits-mlp digits-mlp", "digits-mpl", 3, None:
        with pytest.raises(ValueError, match="^x: .* is not allowed; .* digits-mlp, .*file.py:function"):
            one(parameters.Names(), text)
    with pytest.raises(ValueError, match=r"^x: 'top-q' is not allowed; it must be names .*: top-k, rand-k \('top-q' is none\)$"):
        one(parameters.Names(("top-k", "rand-k")), "top-q")


def test_a_workload_that_cannot_be_read_is_refused_in_one_line(tmp_path):
    (tmp_path / "bad.py").write_text("raise ValueError('one\\ntwo')", encoding="utf-8")
    for name in ("digits-mpl", "no.py:task", "a" * 5000 + ".py:task", "\0.py:task", f"{tmp_path / 'bad.py'}:task", None, 3):
        with pytest.raises(ValueError, match="^(x: .*not allowed|workload: .*allowed)") as refused:
            one(parameters.Name(), name)
        assert "\n" not in str(refused.value) and len(str(refused.value)) < 12_000


def test_a_long_value_is_cut():
    for value in "x" * 10**6, ["x"] * 10**6, 10**5000:
        with pytest.raises(ValueError) as refused:
            parameters.guard(Chosen, notebook(batch_size=value))
        assert len(str(refused.value)) < 300


def test_one_of_the_values_of_another_parameter():
    assert parameters.among("base", 16, [16, 64]) == 16
    with pytest.raises(ValueError, match="base: 7 is not allowed with batch_sizes '16 64'; it must be one of 16, 64"):
        parameters.among("base", 7, [16, 64], batch_sizes="16 64")


def test_batches_fit_the_training_examples_and_the_workers():
    chosen = SimpleNamespace(workload="digits-mlp-168", workloads_shown=["mnist-fnn-3", "digits-mlp-168"], one=100, some=[4, 256])
    parameters.fit(chosen, "one", workers=4)
    for names, told in ("workload", "digits-mlp-168"), ("workloads_shown", "mnist-fnn-3 digits-mlp-168"):
        said = f"^some: '4 256' is not allowed with {names} '{told}'; it must be from 1 to 168"
        with pytest.raises(ValueError, match=said):
            parameters.fit(chosen, "some", names)
    with pytest.raises(ValueError, match="^one: 100 is not allowed with workers 16; it must be a multiple of workers$"):
        parameters.fit(chosen, "one", workers=16)
