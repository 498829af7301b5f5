"""What is measured along training: against closed forms, plain autograd and planted distributions."""

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.functional import cross_entropy

from chapters.disputed.local_steps_experiments import LOCAL
from chapters.disputed.local_steps_experiments import Search as Local
from chapters.gradients.claims import bell_violations
from chapters.smoothness import claims as roughness
from chapters.smoothness import followed_paths, path_geometry, walking
from chapters.smoothness.experiments import Walk
from chapters.sparsity import findings as sparsity
from chapters.theory.experiments import JOBS, Job
from lib.__main__ import EXPERIMENTS
from lib.claims.claim import REGISTRY, judged
from lib.claims.judging import registered
from lib.engine import flattening, lockstep
from lib.measuring import codes, sweeps
from lib.measuring.experiment import Collection
from lib.methods import method
from lib.page import boxes
from lib.probes import noise_scale, portraits, tracks, unseen
from lib.records import store
from lib.records.store import record
from lib.studies import plans
from lib.studies.search import Search as Spec
from lib.studies.study import Study
from lib.workers.noise_meter import trace_and_square
from lib.workloads import models
from lib.workloads.catalogue import workload


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A folder of records, and the searches it holds: dense, half pruned, and half pruned with SGD."""
    folder = tmp_path_factory.mktemp("data")
    dense, sparse = (Spec("digits-mlp", 256, "momentum", s, trials=16, hits=3) for s in (0.0, 0.5))
    walk = Spec("digits-mlp", 256, "sgd", 0.5, trials=8, hits=1, replicate=3, split=3)
    sweeps.run(Study("s", "", (dense, sparse, walk)), folder)
    return folder, dense, sparse, walk


def test_a_track_meets_the_goal_where_the_record_says_and_not_before(searched):
    folder, _, sparse, _ = searched
    track = tracks.of_cells([sparse], 2, folder, points=8)[1]
    table = noise_scale.follow(track, tracks.last_step(track, folder))
    assert table.step.tolist()[:: len(table) - 1] == [1, tracks.last_step(track, folder)] and len(table) == 8
    assert (table.error <= 0.04).tolist() == [False] * 7 + [True]


def test_on_a_quadratic_both_constants_lie_between_the_least_and_the_largest_curvature():
    random = torch.Generator().manual_seed(0)
    curvature, end = torch.linspace(0.5, 8, 30), torch.randn(30, generator=random)
    for _ in range(20):
        w = end + torch.randn(30, generator=random)
        constants = walking.toward(curvature * (w - end), w, end)
        assert 0.5 <= constants["secant"] <= constants["bound"] <= 8
        assert constants["cosine"] == pytest.approx(constants["secant"] / constants["bound"])
        assert constants["cosine"] >= 2 * (0.5 * 8) ** 0.5 / 8.5  # Kantorovich's inequality
    along = F.one_hot(torch.tensor(29), 30)
    steepest = walking.toward(curvature * along, end + along, end)
    assert steepest["secant"] == pytest.approx(8)


def expected(lengths, momentum=0.0):
    """Cosine [n] of each random gradient with the way ahead, in infinite dimensions, from what each adds to each step."""
    n = len(lengths)
    kept = np.tril(momentum ** np.clip(np.subtract.outer(np.arange(n), np.arange(n)), 0, None))  # [step, gradient]
    reach = np.cumsum(kept[::-1], axis=0)[::-1] * lengths  # [from, gradient]: what it adds from this step to the end
    return np.diag(reach) / np.sqrt((reach**2).sum(1))


def test_a_random_walk_points_to_its_end_by_one_over_the_root_of_the_steps_left():
    n, free = 100, torch.ones(10_000)
    cosines = walking.random_walk(np.ones(n), free, {1, 20, 60, 91, 100}, torch.Generator().manual_seed(0))
    assert cosines == pytest.approx({1: 0.1, 20: 81**-0.5, 60: 41**-0.5, 91: 10**-0.5, 100: 1}, abs=0.03)
    lengths = np.geomspace(1, 30, n)
    uneven = walking.random_walk(lengths, free, {30, 99}, torch.Generator().manual_seed(0))
    assert uneven == pytest.approx({30: expected(lengths)[29], 99: expected(lengths)[98]}, abs=0.03)


class Still:
    """In place of a rerun: a method's updates with whatever gradients there are."""

    def __init__(self, how, w, values):
        self.how, self.w, self.values, self.buffers, self.step = how, w, values, how.begin(w, ()), 0

    def update(self):
        self.step += 1
        g = self.executor.gradients(self.w)[1]
        self.how.step(self.w, g, self.buffers, self.values, self.step, ())


def test_random_gradients_lead_through_the_method_as_theory_says():
    size, n, lengths = 10_000, 40, np.linspace(1, 3, 40)
    values = {"learning_rate": torch.tensor([[0.1]]), "momentum": torch.tensor([[0.8]])}
    rerun = Still(method("momentum"), torch.zeros(1, size), values)
    rerun.executor = walking.Anywhere(lengths, torch.ones(size), torch.Generator().manual_seed(0))
    left = walking.walked(rerun, n, set(range(1, n + 1)))
    cosines = [walking.cosine(g, w - left.end) for w, g in left.seen.values()]
    assert cosines == pytest.approx(expected(lengths, 0.8), abs=0.04)
    assert left.norms == pytest.approx(lengths, rel=1e-4)


def test_a_walk_ends_where_the_record_says(searched):
    folder, *_, cell = searched
    (walk,) = tracks.fastest(Walk, cell, 1, folder, points=12)
    points, steps = walking.measured(walk, folder), tracks.met_at(walk, folder)
    assert points.step.iloc[[0, -1]].tolist() == [1, steps] and (points.step + points.left == steps + 1).all()
    assert (points.error <= 0.04).all() and len(points) == 12
    last = points.iloc[-1]
    assert last.batch_cosine == pytest.approx(1, abs=1e-4)  # the way ahead is the last step
    assert last.batch_secant == pytest.approx(1 / last.rate, rel=1e-3) and last.random == pytest.approx(1, abs=1e-4)
    assert points.walk_theory.iloc[-1] == 1 and points.cosine.between(-1, 1).all()


def test_on_a_random_walk_both_quantities_vary_as_the_rule_says():
    """Also: what chance makes of a full gradient's cosine is what the batch's shares with it."""
    left = np.arange(10_000, 0, -1)
    points = pd.DataFrame({"step": left[::-1], "left": left, "bound": left**-0.5, "secant": 1 / left})
    points["workload"], points["algorithm"] = "digits-mlp", "sgd"
    points[["sparsity", "batch_size", "replicate"]] = 0
    points[["batch_cosine", "twin_batch_cosine", "cosine", "random", "between"]] = 0.4, 0.1, 0.5, 0.2, 0.3
    path = path_geometry.by_path(points).iloc[0]
    assert f"{path.bound_spread:.1f}-fold, the restricted secant {path.secant_spread:.1f}" in REGISTRY["P2"][0].shown
    assert path.full_random == pytest.approx(0.06)


@pytest.mark.parametrize(
    "kind, bell",
    [("normal", True), ("logistic", True), ("uniform", False), ("two peaks", False), ("aside", False)],
)
def test_a_bell_has_one_peak_at_zero_and_is_not_flat(kind, bell):
    r = np.random.default_rng(0)
    normal = r.normal(size=50_000)
    vector = {
        "normal": normal,
        "logistic": r.logistic(size=50_000),
        "uniform": r.uniform(-1, 1, 50_000),
        "two peaks": normal + 1.5 * r.choice([-1, 1], 50_000),
        "aside": normal + 0.5,
    }[kind]
    table = portraits.describe(vector).assign(workload="w", compressor="top-k", density=0.001, feedback=True, step=1)
    shapes = portraits.shapes(table)
    assert shapes.bell.all() == portraits.bell(portraits.profile(vector), portraits.FINE, 5e-5)
    assert shapes.far.iloc[0] == pytest.approx(np.abs(vector).max() / vector.std(), rel=1e-6)
    assert (bell_violations(table) < 1).tolist() == [bell]


def quadratic(seed=0, size=30):
    """A symmetric matrix with eigenvalues 0.1 ... 5, and its eigenvectors as columns, the largest last."""
    random = torch.Generator().manual_seed(seed)
    q, _ = torch.linalg.qr(torch.randn(size, size, generator=random, dtype=torch.float64))
    return q @ torch.diag(torch.linspace(0.1, 5, size, dtype=torch.float64)) @ q.T, q


def test_on_a_quadratic_both_estimates_are_the_largest_eigenvalue():
    h, q = quadratic()
    w = torch.randn(30, dtype=torch.float64)
    assert noise_scale.path_lipschitz(lambda v: h @ v, w, w + 0.3 * q[:, -1]) == pytest.approx(5)
    along, largest = noise_scale.spectral_norm(lambda v: h @ v, torch.ones(30, dtype=torch.float64), iterations=400)
    assert largest == pytest.approx(5, rel=1e-6) and along <= largest
    assert along == pytest.approx(noise_scale.path_lipschitz(lambda v: h @ v, w, w + 0.01), rel=1e-9)


def test_hessian_products_of_a_network_and_of_its_mask():
    net = models.initialise(models.mlp(6, 5, classes=3), 0).double()
    random = torch.Generator().manual_seed(1)
    x, y = torch.randn(40, 1, 2, 3, generator=random, dtype=torch.float64), torch.arange(40) % 3
    w, v = flattening.flatten(net), torch.randn(53, generator=random, dtype=torch.float64)
    mask = (torch.rand(53, generator=random) < 0.5).double()
    full = torch.autograd.functional.hessian(lambda u: F.cross_entropy(flattening.outputs(net, u, x), y), w)
    assert torch.allclose(noise_scale.hessian_product(net, w, x, y)(v), full @ v)
    assert torch.allclose(noise_scale.hessian_product(net, w, x, y, mask)(v), mask * (full @ (mask * v)))


def population(total, seed=0, d=50, signal=0.5):
    random = np.random.default_rng(seed)
    return torch.from_numpy(signal / np.sqrt(d) + random.normal(size=(total, d)))


def test_the_noise_scale_of_endless_data_and_its_interval():
    """|G|^2 = 0.25 and tr(Sigma) = 50 are planted: a noise scale of 200 examples, in about 90 % of the intervals."""
    covered, ratios = [], []
    for seed in range(60):
        products = noise_scale.gram(population(4000, seed).view(-1, 20, 50).mean(1))
        ratios.append(noise_scale.estimate(products, 20))
        low, high = noise_scale.interval(products, 20, draws=100)
        covered.append(low <= 200 <= high)
    trace, square = np.mean(ratios, axis=0)
    planted = trace / square
    assert planted == pytest.approx(200, rel=0.03) and 0.78 <= np.mean(covered) <= 0.99


def path(sparsity, trial=0, **values):
    steps = np.array([1, 2, 4, 8])
    columns = {"lipschitz": 2.0, "along": 1.5, "spectral": 6.0, "square": 0.5, "trace": 30.0, "noise_scale": 60.0, **values}
    return pd.DataFrame({
        "workload": "w", "algorithm": "sgd", "batch_size": 64, "sparsity": sparsity, "trials": 9, "replicate": 0, "split": 0,
        "trial": trial, "step": steps, "loss": [2.0, 1.5, 1.0, 0.5], **columns,
    })  # fmt: skip


def several(sparsity, middle, sizes=(64,), count=3, spread=0.1, seed=0, **about):
    """Paths whose Lipschitz constants scatter about a value, ten times as large at each next batch size."""
    random = np.random.default_rng(seed)
    return pd.concat([
        path(sparsity, trial, lipschitz=middle * 10**i * random.lognormal(0, spread)).assign(batch_size=size, **about)
        for i, size in enumerate(sizes) for trial in range(count)
    ])  # fmt: skip


def test_searches_are_compared_by_batch_size_and_their_paths_are_no_repeats():
    """Against scipy's paired test over searches, an independent reference."""
    from scipy import stats

    sizes = (16, 64, 256)
    paths = pd.concat([several(0.0, 2.0, sizes), several(0.9, 1.0, sizes, count=6, spread=0.4, seed=1)])
    ratio = followed_paths.lipschitz_ratios(followed_paths.typical(paths))["w", "sgd"]
    logs = np.log(paths.groupby(["sparsity", "batch_size", "trial"]).lipschitz.first()).groupby(level=[0, 1]).mean()
    test = stats.ttest_rel(logs[0.9], logs[0.0])
    low, high = test.confidence_interval(0.9)
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx(((logs[0.9] - logs[0.0]).mean(), low, high), rel=1e-6)
    assert ratio.n == 1 and ratio.freedom == test.df


def test_smoothness_is_judged_by_network_and_one_search_decides_nothing(monkeypatch):
    rough = {"workload": "mnist-simple-cnn"}
    paper_rows = [several(0.0, 1.0, **rough), several(0.9, 30.0, seed=3, **rough)]
    about = {"workload": "digits-mlp", "sizes": (16, 64, 256)}
    paths = pd.concat([*paper_rows, several(0.0, 1.0, **about), several(0.9, 0.4, seed=5, **about)])
    monkeypatch.setattr(tracks, "every", lambda: paths)
    judgement = judged(registered()["L7"], roughness.roughness())
    assert (judgement.theirs, judgement.ours) == ("unclear", "unclear")
    assert {g.name: (g.theirs, g.n, g.verdict) for g in judgement.groups} == {
        "Simple-CNN on MNIST, SGD": (True, 1, "no verdict"), "MLP on digits, SGD": (False, 1, "no verdict"),
    }  # fmt: skip


JOB = Job("digits-mlp", 64, "sgd", trials=100, trial=20, hits=5, steps=6, span=4.0)


def test_a_running_job_records_what_a_single_process_finds(tmp_path):
    """At the first step: of the workers' shares, and of chunks of the whole training set."""
    JOBS.run([JOB], tmp_path)
    assert JOBS.missing([JOB], tmp_path) == []
    table = JOBS.results([JOB], tmp_path)
    data, network = workload("digits-mlp").train(), models.fresh("mlp-64x2", JOB.trial)
    parameters = list(network.parameters())

    def gradients(parts):
        losses = (cross_entropy(network(data.x[rows]), data.y[rows]) for rows in parts)
        return torch.stack([nn.utils.parameters_to_vector(torch.autograd.grad(loss, parameters)) for loss in losses])

    shares = gradients(next(lockstep.batches(len(data), 64, 0)).chunk(2))
    small, big = shares.square().sum(1).mean(), shares.mean(0).square().sum()
    trace, square = trace_and_square(float(small), float(big), 2, 32, len(data))
    chunks = gradients(torch.randperm(len(data), generator=torch.Generator().manual_seed(1)).split(50))
    whole_trace, whole_square = noise_scale.estimate(noise_scale.gram(chunks), 50, 1350)
    assert table.running[0] == pytest.approx(trace / square, rel=1e-3)
    assert table.offline[0] == table.single[0] == pytest.approx(whole_trace / whole_square, rel=1e-3)
    assert table.attrs["provenance"][0]["code"] == codes.digest(Job)
    assert table.step.tolist() == [1, 2, 3, 4, 5, 6] and table.high.isna()[0] and table.low[0] == 0
    assert table.single.nunique() == 6, "the weights move"


def test_a_winner_trained_again_meets_the_goal_at_its_step_and_not_before(tmp_path, monkeypatch):
    sparsity = 0.9
    cells = tuple(Spec("digits-mlp", 64, sparsity=sparsity, trials=24, hits=1, replicate=n, split=n, max_steps=400) for n in (1, 2))
    sweeps.run(Study("twice", "", cells), tmp_path)
    monkeypatch.setitem(plans.STUDIES, "twice", Study("twice", "", cells))
    what = unseen.Winners("twice", "digits-mlp", sparsity, 0.05)
    rows = what.measure(tmp_path).set_index("replicate")
    for cell in cells:
        trials = store.read(record(cell, tmp_path), cell)[1]
        steps = trials["steps@0.05"]
        row = rows.loc[cell.replicate]
        assert (row.steps, row.trial) == (steps.min(), steps.idxmin())
        before = unseen.errors(cell, steps.idxmin(), int(steps.min()) // 2)
        assert row.validation <= 0.05 < before[0]
    assert (rows.test != rows.validation).any()


def test_dense_and_pruned_winners_are_paired_by_search():
    """One search lacks a batch size when pruned; each pruned winner's error is 0.01 above that of the dense one."""
    dense = pd.DataFrame({"workload": "digits-mlp", "goal": 0.05, "sparsity": 0.0, "batch_size": [1, 2] * 3,
                          "replicate": [1, 1, 2, 2, 3, 3], "split": 0, "test": [0.05, 0.5, 0.06, 0.07, 0.04, 0.04]})  # fmt: skip
    pruned = dense.assign(sparsity=0.9, test=dense.test + 0.01).drop(1)
    (row,) = sparsity.of_winners(pd.concat([dense, pruned])).itertuples()
    assert (row.dense, row.pruned) == pytest.approx((0.155 / 3, 0.185 / 3))
    assert (row.more_low, row.more, row.more_high, row.n) == pytest.approx((0.01, 0.01, 0.01, 3))


# --- the code that measures ---


@pytest.fixture
def edit(monkeypatch):
    """Changes a module's text as digests of code see it."""

    def edit(module, old, new):
        text = codes.TEXTS.get(module, b"").decode()
        assert old in text
        changed = text.replace(old, new) if old else new
        monkeypatch.setitem(codes.TEXTS, module, changed.encode())
        codes.digest.cache_clear()

    yield edit
    monkeypatch.undo()
    codes.digest.cache_clear()


SPEC = """
RATES = (0.2, 1.0)

class Search:
    trials: int = 4
    def measure(self):
        from chapters.planted import steps
        return steps.trained(RATES)

def planned():
    return [Search()]
"""
STEPS = """import numpy as np
HITS = 1
def trained(rates):
    return np.ones(HITS)
def drawn():
    return 3
"""
MOVED = "chapters.planted.moved"


@pytest.mark.parametrize(
    ("old", "new", "equal"),
    [
        ("HITS = 1", "HITS = 1  # one", True),
        ("HITS = 1\n", "HITS = (\n    1\n)\n\n", True),
        ("(rates):", "(rates: tuple) -> list:\n    'Ones.'", True),
        ("return 3", "return 4", True),
        (STEPS, f"from {MOVED} import trained", True),
        ("HITS = 1", "HITS = 2", False),
        ("HITS = 1\n", "HITS = 1\nHITS += 1\n", False),
        ("import numpy as np", "import torch as np", False),
    ],
)
def test_code_is_the_same_wherever_it_lies_and_whatever_is_said_of_it(old, new, equal, edit):
    kind = type("Search", (), {"__module__": "chapters.planted.experiments"})
    for module, text in (("experiments", SPEC), ("steps", STEPS), ("moved", STEPS)):
        edit(f"chapters.planted.{module}", "", text)
    before = codes.digest(kind)
    edit("chapters.planted.steps", old, new)
    assert (codes.digest(kind) == before) == equal


def test_other_code_measures_anew_beside_what_is_on_record(edit, tmp_path, monkeypatch):
    steps = iter((10.0, 20.0))
    monkeypatch.setattr(Local, "measure", lambda self: pd.DataFrame({"steps": [next(steps)]}))
    requested = [Local("inner method", 1, 5, 16)]
    LOCAL.run(requested, tmp_path)
    (old,) = tmp_path.rglob("*.csv")
    edit("chapters.disputed.local_steps_experiments", "Interval(0.2, 1.0)", "Interval(0.2, 2.0)")
    assert LOCAL.missing(requested, tmp_path) == LOCAL.outdated(requested, tmp_path) == requested
    table = LOCAL.results(requested, tmp_path)
    assert "(1 of them by other code than today’s)" in boxes.sources(table)
    assert table.steps.tolist() == [10]
    LOCAL.run(requested, tmp_path)
    new = LOCAL.record(requested[0], tmp_path)
    assert {*tmp_path.rglob("*.csv")} == {old, new} and store.head(new)["code"] in new.name
    table = LOCAL.results(requested, tmp_path)
    assert table.steps.tolist() == [20] and "by other code" not in boxes.sources(table)
    assert LOCAL.missing(requested, tmp_path) == []
    # Declared to measure the same: the old one stands for both
    listed = f"{codes.LISTED['local-steps/Search']} {codes.digest(Local)}"
    monkeypatch.setitem(codes.LISTED, "local-steps/Search", listed)
    assert LOCAL.record(requested[0], tmp_path) == old
    assert LOCAL.results(requested, tmp_path).attrs["other_code"] == 0


def test_data_lists_the_code_of_every_experiment():
    """If changed code measures the same, put its line as shown; else leave only its last code."""
    collections = [entry for entry in EXPERIMENTS.values() if isinstance(entry, Collection)]
    kinds = {(entry.name, type(what)) for entry in collections for what in entry.planned()}
    lacking = codes.unlisted(kinds)
    assert not lacking, "\n".join(["data/codes.yaml lacks, or has too many of", *lacking])
