"""Any PyTorch training runs from a short file, exact and resumable, or is refused by name."""

import collections
import contextlib
import re
import textwrap
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from lib import ROOT, methods
from lib.engine import checkpoint, flattening, lockstep, trainings
from lib.engine.vocabulary import OF_ANY
from lib.measuring import one_search, sweeps
from lib.methods import optimisers
from lib.methods.intervals import Interval
from lib.methods.optimisers import Optimiser, Schedule
from lib.own import Metric, OwnError, Training
from lib.records.selection import grid
from lib.studies.search import Search
from lib.workloads import batches, catalogue, kinds, own_file

START = """
import time
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
            z = (x[:, :3] > 0).long()
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
TUNED = "mine.py:tuned"


@pytest.fixture
def write(write):
    return lambda text: write(START + textwrap.dedent(text) + METHOD)


def trained(training, method, steps=1, batch_size=16, **drawn):
    job = trainings.Job(training, methods.method(method), batch_size, 1000, (0.0,))
    trial = trainings.Trial(job, 0, drawn)
    trial.run(steps)
    return trial


def flat(tensors):
    parts = [flattening.memory_order(tensor.detach()).reshape(-1) for tensor in tensors]
    return torch.cat(parts)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_accepted_and_answered(write, tmp_path, kind):
    study = grid(write(KINDS[kind]), [8, 16], [TUNED], [0.0], trials=4, hits=1)
    trials = sweeps.results(study, "full", folder=tmp_path / "data")
    loosest = [c for c in trials if c.startswith("steps@")][-1]
    assert len(trials) == 8 and trials[loosest].notna().any() and trials.best_error.notna().any()
    heads = trials.attrs["provenance"]
    assert all(head["data"] and head["precision"] == "float32" for head in heads)


# --- what people have in their hands --------------------------------------------------------------

HANDED = """
import numpy as np
import pandas as pd
from torch.utils.data import TensorDataset
class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp()
    def forward(self, features): return self.net(features)
class Doubles(Dataset):
    def __len__(self): return 80
    def __getitem__(self, i): return a[i], b[i]
a, b = x.double().numpy(), y.numpy().astype("int32")
table = pd.DataFrame(a).astype({3: object})
pairs = TensorDataset(x[:80], y[:80])
def handed(x=x, y=y, model=mlp, **more):
    data = dict(train=(x[:80], y[:80]), validation=(x[80:], y[80:]))
    return Training(model, **{**usual, **data, **more})
def task(): return handed(KIND)
"""
TENSORS = " taken as Tensor float32 [80, 4], Tensor int64 [80]"
LOADED = "train: a DataLoader replaced by its dataset, in our order"
NAMED = "model=Named, train=({'features': a[:80]}, b[:80]), validation=({'features': x}, y)"
DOUBLES = "Tensor float64 [32, 4], Tensor int32 [32]"
SAMPLED = f"train: {DOUBLES} taken as Tensor float32 [32, 4], Tensor int64 [32]"
TAKEN = {  # what is passed instead of tensors, and the notes on train or the model
    "": [],
    "a, b": ["train: ndarray float64 [80, 4], ndarray int32 [80]" + TENSORS],
    "table, pd.Series(b)": ["train: DataFrame, Series int32 [80]" + TENSORS],
    "x, y.int()[:, None]": ["train: Tensor float32 [80, 4], Tensor int32 [80, 1]" + TENSORS],
    "x, 1.0 * y, goals=[0.15]": ["train: Tensor float32 [80, 4], Tensor float32 [80]" + TENSORS],
    "x, y.tolist()": ["train: Tensor float32 [80, 4], list" + TENSORS],
    "train=DataLoader(pairs, 7, shuffle=True)": [LOADED],
    "model=mlp()": ["model: a copy taken for every trial, initialised by reset_parameters"],
    NAMED: ["train: ndarray float64 [80, 4], ndarray int32 [80]" + TENSORS],
    "train=DataLoader(Doubles())": [LOADED, SAMPLED],
    "train=lambda n, seed: DataLoader(Doubles(), n), examples=80": [SAMPLED],
}



@pytest.mark.parametrize("kind", TAKEN)
def test_what_people_have_trains_like_tensors_and_is_said(write, kind):
    """The same weights and batches, so the same steps, unless it has its own order."""
    weights = []
    for handed in ("", kind):
        work = catalogue.workload(write(HANDED.replace("KIND", handed)))
        trial = trained(work.training(), "torch.optim:SGD(lr=0.1)", 20, learning_rate=0.1)
        weights.append(flat(trial.module.parameters()))
    notes = [note for note in work.facts.converted if not note.startswith("validation")]
    assert notes == TAKEN[kind]
    assert torch.equal(*weights) != ("lambda" in kind)


IMAGES = "torch.randint(256, (120, 1, 2, 2), generator=draw).byte()"
FLAT = "model=lambda: nn.Sequential(nn.Flatten(), mlp())"
EMBEDDED = "model=lambda: nn.Sequential(nn.Embedding(6, 4), nn.Flatten(), mlp(inputs=20))"
WHOLE = {  # inputs that are whole numbers, what they become, and the notes on them
    f"{IMAGES}, {FLAT}": (torch.float32, 1.0, "Tensor uint8 .*float32 .*, bytes over 255"),
    "(9 * x).round().int()": (torch.float32, 9.0, "Tensor int32 .* taken as Tensor float32"),
    f"words.int(), {EMBEDDED}": (torch.int64, 5, "Tensor int32 .* taken as Tensor int64"),
    f"words, {EMBEDDED}": (torch.int64, 5, None),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_whole_numbers_stay_where_the_network_takes_them_and_become_floats_elsewhere(write, kind):
    dtype, most, note = WHOLE[kind]
    inputs, _, model = kind.partition(", model")
    text = HANDED.replace("KIND", "handed_x" + (f", model{model}" if model else ""))
    work = catalogue.workload(write(text.replace("def task", f"handed_x = {inputs}\ndef task")))
    x = work.training().train[0]
    assert x.dtype == dtype and most / 3 < x.max() <= 4 * most
    assert len(work.facts.converted) == 2 * bool(note)
    assert all(re.search(note, line) for line in work.facts.converted)


def test_data_on_record_are_what_was_handed_in(write):
    """The digests in records of earlier code."""
    for kind, digest in {"": "8ba8b5d3138f", "x.double()": "522aabfe142b"}.items():
        assert own_file.load(write(HANDED.replace("KIND", kind))).data == digest


SCALES = {  # what is passed, and the columns that are named
    "torch.cat([x[:, 1:], (x[:, :1] > 2)], 1), 1.0 * y": [],
    "x * torch.tensor([1, 300, 1, 1]), 1.0 * y": ["x: 1 of 4 columns (1, counted from 0)"],
    "x + torch.tensor([0, 0, 50, 0]), 100 * x[:, :1]": ["x: 1 of 4 columns (2,", "y: 1 of 1"],
}


@pytest.mark.parametrize("data", SCALES)
def test_columns_that_are_not_scaled_are_named(write, data):
    kind = f"{data}, lambda: mlp(outputs=1), loss='regression', goals=(0.1,)"
    doubts = catalogue.workload(write(HANDED.replace("KIND", kind))).facts.doubts
    assert len(doubts) == len(SCALES[data])
    assert all(doubt.startswith(start) for doubt, start in zip(doubts, SCALES[data]))


def test_a_batch_keeps_its_type():
    class Encoding(collections.UserDict):
        pass

    pair = collections.namedtuple("pair", "x y")(torch.arange(4), [torch.arange(4), "text"])
    part = batches.map_tensors(pair, torch.neg)
    assert type(part) is type(pair) and type(part.y) is list and part.y[1] == "text"
    for kind in (Encoding, lambda **parts: collections.defaultdict(list, **parts)):
        encoding = batches.map_tensors(kind(x=torch.arange(4)), torch.neg)
        assert encoding["x"][3] == -3


LOADER = """
    pairs = [(x[i], int(y[i])) for i in range(80)]
    def task():
        def train(batch_size, seed): return DataLoader(pairs, SIZE, shuffle=True, drop_last=DROPPED)
        return Training(mlp, examples=EXAMPLES, **{**given, "train": train})
"""


@pytest.mark.parametrize(
    ("size", "examples", "dropped", "message"),
    [
        ("batch_size", 80, False, ""),
        ("batch_size", 80, True, ""),
        ("8", 80, False, "train: a batch of 8 examples is not allowed; it must be of 64 examples"),
        ("batch_size", 160, False, "train: a batch of 16 examples .* of all 160 may be smaller"),
        ("batch_size", 160, True, "examples: 160 is not .* a pass over train: write examples=64"),
        ("batch_size", 30, False, "train: a batch of 20 examples .* the last batch of all 30 "),
    ],
)
def test_every_batch_is_of_the_size_on_record(write, size, examples, dropped, message):
    text = LOADER.replace("SIZE", size).replace("EXAMPLES", str(examples))
    name = write(text.replace("DROPPED", str(dropped)))
    cell = Search(name, min(64, examples), "momentum", trials=1, max_steps=5)
    with pytest.raises(OwnError, match=message) if message else contextlib.nullcontext():
        one_search.train_search(cell)


# --- losses and metrics ---------------------------------------------------------------------------


def test_ready_metrics_are_those_of_another_library():
    """Two classes, more, several labels and targets; with equal scores and an absent class."""
    from sklearn import metrics

    draw = torch.Generator().manual_seed(0)
    scores = torch.randn(200, 4, generator=draw).mul(4).round() / 4
    y = torch.randint(3, (200,), generator=draw)
    two, labels = y.clamp(max=1), torch.randint(2, (200, 4), generator=draw)
    pair, single, three = scores[:, :2], scores[:, 0], torch.randn(200, 3, generator=draw)
    values = {
        kinds.accuracy(scores, y): metrics.accuracy_score(y, scores.argmax(1)),
        kinds.accuracy(single, two): metrics.accuracy_score(two, single > 0),
        kinds.accuracy(scores, labels): metrics.accuracy_score(labels, scores > 0),
        kinds.f1(scores, y): metrics.f1_score(y, scores.argmax(1), average="macro"),
        kinds.f1(pair, two): metrics.f1_score(two, pair.argmax(1)),
        kinds.f1(single, two): metrics.f1_score(two, single > 0),
        kinds.f1(scores, labels): metrics.f1_score(labels, scores > 0, average="macro"),
        kinds.auc(three, y): metrics.roc_auc_score(y, three.softmax(1), multi_class="ovr"),
        kinds.auc(pair, two): metrics.roc_auc_score(two, pair[:, 1] - pair[:, 0]),
        kinds.auc(single, two): metrics.roc_auc_score(two, single),
        kinds.auc(scores, labels): metrics.roc_auc_score(labels, scores),
        kinds.r2(scores, labels): metrics.r2_score(labels, scores),
        kinds.mae(scores, labels): metrics.mean_absolute_error(labels, scores),
    }
    assert list(map(float, values)) == pytest.approx(list(values.values()), rel=1e-4)
    assert kinds.auc(single * torch.nan, two).isnan() and kinds.f1(-single.abs(), two * 0) == 0


@pytest.mark.parametrize(("metric", "loss"), [("auc", "binary"), ("r2", "regression")])
def test_a_ready_metric_counts_down_from_one(write, metric, loss):
    """A goal better than a constant answer is allowed, whatever an untrained model scores."""
    goals = (0.8, 0.51) if metric == "auc" else (0.4, 0.01)
    kind = f"x, 1.0 * y, lambda: mlp(outputs=1), metric='{metric}', goals={goals}, loss='{loss}'"
    cell = Search(write(HANDED.replace("KIND", kind)), 16, "adam", trials=6, hits=1)
    assert cell.work.goal == pytest.approx(1 - goals[0])
    assert np.isfinite(one_search.train_search(cell).first[:, 0]).any()


def test_a_metric_that_is_the_mean_of_a_batch_counts_by_examples():
    """The last batch has one example."""
    x = torch.randn(batches.READ + 1, 2, generator=torch.Generator().manual_seed(0))
    data, model = (x, (x[:, 0] > 0).long()), nn.Linear(2, 2)

    def wrong(model, batch):
        return (model(batch[0]).argmax(1) != batch[1]).float()

    metrics = Metric(wrong, "error"), Metric(lambda *answer: wrong(*answer).mean(), "error")
    fields = {"train": data, "validation": data, "goals": (0.1,)}
    by_example, mean = (kinds.error(Training(lambda: model, metric=metric, **fields), model) for metric in metrics)
    assert by_example == pytest.approx(mean)


def test_rows_are_told_apart_by_any_part_of_them():
    rows = [(torch.tensor([float(n)]), n % 2) for n in range(200)]
    late = rows[:40] + [(x, 1 - y) for x, y in rows[40:]]
    digests = {batches.fingerprint(batches.Rows(pairs)) for pairs in (rows, list(rows), late)}
    assert len(digests) == 2


def test_the_commonest_answer_is_of_all_labels_of_an_example_and_of_targets_asked_for():
    labels = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    tokens = torch.tensor([[1, 2, kinds.IGNORED], [1, 3, kinds.IGNORED]])
    constant, spread = kinds.READY["accuracy"].constant, kinds.READY["mae"].constant
    assert (constant(labels), constant(tokens)) == (pytest.approx(2 / 3), 0.5)
    assert spread(torch.tensor([0.0, 0, 0, 10])) == 2.5  # of the median


def test_a_position_without_a_target_does_not_count():
    """A batch without targets has no loss and moves nothing."""
    ids = torch.randint(6, (40, 5))
    loss = kinds.KINDS["tokens"].objective
    out, y = torch.randn(40, 5, 6, requires_grad=True), ids.clone()
    y[:, 3:] = kinds.IGNORED
    assert torch.equal(loss(out, y), loss(out[:, :3], ids[:, :3]))
    assert not kinds.classifies(Training(None, data := (out, y[:, 4]), data, (0.1,)))
    none = loss(out, torch.full_like(ids, kinds.IGNORED))
    assert none == 0 and not torch.autograd.grad(none, out)[0].any()


# --- training -------------------------------------------------------------------------------------


def test_a_trial_is_a_plain_loop_to_the_last_bit(write):
    """With batch normalisation, dropout and AdamW; in eval mode at checks."""
    name = write(KINDS[FIRST])
    cell = Search(name, 16, "torch.optim:AdamW(lr=0.01,weight_decay=0.1)", trials=2)
    job = one_search.job(cell)
    trial = trainings.Trial(job, 7, {"learning_rate": 0.001})
    trial.run(40)

    torch.manual_seed(7)
    module = job.training.model()
    optimiser = torch.optim.AdamW(module.parameters(), 0.001, weight_decay=0.1)
    (x, y), order = job.training.train, lockstep.batches(80, 16, 0)
    for _ in range(trial.steps):
        pick = next(order)
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(x[pick]), y[pick]).backward()
        optimiser.step()
    state, expected = trial.module.state_dict(), module.state_dict()
    assert trial.steps > 10 and all(torch.equal(state[name], expected[name]) for name in expected)


def test_a_search_ends_with_its_hits(write):
    cell = Search(write(KINDS[FIRST]), 8, "momentum", trials=8, hits=2)
    job, drawn, seeds = one_search.job(cell), cell.draw(), one_search.seeds(cell)
    few, complete = (trainings.train(job, seeds, drawn, hits) for hits in (2, 8))
    last = np.sort(complete.first[:, 0])[1]
    assert few.steps == last and few.trial_steps < complete.trial_steps
    before = np.where(complete.first <= last, complete.first, np.nan)
    np.testing.assert_array_equal(few.first, before)


def test_a_method_of_the_book_is_what_lock_step_makes_of_it(write):
    """A module that both can train, with a schedule-free method, to rounding."""
    cell = Search(write("def task(): return Training(mlp, **given)"), 16, trials=4, hits=4)
    alone = trainings.train(one_search.job(cell), one_search.seeds(cell), cell.draw(), 4)
    assert not cell.alone
    assert np.array_equal(alone.first, one_search.train_search(cell).first, equal_nan=True)


def test_a_class_of_torch_trains_the_books_workloads():
    sgd = "torch.optim:SGD(lr=0.1,momentum=0.9)"
    cell = Search("digits-mlp", 64, sgd, trials=2, hits=1, max_steps=60)
    assert one_search.train_search(cell).best_error.min() < 0.5


def test_a_method_of_the_book_has_denormal_numbers_flushed_as_in_lock_step(monkeypatch):
    x, kept, step = torch.randn(32, 4), [], methods.METHODS["sgd"].step

    def note():
        kept.append(bool((torch.tensor([1e-40]) * 1).any()))

    def loss(model, batch):
        note()
        return model(batch[0]).square().mean()

    def watched(*arguments):
        note()
        step(*arguments)

    watching = replace(methods.METHODS["sgd"], step=watched)
    monkeypatch.setitem(methods.EVERY, "sgd", watching)
    training = Training(lambda: nn.Linear(4, 1), (x, x), (x, x), (0.0,), loss, "regression")
    trained(training, "sgd", 2, learning_rate=0.1)
    assert kept == [True, False, True, False], "the reader's code has them, the step has none"


def test_autocast_is_on_record_and_changes_the_arithmetic(write):
    name = write(KINDS["multi-label"])
    cells = [Search(name, 8, "momentum", trials=2, precision=p) for p in ("float32", "bfloat16")]
    assert one_search.origin(cells[1], "cpu")["precision"] == "bfloat16"
    errors = [one_search.train_search(cell).best_error for cell in cells]
    assert not np.array_equal(*errors, equal_nan=True)


# --- states ---------------------------------------------------------------------------------------


def same_when_interrupted(cell, folder, interrupt, *steps):
    """The search ends as if it had not been interrupted at some of the trials' steps."""
    undisturbed = one_search.table(cell, one_search.train_search(cell))
    interrupt(*steps, owner=trainings.Trial, name="_step")
    for _ in steps:
        with pytest.raises(KeyboardInterrupt):
            one_search.train_search(cell, unfinished=folder / "state.part")
    outcome = one_search.train_search(cell, unfinished=folder / "state.part")
    assert one_search.table(cell, outcome).equals(undisturbed)
    assert not list(folder.glob("*.set-aside"))


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"multi-label", "one logit"}))
@pytest.mark.parametrize("sparsity", [0.0, 0.5])
def test_interrupted_it_ends_as_if_it_had_not_been(write, tmp_path, interrupt, kind, sparsity):
    """One case has a method of the book, the rest a reader's with a schedule."""
    method = "momentum" if kind == FIRST else TUNED
    cell = Search(write(KINDS[kind]), 16, method, sparsity, trials=2, hits=2, max_steps=40)
    same_when_interrupted(cell, tmp_path, interrupt, 9, 21)


@pytest.mark.parametrize(
    ("forward", "together"),
    [
        ("self.b(F.relu(self.a(x)))", True),
        ("self.b(F.dropout(self.a(x), 0.5))", False),
        ("self.b(self.a(x - x.mean(0)))", False),
        ("F.log_softmax(self.b(self.a(x)), -1)", False),
    ],
)
def test_a_forward_of_ones_own_is_run_in_lock_step_where_it_answers_by_example(write, forward, together):
    """Without noise, without the batch's mean, and by the outputs of its last layer."""
    text = f"""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 3)
            def forward(self, x): return {forward}
        def task(): return Training(Net, **given)"""
    assert catalogue.workload(write(text)).facts.together == together


def test_accuracy_by_name_takes_the_steps_that_its_error_does_in_lock_step(write, tmp_path):
    text = """
        def by_error(): return Training(mlp, **given)
        def by_name():
            return Training(mlp, **given | dict(metric="accuracy", goals=(0.85, 0.75)))"""
    file = write(text).partition(":")[0]
    steps = {}
    for function in ("by_error", "by_name"):
        study = grid(f"{file}:{function}", [16], ["sgd"], [0.0], trials=4, hits=4)
        assert catalogue.workload(f"{file}:{function}").facts.together
        trials = sweeps.results(study, "full", folder=tmp_path)
        steps[function] = trials[["steps@0.15", "steps@0.25", "last_step"]]
    assert steps["by_error"].notna().any(axis=None)
    assert steps["by_error"].equals(steps["by_name"])


REMEMBERING = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(nn.Dropout(0.2))  # so that trials are trained one after the other
        BEGIN

    def forward(self, x):
        if self.training:
            UPDATE
        return self.net(x) * (1 + 0.1 * SCALE)
MORE
def task(): return Training(Net, **given)
"""
COUNTED = ("self.calls = 0", "self.calls += 1", "self.calls")
EXTRA = """
    def get_extra_state(self): return VALUE
    def set_extra_state(self, calls): self.calls = calls
"""
OWN_TENSORS = "self.seen, self.made = {'last': torch.zeros(1)}, time.time()"
GROWING = 'self.register_buffer("seen", torch.zeros(0))'
KEPT = {
    "an extra state": (*COUNTED, EXTRA.replace("VALUE", "self.calls")),
    "a buffer that grows": (
        GROWING,
        "self.seen = torch.cat([self.seen, x[:1, 0]])",
        "len(self.seen)",
        "",
    ),
    "what it made of the last batch": (OWN_TENSORS, "self.seen = {'last': x}", "0", ""),
}
LOST = {  # what a module remembers elsewhere, and what is said
    "trains differently": (*COUNTED, ""),
    "trains differently when resumed": (
        "self.mean = torch.zeros(4)",
        "self.mean = 0.9 * self.mean + 0.1 * x.mean(0)",
        "self.mean.mean()",
        "",
    ),
    "resuming its training raised": (
        *COUNTED,
        EXTRA.replace("VALUE", "(self.calls, F.relu)").replace("= calls", "= calls[0]"),
    ),
}


def remembering(begin, update, scale, more):
    text = REMEMBERING.replace("BEGIN", begin).replace("UPDATE", update)
    return text.replace("SCALE", scale).replace("MORE", more)


@pytest.mark.parametrize("kind", KEPT)
def test_what_a_module_keeps_goes_on(write, tmp_path, interrupt, kind):
    cell = Search(write(remembering(*KEPT[kind])), 16, "adam", trials=2, hits=2, max_steps=40)
    same_when_interrupted(cell, tmp_path, interrupt, 19)


@pytest.mark.parametrize("message", LOST)
def test_what_a_module_would_forget_is_refused(write, tmp_path, monkeypatch, message):
    cell = Search(write(remembering(*LOST[message])), 16, "adam", trials=2, hits=2, max_steps=40)
    monkeypatch.setattr(checkpoint, "SAVE_EVERY", 0.0)
    with pytest.raises(OwnError, match=f"model: .*{message}"):
        one_search.train_search(cell, unfinished=tmp_path / "state.part")
    assert not list(tmp_path.glob("state.*"))


def test_a_state_that_cannot_be_taken_up_is_set_aside(write, tmp_path, monkeypatch):
    cell = Search(write(KINDS["multi-label"]), 16, "adam", trials=2, hits=2, max_steps=30)
    undisturbed = one_search.table(cell, one_search.train_search(cell))
    monkeypatch.setattr(checkpoint, "SAVE_EVERY", 0.0)
    one_search.train_search(cell, unfinished=tmp_path / "state.part")
    monkeypatch.setattr(trainings.Trial, "take_up", lambda *_: 1 / 0)
    monkeypatch.setattr(trainings, "check_state", lambda *_: None)
    with pytest.warns(RuntimeWarning, match="cannot be resumed .ZeroDivisionError"):
        again = one_search.train_search(cell, unfinished=tmp_path / "state.part")
    assert one_search.table(cell, again).equals(undisturbed)


# --- optimisers of PyTorch and schedules ----------------------------------------------------------


def test_what_is_tuned_is_tried_with_what_it_will_have():
    text = "torch.optim:SGD(momentum=0..0.99,nesterov=True)"
    tuned = {"momentum": Interval(0.5, 0.99, "reverse-log")}
    assert methods.method(text).space["momentum"].high == 0.99
    assert Optimiser("SGD", tuned, {"nesterov": True}).made([torch.zeros(2)], {"momentum": 0.5})
    with pytest.raises(ValueError, match="tuned or fixed: .*rho"):
        Optimiser("Adadelta", {"rho": Interval(0.5, 2.0)})
    with pytest.raises(ValueError, match="schedule: .-1.0, .* must be finite factors, not below 0"):
        Optimiser("SGD", schedule=lambda step, horizon: -1)


def test_a_schedule_warms_up_and_falls():
    for shape, after in (("constant", 1.0), ("linear", 0.5), ("cosine", 0.5)):
        factors = [Schedule(0.1, shape).factor(step, 100) for step in (1, 9, 10, 11, 56, 1000)]
        last = float(shape == "constant")
        assert factors == pytest.approx([0.1, 0.9, 1.0, 1.0, after, last])


def test_a_schedule_is_torchs():
    schedulers = torch.optim.lr_scheduler
    made = {
        "one-cycle": lambda optimiser: schedulers.OneCycleLR(optimiser, 1.0, total_steps=130),
        "steps": lambda optimiser: schedulers.MultiStepLR(optimiser, [39, 65], gamma=0.2),
    }
    for shape, scheduler in made.items():
        optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], 1.0)
        scheduled, rates = scheduler(optimiser), []
        for _ in range(130):
            rates.append(optimiser.param_groups[0]["lr"])
            optimiser.step()
            scheduled.step()
        schedule = Schedule(0.3 * (shape == "one-cycle"), shape, (0.3, 0.5), 0.2)
        assert [schedule.factor(step, 130) for step in range(1, 131)] == pytest.approx(rates)


@pytest.mark.parametrize("schedule", [Schedule(0.1, "cosine"), lambda k, n: min(1, 10 * k / n)])
def test_a_schedule_is_stretched_over_the_steps_of_its_search(write, schedule):
    optimiser, name = Optimiser("SGD", schedule=schedule), write(KINDS[FIRST])
    for limit in (130, 200):
        job = one_search.job(Search(name, 16, trials=1, max_steps=limit))
        job = replace(job, method=optimisers.method(optimiser, "tuned"))
        trial, rates = trainings.Trial(job, 0, {"learning_rate": 1.0}), []
        for step in range(1, limit + 1):
            trial.run(step)
            rates.append(trial.optimiser.param_groups[0]["lr"])
        assert rates.index(max(rates)) + 1 == limit // 10 == optimiser.warm_up(limit)
        assert rates[0] == pytest.approx(10 / limit)
        words = f"a warm-up of {limit // 10} and a .* over {limit} steps"
        assert re.fullmatch(words, optimiser.describe(limit))


# --- pruned ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("pruning", OF_ANY)
def test_one_after_the_other_a_network_keeps_what_it_keeps_in_lock_step(write, pruning):
    """Kernels, too, whose inputs lie last in lock step."""
    text = """
        x = torch.randn(120, 1, 5, 5, generator=torch.Generator().manual_seed(0))
        def build():
            return nn.Sequential(nn.Conv2d(1, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2))
        def task(): return Training(build, (x[:80], y[:80]), (x[80:], y[80:]), **usual)"""
    cell = Search(write(text), 16, "sgd", 0.8, pruning, trials=3)
    together = one_search.start(cell)
    job = one_search.job(replace(cell, algorithm="torch.optim:SGD"))
    for n, seed in enumerate(one_search.seeds(cell)):
        trial = trainings.Trial(job, seed, {"learning_rate": 0.1})
        assert torch.equal(flat(trial.masks), together.mask[n])
        assert torch.equal(flat(trial.module.parameters()), together.w[n])


PRUNED = {
    "momentum": {"learning_rate": 0.1, "momentum": 0.9},
    "lamb": {"learning_rate": 0.01, "beta1": 0.9, "weight_decay": 0.1},
    "torch.optim:AdamW(weight_decay=0.5)": {"learning_rate": 0.01},
    "torch.optim:SGD(momentum=0.9,weight_decay=0.1,nesterov=True)": {"learning_rate": 0.01},
    "torch.optim:Adafactor": {"learning_rate": 0.01},
}


@pytest.mark.parametrize("method", PRUNED)
def test_what_is_removed_stays_removed(write, method):
    """An exact share of matrices, not of norms and biases; the rest is trained."""
    cell = Search(write(KINDS[FIRST]), 16, method, 0.5, trials=1)
    trial = trainings.Trial(one_search.job(cell), 0, PRUNED[method])
    assert int(sum(mask.sum() for mask in trial.masks)) == 48  # of 96
    assert [mask.dim() for mask in trial.masks] == [2, 2]
    before = [p.detach().clone() for p in trial.weights]
    for step in range(1, 30):
        trial.run(step)
        for p, mask in zip(trial.weights, trial.masks):
            assert not p[mask == 0].any() and p.isfinite().all()
    assert not any(map(torch.equal, trial.weights, before))


# --- refused, and examples ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sparsity": 0.5, "pruning": "grasp"}, "pruning: 'grasp' is not .* trained one"),
        ({"race": 2.0}, "race: 2.0 is not allowed; it must be None for .*, whose trials are"),
        ({"algorithm": "kfac"}, "algorithm: 'kfac' is not .* uses plain gradients"),
        ({"algorithm": "torch.optim:Adamm"}, "kind: 'Adamm' is not .* torch.optim: .*AdamW"),
        ({"algorithm": "torch.optim:AdamW(lr=1..0.1)"}, "algorithm: .*high: 0.1 is not allowed"),
        ({"algorithm": "torch.optim:AdamW(eps=1e-8"}, "form: 'AdamW.eps=1e-8' is not allowed"),
        ({"algorithm": "torch.optim:AdamW(lr=1,lr=2)"}, "argument: 'lr' is not .* set once"),
        ({"workload": "cifar-10-resnet-8", "algorithm": "torch.optim:AdamW"}, "where rates decay"),
        ({"algorithm": "torch.optim:LBFGS"}, "kind: 'LBFGS' is not allowed; it must be a class"),
    ],
)
def test_a_search_that_cannot_be_is_refused_with_what_to_do(write, fields, message):
    with pytest.raises(ValueError, match=message):
        Search(**{"workload": write(KINDS[FIRST]), "batch_size": 8} | fields)


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
    trials = sweeps.results(study, "full", folder=tmp_path)
    assert len(trials) == 4 and trials.best_error.notna().any()
    assert methods.method(EXAMPLES[example]).space.keys() <= set(trials)
