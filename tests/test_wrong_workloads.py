"""Some hundred wrong files of a reader's, every fault in every place where it is one.

Each is refused, and the message names the file, the place and, of a value, what is allowed.
"""

import itertools

import pytest

from lib import own
from lib.workloads import catalogue

START = """
import sys
import torch
from torch import nn
from lib.own import Metric, Own, Training

draw = torch.Generator().manual_seed(0)
x = torch.randn(60, 3, generator=draw)
y = (x.sum(1) > 0).long()

def build():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))

def loss(model, batch):
    return nn.functional.cross_entropy(model(batch[0]), batch[1])

def loaders(batch_size, seed):
    return [(x[:batch_size], y[:batch_size])]

given = {given}

def task():
    return {kind}(**given)
"""
GIVEN = {
    "model": "build",
    "train": "(x[:40], y[:40])",
    "validation": "(x[40:], y[40:])",
    "goals": "(0.1, 0.2)",
    "max_steps": "50",
}
# What is no value of most fields, and which fields take it all the same
VALUES = dict.fromkeys("3 -1 0 1.5 b'x' [1] {1} {} () float('nan') float('inf') object() x".split(), ())
VALUES |= dict.fromkeys(["(1, 2)", "('a', 'b')"], ())
VALUES |= {"True": ("decay",), "None": ("metric", "answers", "examples", "at_once")}
VALUES |= {"'x'": ("title",), "int": ("answers",)}
BOTH = ("model", "train", "validation", "goals", "title", "max_steps", "precision")
FIELDS = {
    "Own": (*BOTH, "decay", "task"),
    "Training": (*BOTH, "loss", "metric", "answers", "examples", "at_once"),
}
FITS = {("max_steps", "3"), ("at_once", "3")}  # a whole number from 1
TENSORS = {
    "[1.0] * {n}": "a list",
    "torch.randn({n}, 3).numpy()": "an array",
    "x[:0]": "no examples",
    "x[:{n}] / 0": "not finite",
    "x[:{n}].to_sparse()": "not dense",
    "x[:{n}].to('meta')": "elsewhere",
    "x[:{n} - 1]": "fewer than the others",
    "torch.tensor(1.0)": "without examples",
}
LABELS = {
    "y[:{n}].float()": "no whole numbers",
    "y[:{n}] - 1": "negative",
    "y[:{n}] + 5": "more classes than outputs",
    "y[:{n}, None]": "of two dimensions",
    "torch.zeros(0, dtype=torch.int64)": "no examples",
    "y[:{n} - 1]": "fewer than the inputs",
    "list(y[:{n}])": "a list",
    "y[:{n}].bool()": "truth values",
}
MODELS = {
    "raise KeyError('x')": "model.*(KeyError: 'x')",
    "sys.exit('bye')": "model.*(SystemExit: bye)",
    "return None": "model.*(NoneType)",
    "return [build()]": "model.*(list)",
    "return nn.ReLU()": "model.*(parameters|nn.Linear)",
    "return nn.Linear(3, 1 + int(torch.empty(1).random_()) % 2).double()": "",
    "return nn.Linear(4, 2)": "RuntimeError",
    "return nn.Sequential(nn.Linear(3, 4), nn.Linear(5, 2))": "RuntimeError",
    "return NET": "model.*(anew|shares)",
    "torch.manual_seed(0); return build()": "model.*same initialisation",
    "return build().requires_grad_(False)": "model.*(trained|train)",
    "return build().to('meta')": "model.*(meta)",
    "return nn.Sequential(build(), nn.LazyLinear(2))": "model.*(shape|Lazy|parameters)",
}
ENDS = {
    "raise ValueError('no data')": "ValueError: no data",
    "sys.exit('bye')": "SystemExit: bye",
    "return None": "returned value: NoneType",
    "return [1]": "returned value: list",
    "return given": "returned value: dict",
    "yield 1": "returned value: generator",
    "return {kind}()": "TypeError",
    "return {kind}(**given, colour=1)": "TypeError.*colour",
    "return {kind}(**given, model=build)": "TypeError.*model",
    "return unknown": "NameError",
    "import unheard_of": "ModuleNotFoundError",
    "return {kind}": "returned value: type",
}
GOALS = ("(0.2, 0.1)", "(0.1, 0.1)", "(-0.1,)", "(1.0,)", "(0.1, None)", "(0.1, '0.2')", "[0.1]",
         "(float('nan'),)", "(0.9,)",
         "(0.1, 0.1000000001)", "(True,)", "0.1", "{0.1}", "((0.1,),)", "(x,)")  # fmt: skip
FILES = {
    "def task(:\n": "SyntaxError",
    "\x00": "SyntaxError|null bytes|ValueError",
    "": "no function 'task'",
    "task = 3\n": "no function 'task'",
    "def other(): pass\n": "no function 'task' in the file; it has other",
    "import unheard_of\n": "ModuleNotFoundError",
    "raise OSError('gone')\n": "OSError: gone",
    "import sys; sys.exit('bye')\n": "SystemExit: bye",
    "def task(n): pass\n": "TypeError",
    "1 / 0\n": "ZeroDivisionError",
}


def cases():
    """What is wrong: the kind, its fields, the body of the last function, what precedes it, and the
    words to be found.
    """
    for kind, fields in FIELDS.items():
        for field, (value, fine) in itertools.product(fields, VALUES.items()):
            if field not in fine and (field, value) not in FITS:
                yield kind, {field: value}, None, "", field
        for part, n in (("train", 40), ("validation", 20)):
            for tensor in TENSORS:
                yield kind, {part: f"({tensor.format(n=n)}, y[:{n}])"}, None, "", part
            for labels in LABELS:
                yield kind, {part: f"(x[:{n}], {labels.format(n=n)})"}, None, "", ""
        for body, words in MODELS.items():
            # A pretrained network is one start for all
            if kind == "Own" or "manual_seed" not in body:
                before = f"NET = build()\n\ndef wrong():\n    {body}\n"
                yield kind, {"model": "wrong"}, None, before, words
        for body, words in ENDS.items():
            yield kind, {}, body.format(kind=kind), "", words
        for goals in GOALS:
            yield kind, {"goals": goals}, None, "", "goals"


def text_of(kind, fields, body, before):
    given = "dict(" + ", ".join(f"{k}={v}" for k, v in {**GIVEN, **fields}.items()) + ")"
    text = START.replace("{given}", given).replace("{kind}", kind)
    text = text.replace("given =", f"{before}\ngiven =")
    return text if body is None else text[: text.rindex("    return")] + f"    {body}\n"


WRONG = list(cases())


def refused(name, words):
    with pytest.raises(own.OwnError, match=f"(?s)mine.py.*{words}"):
        catalogue.workload(name)


def test_there_are_three_hundred():
    assert len(WRONG) + len(FILES) >= 300 and len({str(case) for case in WRONG}) == len(WRONG)


@pytest.mark.parametrize("kind", FIELDS)
def test_without_a_fault_it_is_accepted(write, kind):
    assert catalogue.workload(write(text_of(kind, {}, None, ""))).max_steps == 50


@pytest.mark.parametrize(("kind", "fields", "body", "before", "words"), WRONG)
def test_every_fault_is_refused_by_name(write, kind, fields, body, before, words):
    refused(write(text_of(kind, fields, body, before)), words)


@pytest.mark.parametrize("text", FILES)
def test_a_file_that_is_no_workload_is_refused_by_name(write, text):
    refused(write(text), FILES[text])
