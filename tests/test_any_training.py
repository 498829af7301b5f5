"""Any training runs from a short file: fifteen kinds that PyTorch users write, exact and resumable, or refused by name."""

import textwrap

import numpy as np
import pytest
import torch
from torch import nn

from lib import ROOT, methods, own
from lib.engine import lockstep, trainings
from lib.measuring import one_cell, sweeps
from lib.methods.optimisers import Schedule
from lib.records.on_record import grid
from lib.studies.cells import Cell
from lib.workloads import catalogue, own_file

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
texts = dict(train=(words[:80], words[:80].flip(1)), validation=(words[80:], words[80:].flip(1)), goals=(1.2, 1.7),
             loss="tokens", max_steps=60)

def mlp(*more, inputs=4, outputs=2):
    return nn.Sequential(nn.Linear(inputs, 16), *more, nn.ReLU(), nn.Linear(16, outputs))

"""
KINDS = {
    "batch normalisation": "def task(): return Training(model=lambda: mlp(nn.BatchNorm1d(16)), **given)",
    "dropout": "def task(): return Training(model=lambda: mlp(nn.Dropout(0.2)), **given)",
    "a causal mask in a buffer": """
        class Masked(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.head = nn.Embedding(6, 16), nn.Linear(16, 6)
                self.register_buffer("mask", torch.ones(5, 5).tril(), persistent=False)

            def forward(self, ids):
                return self.head(self.mask @ self.words(ids))

        def task(): return Training(model=Masked, **texts)""",
    "a tied head without bias": """
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.head = nn.Embedding(6, 16), nn.Linear(16, 6, bias=False)
                self.head.weight = self.words.weight

            def forward(self, ids):
                return self.head(self.words(ids) + self.words(ids.flip(1)))

        def task(): return Training(model=Tied, **texts)""",
    "a head registered first": """
        class Reversed(nn.Module):
            def __init__(self):
                super().__init__()
                self.head, self.body = nn.Linear(16, 2), nn.Linear(4, 16)

            def forward(self, x):
                return self.head(self.body(x).relu())

        def task(): return Training(model=Reversed, **given)""",
    "targets per position": """
        def task():
            shape = nn.Unflatten(1, (5, 6))
            return Training(model=lambda: nn.Sequential(nn.Embedding(6, 8), nn.Flatten(), nn.Linear(40, 30), shape), **texts)""",
    "regression": """
        def task():
            z = x @ torch.tensor([1.0, -1.0, 0.5, 0.0]) + 0.1 * x.square().sum(1)
            return Training(model=lambda: mlp(outputs=1), train=(x[:80], z[:80]), validation=(x[80:], z[80:]), loss="regression",
                            goals=(0.5, 1.0), max_steps=60)""",
    "multi-label": """
        def task():
            z = (x[:, :3] > 0).float()
            return Training(model=lambda: mlp(outputs=3), train=(x[:80], z[:80]), validation=(x[80:], z[80:]),
                            loss="multi-label", **usual)""",
    "one logit": """
        def task(): return Training(model=lambda: mlp(outputs=1), loss="binary", **given)""",
    "a loss and a metric of one's own": """
        def auc(outputs, targets):
            score = outputs[:, 1] - outputs[:, 0]
            return (score[targets == 1][:, None] > score[targets == 0]).float().mean()

        def task():
            return Training(model=mlp, train=given["train"], validation=given["validation"], max_steps=60, goals=(0.9, 0.8),
                            loss=lambda model, batch: F.multi_margin_loss(model(batch[0]), batch[1]),
                            metric=Metric(auc, "area under the curve", highest=1.0, whole=True))""",
    "a Dataset with augmentation": """
        class Noisy(Dataset):
            def __len__(self): return 80
            def __getitem__(self, i): return x[i] + 0.1 * torch.randn(4), y[i]

        def task(): return Training(model=mlp, **{**given, "train": Noisy()})""",
    "loaders": """
        def task():
            def train(batch_size, seed):
                pairs = [(x[i], int(y[i])) for i in range(80)]
                return DataLoader(pairs, batch_size, shuffle=True, drop_last=True)
            return Training(model=mlp, examples=80, **{**given, "train": train})""",
    "several inputs": """
        class Two(nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.other, self.head = nn.Linear(4, 8), nn.Embedding(6, 8), nn.Linear(8, 2)

            def forward(self, x, ids):
                return self.head((self.one(x) + self.other(ids).mean(1)).relu())

        def task():
            return Training(model=Two, train=(x[:80], words[:80], y[:80]), validation=(x[80:], words[80:], y[80:]), **usual)""",
    "dictionaries": """
        class Named(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = mlp()

            def forward(self, features):
                return {"logits": self.net(features), "hidden": features}

        def task():
            parts = [{"features": x[at], "labels": y[at]} for at in (slice(80), slice(80, 120))]
            return Training(model=Named, train=parts[0], validation=parts[1], **usual)""",
    "frozen and pretrained": """
        def model():
            net = mlp()
            net[0].weight.data = torch.linspace(-1, 1, 64).reshape(16, 4).cos()
            net[0].requires_grad_(False)
            return net

        def task(): return Training(model=model, **given)""",
}
METHOD = """
def tuned():
    return Optimiser("AdamW", fixed={"weight_decay": 0.1}, schedule=Schedule(0.1, "cosine"), clip=1.0, decay_vectors=False)
"""
RESUMED = ("batch normalisation", "dropout", "a Dataset with augmentation", "loaders", "a causal mask in a buffer", "dictionaries")


@pytest.fixture
def write(write):
    return lambda text: write(START + textwrap.dedent(text) + METHOD)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_accepted_and_answered(write, tmp_path, kind):
    assert len(textwrap.dedent(KINDS[kind]).strip().splitlines()) <= 25
    study = grid(write(KINDS[kind]), [8, 16], ["mine.py:tuned"], [0.0], trials=4, hits=1)
    found = sweeps.results(study, "full", folder=tmp_path / "data")
    loosest = [c for c in found if c.startswith("steps@")][-1]
    assert len(found) == 8 and found[loosest].notna().any() and found.best_error.notna().any()
    assert all(head["data"] and head["precision"] == "float32" for head in found.attrs["provenance"])


@pytest.mark.parametrize("kind", RESUMED)
def test_interrupted_it_ends_as_if_it_had_not_been(write, tmp_path, interrupt, kind):
    """By a method of the book in one case, by a reader's with a schedule and clipping in the others."""
    method = "momentum" if kind == "dropout" else "mine.py:tuned"
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
    own_file.load(write("def task(): return Training(model=lambda: mlp(nn.BatchNorm1d(16), nn.Dropout(0.2)), **given)"))
    cell = Cell("mine.py:task", 16, "torch.optim:AdamW(lr=0.01,weight_decay=0.1)", trials=2)
    job = one_cell.job(cell)
    trial = trainings.Trial(job, 7, {"learning_rate": 0.001, "batch_size": 16.0})
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
    cell = Cell(write(KINDS["dropout"]), 8, "momentum", trials=8, hits=2)
    job, drawn = one_cell.job(cell), cell.draw()
    few, every = (trainings.train(job, one_cell.seeds(cell), drawn, hits) for hits in (2, 8))
    ends = np.sort(every.first[:, 0])[1]
    assert few.steps == ends and few.trial_steps < every.trial_steps
    first = np.where(every.first <= ends, every.first, np.nan)
    assert np.array_equal(few.first, first, equal_nan=True)


def test_a_method_of_the_book_is_what_lock_step_makes_of_it(write):
    """Of a module that both can train, by a schedule-free method, to rounding."""
    plain = "def task(): return Training(model=mlp, **given)"
    alone = one_cell.train_cell(Cell(write(plain), 16, "momentum", trials=4, hits=4))
    here = plain.replace("Training", "Own").replace("def task", "from lib.own import Own\n\ndef task")
    together = one_cell.train_cell(Cell(write(here), 16, "momentum", trials=4, hits=4))
    assert np.array_equal(alone.first, together.first, equal_nan=True)


def test_a_class_of_torch_trains_the_books_workloads():
    found = one_cell.train_cell(Cell("digits-mlp", 64, "torch.optim:SGD(lr=0.1,momentum=0.9)", trials=2, hits=1, max_steps=60))
    assert found.best_error.min() < 0.5


def test_accumulated_gradients_are_those_of_the_batch(write):
    found = []
    for more in ("", "at_once=4, "):
        job = one_cell.job(Cell(write(f"def task(): return Training(model=mlp, {more}**given)"), 16, "torch.optim:SGD", trials=1))
        trial = trainings.Trial(job, 0, {"learning_rate": 0.1, "batch_size": 16.0})
        trial.run(3)
        found.append(torch.cat([p.detach().flatten() for p in trial.module.parameters()]))
    assert torch.allclose(*found, atol=1e-6) and not torch.equal(*found)


def test_a_schedule_warms_up_and_falls():
    shape = Schedule(warm_up=10, shape="linear", length=110, end=0.1, unit="steps")
    assert [round(shape.factor(k, 8, 1000), 3) for k in (1, 10, 11, 61, 111, 500)] == [0.1, 1.0, 1.0, 0.55, 0.1, 0.1]
    assert Schedule(80, unit="examples", length=800).factor(5, 8, 1000) == 0.5
    assert Schedule(shape="cosine").factor(51, 8, 100) == pytest.approx(0.5)


def test_autocast_is_on_record_and_changes_the_arithmetic(write):
    name = write(KINDS["regression"])
    found = [one_cell.train_cell(Cell(name, 8, "momentum", trials=2, precision=p)).best_error for p in ("float32", "bfloat16")]
    assert one_cell.origin(Cell(name, 8, precision="bfloat16"), "cpu")["precision"] == "bfloat16"
    assert not np.array_equal(*found, equal_nan=True)


WRONG = [
    ("goals=(0.15, 0.25)", "goals=(0.15, 0.95)", "goals: 0.95 is not allowed; it must be below .*asks for nothing"),
    ("model=mlp,", "model=mlp, loss=F.mse_loss,", "metric: None is not allowed; .*which says whether higher is better, with"),
    ("model=mlp,", "model=mlp, examples=3,", "examples: 3 is not allowed; it must be None unless train is a function"),
    ("model=mlp,", "model=lambda: net,", "a network that shares its parameters with an earlier one"),
    ("model=mlp,", "model=lambda: mlp(outputs=1),", "validation: asked for .* ValueError: targets from 0 to 1 for 1 outputs"),
    ("model=mlp,", "model=mlp, loss=lambda m, b: m(b[0]), metric='classification',", "loss: torch.float32 .* is not"),
    ("model=mlp,", "model=mlp, metric=Metric(min, 'F1', highest=1, never_negative=True),", "metric.never_negative: True is not"),
    ("generator=draw)\ny", ")\ny", "train: others when the function is called again is not allowed; .*give a random_state, a seed"),
    ("train=(x[:80], y[:80])", "train=(x[:80], y[:70])", r"train lengths: \[80, 70\] is not allowed; it must be equal"),
    ("train=(x[:80], y[:80])", "train=lambda b, s: []", "examples: None is not allowed; it must be how many train has"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_what_is_wrong_is_named_before_anything_is_trained(write, tmp_path, old, new, message):
    name = write("net = mlp()\n\ndef task(): return Training(model=mlp, **given)")
    text = (tmp_path / "mine.py").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "mine.py").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(own.OwnError, match=message):
        catalogue.workload(name)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sparsity": 0.5}, "sparsity: 0.5 is not allowed; it must be 0.0 of a lib.own.Training"),
        ({"race": 2.0}, "race: 2.0 is not allowed; it must be None of a lib.own.Training"),
        ({"algorithm": "kfac"}, "algorithm: 'kfac' is not allowed; it must be one that steps from plain gradients"),
        ({"algorithm": "torch.optim:Adamm"}, "kind: 'Adamm' is not allowed; it must be a class of torch.optim: .*AdamW"),
        ({"algorithm": "torch.optim:AdamW(lr=1..0.1)"}, "lr: high: 0.1 is not allowed"),
        ({"algorithm": "torch.optim:LBFGS"}, "LBFGS asks for several losses a step"),
    ],
)
def test_a_search_that_cannot_be_is_refused_with_what_to_do(write, fields, message):
    name = write(KINDS["dropout"])
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
