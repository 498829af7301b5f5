"""Any training of PyTorch runs from a short file, exact and resumable, or is refused by name."""

import textwrap

import numpy as np
import pytest
import torch
from torch import nn

from lib import ROOT, methods
from lib.engine import lockstep, trainings
from lib.measuring import one_cell, sweeps
from lib.methods.optimisers import Schedule
from lib.records.on_record import grid
from lib.studies.cells import Cell

START = """
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from lib.own import Metric, Training
from lib.methods.optimisers import Optimiser, Schedule

draw = torch.Generator().manual_seed(0)
x = torch.randn(120, 4, generator=draw)
y = (x.sum(1) > 0).long()
words = torch.randint(6, (120, 5), generator=draw)
usual = dict(goals=(0.15, 0.25), max_steps=60)
given = dict(train=(x[:80], y[:80]), validation=(x[80:], y[80:]), **usual)
def mlp(*more, inputs=4, outputs=2):
    return nn.Sequential(nn.Linear(inputs, 16), *more, nn.ReLU(), nn.Linear(16, outputs))

"""
KINDS = {
    "batch normalisation and dropout": """
        def task(): return Training(lambda: mlp(nn.BatchNorm1d(16), nn.Dropout(0.2)), **given)""",
    "a mask in a buffer, and a tied head without bias, registered first": """
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.head, self.words = nn.Linear(16, 6, bias=False), nn.Embedding(6, 16)
                self.head.weight = self.words.weight
                self.register_buffer("mask", torch.ones(5, 5).tril(), persistent=False)

            def forward(self, ids):
                return self.head((self.mask @ self.words(ids) / 9 + self.words(ids.flip(1))) / 4)

        def task():
            return Training(Tied, train=(words[:80], words[:80].flip(1)), loss="tokens",
                            validation=(words[80:], words[80:].flip(1)), goals=(0.1, 1.7),
                            max_steps=60)""",
    "multi-label": """
        def task():
            z = (x[:, :3] > 0).float()
            return Training(lambda: mlp(outputs=3), train=(x[:80], z[:80]), loss="multi-label",
                            validation=(x[80:], z[80:]), **usual)""",
    "one logit": """
        def task(): return Training(lambda: mlp(outputs=1), loss="binary", **given)""",
    "a Dataset with augmentation": """
        class Noisy(Dataset):
            def __len__(self): return 80
            def __getitem__(self, i): return x[i] + 0.1 * torch.randn(4), y[i]

        def task(): return Training(mlp, **{**given, "train": Noisy()})""",
    "loaders": """
        def task():
            def train(batch_size, seed):
                pairs = [(x[i], int(y[i])) for i in range(80)]
                return DataLoader(pairs, batch_size, shuffle=True, drop_last=True)
            return Training(mlp, examples=80, **{**given, "train": train})""",
    "several inputs in a dictionary, logits in another": """
        class Two(nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.other = nn.Linear(4, 8), nn.Embedding(6, 8)
                self.head = nn.Linear(8, 2)

            def forward(self, features, ids):
                hidden = (self.one(features) + self.other(ids).mean(1)).relu()
                return {"logits": self.head(hidden), "hidden": hidden}

        def task():
            parts = [{"features": x[at], "ids": words[at], "labels": y[at]}
                     for at in (slice(80), slice(80, 120))]
            return Training(Two, *parts, **usual)""",
}
FIRST = next(iter(KINDS))
METHOD = """
def tuned():
    return Optimiser("AdamW", {}, {"weight_decay": 0.1}, Schedule(0.1, "cosine"), clip=1.0)
"""
RESUMED = [kind for kind in KINDS if kind not in ("multi-label", "one logit")]


@pytest.fixture
def write(write):
    return lambda text: write(START + textwrap.dedent(text) + METHOD)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_accepted_and_answered(write, tmp_path, kind):
    study = grid(write(KINDS[kind]), [8, 16], ["mine.py:tuned"], [0.0], trials=4, hits=1)
    found = sweeps.results(study, "full", folder=tmp_path / "data")
    loosest = [c for c in found if c.startswith("steps@")][-1]
    assert len(found) == 8 and found[loosest].notna().any() and found.best_error.notna().any()
    heads = found.attrs["provenance"]
    assert all(head["data"] and head["precision"] == "float32" for head in heads)


@pytest.mark.parametrize("kind", RESUMED)
def test_interrupted_it_ends_as_if_it_had_not_been(write, tmp_path, interrupt, kind):
    """By a method of the book in one case, by a reader's with a schedule in the rest."""
    method = "momentum" if kind == FIRST else "mine.py:tuned"
    cell = Cell(write(KINDS[kind]), 16, method, trials=3, hits=3)
    whole = one_cell.table(cell, one_cell.train_cell(cell))
    interrupt(9, 31, owner=trainings.Trial, name="_step")
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            one_cell.train_cell(cell, unfinished=tmp_path / "state.part")
    again = one_cell.table(cell, one_cell.train_cell(cell, unfinished=tmp_path / "state.part"))
    assert again.equals(whole) and not list(tmp_path.glob("*.set-aside"))


def test_a_trial_is_a_plain_loop_to_the_last_bit(write):
    """Batch normalisation, dropout and AdamW, in eval mode at every check."""
    name = write(KINDS[FIRST])
    cell = Cell(name, 16, "torch.optim:AdamW(lr=0.01,weight_decay=0.1)", trials=2)
    job = one_cell.job(cell)
    trial = trainings.Trial(job, 7, {"learning_rate": 0.001})
    trial.run(40)

    torch.manual_seed(7)
    module = job.own.model()
    optimiser = torch.optim.AdamW(module.parameters(), 0.001, weight_decay=0.1)
    (x, y), order = job.own.train, lockstep.batches(80, 16, 0)
    for _ in range(trial.steps):
        pick = next(order)
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(x[pick]), y[pick]).backward()
        optimiser.step()
    found, expected = trial.module.state_dict(), module.state_dict()
    assert trial.steps > 10 and all(torch.equal(found[name], expected[name]) for name in expected)


def test_a_search_ends_with_its_hits(write):
    cell = Cell(write(KINDS[FIRST]), 8, "momentum", trials=8, hits=2)
    job, drawn = one_cell.job(cell), cell.draw()
    few, every = (trainings.train(job, one_cell.seeds(cell), drawn, hits) for hits in (2, 8))
    ends = np.sort(every.first[:, 0])[1]
    assert few.steps == ends and few.trial_steps < every.trial_steps
    inside = np.where(every.first <= ends, every.first, np.nan)
    np.testing.assert_array_equal(few.first, inside)


def test_a_method_of_the_book_is_what_lock_step_makes_of_it(write):
    """Of a module that both can train, by a schedule-free method, to rounding."""
    plain = "def task(): return Training(model=mlp, **given)"
    alone = one_cell.train_cell(Cell(write(plain), 16, "momentum", trials=4, hits=4))
    here = "from lib.own import Own\n" + plain.replace("Training", "Own")
    together = one_cell.train_cell(Cell(write(here), 16, "momentum", trials=4, hits=4))
    assert np.array_equal(alone.first, together.first, equal_nan=True)


def test_a_class_of_torch_trains_the_books_workloads():
    sgd = "torch.optim:SGD(lr=0.1,momentum=0.9)"
    cell = Cell("digits-mlp", 64, sgd, trials=2, hits=1, max_steps=60)
    assert one_cell.train_cell(cell).best_error.min() < 0.5


def test_accumulated_gradients_are_those_of_the_batch(write):
    found = []
    for more in ("", "at_once=4, "):
        name = write(f"def task(): return Training(model=mlp, {more}**given)")
        job = one_cell.job(Cell(name, 16, "torch.optim:SGD", trials=1))
        trial = trainings.Trial(job, 0, {"learning_rate": 0.1})
        trial.run(3)
        found.append(torch.cat([p.detach().flatten() for p in trial.module.parameters()]))
    assert torch.allclose(*found, atol=1e-6) and not torch.equal(*found)


def test_a_schedule_warms_up_and_falls():
    for shape, after in (("constant", 1.0), ("linear", 0.5), ("cosine", 0.5)):
        found = [Schedule(0.1, shape).factor(step, 100) for step in (1, 9, 10, 11, 56, 1000)]
        last = float(shape == "constant")
        assert found == pytest.approx([0.1, 0.9, 1.0, 1.0, after, last])


def test_autocast_is_on_record_and_changes_the_arithmetic(write):
    name = write(KINDS["multi-label"])
    cells = [Cell(name, 8, "momentum", trials=2, precision=p) for p in ("float32", "bfloat16")]
    assert one_cell.origin(cells[1], "cpu")["precision"] == "bfloat16"
    found = [one_cell.train_cell(cell).best_error for cell in cells]
    assert not np.array_equal(*found, equal_nan=True)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sparsity": 0.5}, "sparsity: 0.5 is not allowed; it must be 0.0 of a lib.own.Training"),
        ({"race": 2.0}, "race: 2.0 is not allowed; it must be None of a lib.own.Training"),
        ({"algorithm": "kfac"}, "algorithm: 'kfac' is not .* steps from plain gradients"),
        ({"algorithm": "torch.optim:Adamm"}, "kind: 'Adamm' is not .* torch.optim: .*AdamW"),
        ({"algorithm": "torch.optim:AdamW(lr=1..0.1)"}, "algorithm: .*high: 0.1 is not allowed"),
        ({"algorithm": "torch.optim:LBFGS"}, "kind: 'LBFGS' is not allowed; it must be a class"),
    ],
)
def test_a_search_that_cannot_be_is_refused_with_what_to_do(write, fields, message):
    name = write(KINDS[FIRST])
    with pytest.raises(ValueError, match=message):
        Cell(name, 8, **fields)


EXAMPLES = {
    "augmented_digits": "momentum",
    "small_transformer": "torch.optim:AdamW",
    "diabetes_regression": "chapters/own/diabetes_regression.py:adamw",
    "fine_tuned": "torch.optim:AdamW",
    "dictionaries": "torch.optim:AdamW",
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_run_as_a_toy(tmp_path, monkeypatch, example):
    monkeypatch.chdir(ROOT)
    name = f"chapters/own/{example}.py:{example}"
    study = grid(name, [16, 64], [EXAMPLES[example]], [0.0], trials=2, hits=1, max_steps=60)
    found = sweeps.results(study, "full", folder=tmp_path)
    assert len(found) == 4 and found.best_error.notna().any()
    assert methods.method(EXAMPLES[example]).space.keys() <= set(found)
