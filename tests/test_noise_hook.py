"""The noise scale of a running job: estimates and intervals on planted noise, and the hook between real processes."""

import math

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from lib.engine import lockstep
from lib.workers import processes
from lib.workers.hook import SparseState, sparse_hook
from lib.workers.noise_hook import NoiseState, noise_hook, of_step
from lib.workers.noise_meter import Averages
from lib.workloads import datasets, models


def test_a_step_gives_the_mean_inner_product_and_the_scatter_between_workers():
    g = np.random.default_rng(0).normal(0.3, 1, size=(4, 7))
    small, big = (g**2).sum(1).mean(), (g.mean(0) ** 2).sum()
    trace, square = of_step(small, big, 4, 16)
    pairs = [g[i] @ g[j] for i in range(4) for j in range(4) if i != j]
    assert square == pytest.approx(np.mean(pairs)) and trace == pytest.approx(16 * g.var(0, ddof=1).sum())
    assert of_step(small, big, 4, 16, total=1000) == pytest.approx((trace, square + trace / 1000))


def simulated(workers, examples, steps, scale, spectrum, random, freedom=None, shrink=0.0):
    """Estimates of steps [steps, 2] with |G|^2 = exp(-2 shrink k), tr(Sigma) = scale; freedom: of Student's t, else normal."""
    sigma = spectrum / spectrum.sum() * scale
    if freedom is None:
        noise = random.standard_normal((steps, workers, len(sigma))) / np.sqrt(examples)
    else:
        wide = np.sqrt((freedom - 2) / random.chisquare(freedom, size=(steps, workers, examples, 1)))
        noise = (random.standard_normal((steps, workers, examples, len(sigma))) * wide).mean(2)
    mean = np.exp(-shrink * np.arange(steps))[:, None, None] / np.sqrt(len(sigma))
    g = mean + noise * np.sqrt(sigma)
    return of_step((g**2).sum(2).mean(1), (g.mean(1) ** 2).sum(1), workers, examples)


@pytest.mark.parametrize(
    ("workers", "examples", "steps", "span", "scale", "spectrum", "more"),
    [
        (8, 8, 100, 30, 100, 1 / np.arange(1, 101), {}),
        (2, 8, 150, 100, 50, 1 / np.arange(1, 31), {"freedom": 4}),
        (2, 32, 200, 100, 30, np.ones(50), {"shrink": 0.005}),
    ],
)
def test_ninety_per_cent_of_the_intervals_hold_the_planted_noise_scale(workers, examples, steps, span, scale, spectrum, more):
    random, held, bounded, runs = np.random.default_rng(5), [], [], 500
    for _ in range(runs):
        averages = Averages(span)
        for trace, square in zip(*simulated(workers, examples, steps, scale, spectrum, random, **more), strict=True):
            averages = averages.after(float(trace), float(square))
        found = averages.estimate()
        weight = averages.decay ** np.arange(steps)[::-1]
        squares = np.exp(-2 * more.get("shrink", 0) * np.arange(steps))
        planted = scale / np.average(squares, weights=weight)  # of the window, if the gradient shrinks
        held.append(found.low <= planted <= found.high)
        bounded.append(not found.unbounded)
    assert 0.86 <= np.mean(held) <= 0.94 and np.mean(bounded) > 0.7


class Quadratic(nn.Module):
    """Loss |w - x|^2 / 2 of an example x: the gradient is w - x, so G and Sigma are those of the examples."""

    def __init__(self, d):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        return (self.w - x).square().sum(1).mean() / 2


D, PLANTED = 40, 120.0


def _points(seed, count, rank=0, step=0):
    """Examples with |G|^2 = 1 and tr(Sigma) = PLANTED at w = 0."""
    random = torch.Generator().manual_seed(1000 * seed + 2 * step + rank)
    return 1 / math.sqrt(D) + torch.randn(count, D, generator=random) * math.sqrt(PLANTED / D)


def _listened(ddp, state, batches):
    """Gradients only, no training: the state after a backward pass of each batch."""
    ddp.register_comm_hook(state, noise_hook)
    for x in batches:
        ddp.zero_grad()
        ddp(x).backward()
    everywhere: list = [None] * dist.get_world_size()
    dist.all_gather_object(everywhere, state.state_dict())
    assert all(own == everywhere[0] for own in everywhere), "all workers have the same averages"
    return state


def _told(state):
    found = state.estimate()
    return {"scale": found.noise_scale, "low": found.low, "high": found.high, "trace": found.trace, "square": found.square,
            "steps": found.steps, "skipped": state.skipped}  # fmt: skip


def _paths(rank):
    """Parameters at the end of training with hooks of all kinds, each alone and within the noise hook."""
    data, workers, paths = datasets.load("digits").train, dist.get_world_size(), {}
    for inside in ("none", "by layer", "half"):
        for listening in (False, True):
            ddp = DistributedDataParallel(models.fresh("mlp-64x2", 0), bucket_cap_mb=0.005)
            sparse, hook, own = None, None, None
            if inside == "by layer":
                sparse = SparseState(ddp, compressor="top-k", density=0.02, by_layer=True)
                hook, own = sparse_hook, sparse
            elif inside == "half":
                hook = fp16_compress_hook
            if listening:
                sketch = 0 if inside == "half" else None
                state = NoiseState(16, hook=hook, hook_state=own, sketch=sketch)
                ddp.register_comm_hook(state, noise_hook)
            elif hook:
                ddp.register_comm_hook(own, hook)
            optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
            for rows in _shares(len(data), 16 * workers, 12):
                optimizer.zero_grad()
                cross_entropy(ddp(data.x[rows.chunk(workers)[rank]]), data.y[rows.chunk(workers)[rank]]).backward()
                optimizer.step()
            end = torch.cat([p.detach().flatten() for p in ddp.parameters()])
            kept = torch.cat(list(sparse.residual.values())) if sparse else torch.zeros(1)
            paths[f"{inside}, {listening}"] = {"w": end, "kept": kept, "steps": state.estimate().steps if listening else 12}
    return paths


def _shares(n, batch, steps):
    return [rows for _, rows in zip(range(steps), lockstep.batches(n, batch, 0))]


def _planted(rank):
    """Planted noise, from the averaged gradient and from sketches; equal shares of 16 and unequal ones of 10 and 30."""
    found = {}
    for name, more, count in (("narrow", {"sketch": 16}, 16), ("unequal", {}, (10, 30)[rank])):
        ddp, batches = DistributedDataParallel(Quadratic(D)), (_points(1, count, rank, k) for k in range(400))
        found[name] = _told(_listened(ddp, NoiseState(count, span=300, **more), batches))
    return found


def _accumulated(rank):
    """The same 32 examples at once, in four passes whose losses are divided, and undivided; then with clipping in place."""
    found, batches = {}, [_points(2, 32, rank, k) for k in range(20)]
    for name, passes, divided in (("at once", 1, 1), ("divided", 4, 4), ("undivided", 4, 1)):
        state, ddp = NoiseState(32, scale=passes / divided), DistributedDataParallel(Quadratic(D))
        ddp.register_comm_hook(state, noise_hook)
        for batch in batches:
            ddp.zero_grad()
            *first, last = batch.chunk(passes)
            with ddp.no_sync():
                for x in first:
                    (ddp(x) / divided).backward()
            (ddp(last) / divided).backward()
        found[name] = _told(state)
    state, ddp = NoiseState(32), DistributedDataParallel(Quadratic(D), gradient_as_bucket_view=True)
    ddp.register_comm_hook(state, noise_hook)
    for batch in batches:
        ddp.zero_grad()
        ddp(batch).backward()
        nn.utils.clip_grad_norm_(ddp.parameters(), 1e-3)
    return {**found, "clipped": _told(state)}


def _scaler(rank):
    """With a scaler that grows every third step, and one worker's gradient not finite at steps 2 and 5; beside the plain."""
    found = {}
    for sketch in (0, 16):
        plain = _listened(DistributedDataParallel(Quadratic(D)), NoiseState(32, sketch=sketch), _some(range(9)))
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=3)
        state, ddp = NoiseState(32, sketch=sketch, scaler=scaler), DistributedDataParallel(Quadratic(D))
        ddp.register_comm_hook(state, noise_hook)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.0)
        for k, bad in ((0, 0), (1, 0), (0, math.nan), (2, 0), (3, 0), (0, math.inf), *[(k, 0) for k in range(4, 9)]):
            ddp.zero_grad()
            scaler.scale(ddp(_some([k])[0]) + (ddp.module.w[3] * bad if bad and rank else 0)).backward()
            scaler.step(optimizer)
            scaler.update()
        found[f"sketch {sketch}"] = {"plain": _told(plain), "scaled": _told(state)}
    return found


def _some(steps):
    return [_points(5, 32, dist.get_rank(), k) for k in steps]


def _jobs(rank):
    """bfloat16; a static graph; one worker with fewer batches; a sparse gradient, which is refused; all with the same data."""
    batches = _some(range(12))
    found = {"plain": _told(_listened(DistributedDataParallel(Quadratic(D)), NoiseState(32), batches))}
    half = [x.bfloat16() for x in batches]
    found["bfloat16"] = _told(_listened(DistributedDataParallel(Quadratic(D).bfloat16()), NoiseState(32), half))
    still = DistributedDataParallel(Quadratic(D), static_graph=True)
    found["static graph"] = _told(_listened(still, NoiseState(32), batches))
    for sketch in (0, 16):
        state, ddp = NoiseState(32, sketch=sketch), DistributedDataParallel(Quadratic(D))
        with ddp.join():
            few = batches[:4] if rank == 0 else batches[:9]
            ddp.register_comm_hook(state, noise_hook)
            for x in few:
                ddp.zero_grad()
                ddp(x).backward()
        found[f"joined {sketch}"] = _told(state)
        found[f"short {sketch}"] = _told(
            _listened(DistributedDataParallel(Quadratic(D)), NoiseState(32, sketch=sketch), batches[:4]))  # fmt: skip
    embedding = DistributedDataParallel(nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Linear(4, 2)))
    embedding.register_comm_hook(NoiseState(32), noise_hook)
    return found | {"sparse": _error(lambda: embedding(torch.arange(3)).sum().backward())}


def _foreign(rank):
    """What is said of states that no state_dict gave, and what they changed."""
    state, said = NoiseState(4, span=100), []
    state.averages = state.averages.after(3.0, 2.0).after(2.0, 2.0)
    good = state.state_dict()
    wrong = [None, {**good, "epoch": 3}, {**good, "averages": good["averages"] | {"trace": math.nan}}]
    other = NoiseState(4, span=100)
    said = [_error(lambda foreign=foreign: other.load_state_dict(foreign)) for foreign in wrong]
    return {"said": said, "changed": other.state_dict() != NoiseState(4, span=100).state_dict()}


def _error(call):
    try:
        call()
    except ValueError as error:
        return str(error)
    return ""


CASES = (_paths, _planted, _accumulated, _foreign, _scaler, _jobs)


def _cases(rank, names):
    return {case.__name__: case(rank) for case in CASES if case.__name__ in names}


@pytest.fixture(scope="module")
def two():
    """What two processes find in all cases."""
    return processes.launch(_cases, 2, 300, [case.__name__ for case in CASES[1:]])


@pytest.fixture(scope="module")
def three():
    """Of three processes, where a mean of gradients is not exact in binary."""
    return processes.launch(_cases, 3, 300, ["_paths"])


@pytest.mark.parametrize("inside", ["none", "by layer", "half"])
def test_training_is_the_same_with_and_without_to_the_last_bit(three, inside):
    paths = three["_paths"]
    plain, listening = (paths[f"{inside}, {listening}"] for listening in (False, True))
    assert torch.equal(plain["w"], listening["w"]) and torch.equal(plain["kept"], listening["kept"])
    assert listening["steps"] == 12 and plain["w"].isfinite().all()
    if inside != "none":
        assert not torch.equal(plain["w"], paths["none, False"]["w"]), "the hook inside did its work"


@pytest.mark.parametrize("name", ["narrow", "unequal"])
def test_a_planted_noise_scale_is_found(two, name):
    found = two["_planted"][name]
    assert found["low"] < PLANTED < found["high"] < 3 * PLANTED and found["steps"] == 400
    assert found["trace"] == pytest.approx(PLANTED, rel=0.1) and found["square"] == pytest.approx(1, rel=0.4)


def test_accumulated_gradients_are_those_of_all_their_examples(two):
    found = two["_accumulated"]
    for name in ("divided", "undivided", "clipped"):
        assert found[name] == pytest.approx(found["at once"], rel=1e-4), name


def test_a_foreign_dictionary_is_refused_by_name_and_changes_nothing(two):
    fields = ["saved: None", "saved: 'with or without epoch'", "trace: nan"]
    assert all(said.startswith(field) for said, field in zip(two["_foreign"]["said"], fields, strict=True))
    assert not two["_foreign"]["changed"]


@pytest.mark.parametrize("sketch", [0, 16])
def test_a_scaler_tells_the_scale_of_every_step_and_what_it_skips_is_not_averaged(two, sketch):
    found = two["_scaler"][f"sketch {sketch}"]
    assert found["scaled"].pop("skipped") == 2 and found["plain"].pop("skipped") == 0
    rel = 0.6 if sketch else 1e-6  # of a sketch, other signs are drawn after a step that was skipped
    assert found["scaled"]["square"] == pytest.approx(found["plain"]["square"], rel=rel)
    assert found["scaled"]["trace"] == pytest.approx(found["plain"]["trace"], rel=rel)


def test_half_precision_static_graphs_and_uneven_batches_are_listened_to(two):
    found = two["_jobs"]
    assert found["static graph"] == found["plain"] and found["bfloat16"] == pytest.approx(found["plain"], rel=0.02)
    for sketch in (0, 16):
        joined, short = found[f"joined {sketch}"], found[f"short {sketch}"]
        assert joined.pop("skipped") == 5 and short.pop("skipped") == 0
        assert joined == short and joined["steps"] == 4
    assert found["sparse"].startswith("gradient: 'a sparse tensor") and "sparse=False" in found["sparse"]


def test_a_step_whose_squares_overflow_in_their_mean_square_is_not_averaged():
    averages = Averages(20).after(1.0, 1.0)
    assert averages.after(2.0, 1.0).finite and not averages.after(1e200, 1.0).finite


def test_a_single_worker_has_nothing_to_compare(monkeypatch):
    monkeypatch.setattr(dist, "get_world_size", lambda group=None: 1)
    with pytest.raises(ValueError, match="workers: 1 is not allowed; it must be at least 2: .* nothing to be compared"):
        NoiseState(32)
