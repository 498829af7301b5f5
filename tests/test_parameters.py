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
    """Globals of a chapter at its guard cell: setup, `begin`, the parameters, papermill's cell."""
    names = {"In": [], "Out": {}, "pd": parameters, "cores": 2}
    parameters.begin(names)
    return {**names, "batch_size": 64, "learning_rate": 1, "budget": "cached", **injected}


def guarded(kind, value):
    """What a chapter with a field of this type makes of a value."""

    @dataclass(frozen=True)
    class Single:
        x: kind

    names = {}
    parameters.begin(names)
    return parameters.guard(Single, {**names, "x": value}).x


def test_the_defaults_pass_typed_among_what_a_notebook_keeps_for_itself():
    ipython = {"_": "1", "_i12": "x = 1", "_3": 4, "_oh": {}, "__doc__": "", "_iii": "", "___": 2}
    chosen = parameters.guard(Chosen, notebook(**ipython))
    assert vars(chosen) == {"batch_size": 64, "learning_rate": 1.0, "budget": "cached"}
    assert type(chosen.learning_rate) is float


@pytest.mark.parametrize(
    "injected, message",
    [
        ({"bach_size": 32}, "bach_size: 32 is unknown; did you mean batch_size"),
        ({"cores": 4}, "cores: 4 is unknown"),  # a name that the chapter already uses
        ({"batch_size": "64"}, "batch_size: '64' is not allowed; it must be a valid integer"),
        ({"learning_rate": math.nan}, "learning_rate: nan is not .* a finite number"),
        ({"budget": "full!"}, "budget: 'full!' is not allowed; .* 'cached', 'smoke' or 'full'"),
        ({"_batch_size": 1, "__private": 2}, "_batch_size: .*did you mean batch_size.*__private: "),
        ({"zzz": 3, "batch_size": 0, "budget": 3}, "batch_size: 0.*budget: 3.*zzz: 3"),
    ],
)
def test_every_mistyped_name_and_value_is_told_with_what_is_allowed(injected, message):
    with pytest.raises(ValueError, match=message):
        parameters.guard(Chosen, notebook(**injected))


def test_a_list_is_passed_as_values_separated_by_spaces():
    sparsities = parameters.Listed(parameters.SPARSITY)
    sizes = parameters.Listed(parameters.SIZE, all=None)
    assert guarded(sparsities, "-0.0 0.9") == [0.0, 0.9] and guarded(sizes, "all") is None
    assert guarded(sizes, 64) == [64] and guarded(sparsities, 1e-05) == [1e-05]
    for text in "", "1 2.5", "0 1", " ".join(map(str, range(1, 1000))), None, ["1"], "64 064":
        with pytest.raises(ValueError, match="^x: .* not allowed; "):
            guarded(sizes, text)
    names = parameters.Listed(parameters.NAME)
    assert guarded(names, "digits-mlp mnist-fnn-3") == ["digits-mlp", "mnist-fnn-3"]
    with pytest.raises(ValueError, match="^x: workload: 'digits-mpl' .* digits-mlp, .*file.py"):
        guarded(names, "digits-mlp digits-mpl")


@pytest.mark.parametrize("kind", [parameters.NAME, parameters.Method()])
def test_what_cannot_be_read_is_refused_in_one_line(kind, tmp_path):
    (tmp_path / "bad.py").write_text("raise ValueError('one\\ntwo')", encoding="utf-8")
    bad = f"{tmp_path / 'bad.py'}:task"
    for name in "digits-mpl", "no.py:task", "a" * 5000 + ".py:task", "\0.py:task", bad, 3:
        with pytest.raises(ValueError, match="^x: ") as refused:
            guarded(kind, name)
        assert "\n" not in str(refused.value) and len(str(refused.value)) < 12_000


def test_batches_fit_the_training_examples_and_the_workers():
    several = ["mnist-fnn-3", "digits-mlp-168"]
    chosen = SimpleNamespace(workload="digits-mlp-168", shown=several, one=100, some=[4, 256])
    parameters.fit(chosen, "one", workers=4)
    said = "^some: '4 256' is not allowed with shown 'mnist-fnn-3 digits-mlp-168'; .* 1 to 168"
    with pytest.raises(ValueError, match=said):
        parameters.fit(chosen, "some", "shown")
    with pytest.raises(ValueError, match="^one: '100' .* with workers 16; it must be a multiple"):
        parameters.fit(chosen, "one", workers=16)
