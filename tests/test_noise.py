"""The noise scale of a running job: planted noise is found, training is untouched, hooks between real processes."""

import ast
import contextlib
import io
import math
import re
import sys
import textwrap
import types
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from lib import ROOT
from lib.engine import lockstep
from lib.workers import noise_lightning, noise_meter, noise_trainer, processes
from lib.workers.hook import SparseState, sparse_hook
from lib.workers.noise_hook import NoiseState, noise_hook, of_step
from lib.workers.noise_meter import Averages, NoiseMeter
from lib.workloads import datasets, models

D, PLANTED = 40, 120.0


class Quadratic(nn.Module):
    """Loss |w - x|^2 / 2 of an example x: its gradient is w - x, so G and Sigma are those of the examples."""

    def __init__(self, d=D):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        return (self.w - x).square().sum(1).mean() / 2


def points(step, count):
    """Examples with |G|^2 = 1 and tr(Sigma) = PLANTED at w = 0."""
    random = torch.Generator().manual_seed(step)
    return 1 / math.sqrt(D) + torch.randn(count, D, generator=random) * math.sqrt(PLANTED / D)


def heard(meter, steps, sizes=(16, 16)):
    """The meter after backward passes of so many examples a micro-batch, at fixed weights."""
    for k in steps:
        meter.model.zero_grad()
        for x in points(k, sum(sizes)).split(list(sizes)):
            meter.model(x).backward()
            meter.micro_batch(len(x))
        meter.step()
    return meter


def test_a_planted_noise_scale_is_found():
    found = heard(NoiseMeter(Quadratic(), 16, sketch=16, span=300.0), range(400)).estimate()
    assert found.low < PLANTED < found.high < 3 * PLANTED and found.steps == 400
    assert found.trace == pytest.approx(PLANTED, rel=0.1) and found.square == pytest.approx(1, rel=0.4)


def test_it_agrees_with_the_hook_on_the_same_gradients():
    meter, averages = heard(NoiseMeter(Quadratic(), 16, span=50.0), range(60)), Averages(50.0)
    for k in range(60):
        g = -points(k, 32).view(2, 16, D).mean(1).double()  # the gradients of two workers
        small, big = g.square().sum(1).mean().item(), g.mean(0).square().sum().item()
        averages = averages.after(*of_step(small, big, 2, 16))
    ours, theirs = meter.estimate(), averages.estimate()
    fields = ("trace", "square", "low", "high")
    assert [getattr(ours, f) for f in fields] == pytest.approx([getattr(theirs, f) for f in fields], rel=1e-5)


def network():
    """With dropout, BatchNorm, a frozen layer and a parameter that has no gradient."""
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 3))
    body[0].weight.requires_grad_(False)
    body.unused = nn.Parameter(torch.ones(4))
    return body


def trained(meter_of, steps=8):
    """Parameters and buffers after training with accumulation, and the random state."""
    model = network()
    forward = nn.Sequential(*list(model)[:4])
    meter = meter_of(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        for size in (12, 12, 7):
            x, y = torch.randn(size, 8), torch.randint(0, 3, (size,))
            cross_entropy(forward(x), y).backward()
            if meter:
                meter.micro_batch(size)
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        if meter:
            meter.step()
        optimizer.step()
    if meter:
        assert meter.estimate().steps == steps and meter.skipped == 0
    return [*model.state_dict().values(), torch.get_rng_state()]


def test_training_is_the_same_with_and_without_to_the_last_bit():
    plain, metered = trained(lambda model: None), trained(lambda model: NoiseMeter(model, 12, sketch=32))
    assert all(torch.equal(one, other) for one, other in zip(plain, metered, strict=True))


def test_the_parts_gradients_add_up_to_the_whole_batchs():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3)).double()
    batch = {"x": torch.randn(33, 8).double(), "more": (torch.randint(0, 3, (33,)), "kept", None)}

    def loss(part):
        return cross_entropy(model(part["x"]), part["more"][0])

    whole = loss(batch)
    expected = torch.autograd.grad(whole, list(model.parameters()))
    meter = NoiseMeter(model, 33)
    assert meter.backward_in_parts(loss, batch, 3).item() == pytest.approx(whole.item(), rel=1e-12)
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-12, atol=1e-14)


def test_a_scaler_tells_the_scale_of_every_step_and_what_is_not_finite_is_left_out():
    divided, sketch = 2, 64
    plain = heard(NoiseMeter(Quadratic(), 16), range(9)).estimate()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=3)
    meter = NoiseMeter(Quadratic(), 16, scale=1 / divided, scaler=scaler, sketch=sketch)
    optimizer = torch.optim.SGD(meter.model.parameters(), lr=0.0)
    for k, bad in ((0, 0), (1, 0), (0, math.nan), (2, 0), (3, 0), (0, math.inf), *[(k, 0) for k in range(4, 9)]):
        optimizer.zero_grad()
        for i, x in enumerate(points(k, 32).split(16)):
            loss = meter.model(x) + (meter.model.w[3] * bad if bad and i else 0)
            scaler.scale(loss / divided).backward()
            meter.micro_batch()
        scaler.unscale_(optimizer)
        meter.step()
        scaler.step(optimizer)
        scaler.update()
    found = meter.estimate()
    assert (found.trace, found.square) == pytest.approx((plain.trace, plain.square), rel=1e-3)
    assert (found.steps, meter.skipped) == (9, 2)


def test_a_gradient_that_comes_with_a_later_micro_batch_was_zero_before():
    model = nn.ParameterList([nn.Parameter(torch.zeros(D // 2)) for _ in range(2)])
    meter, whole = NoiseMeter(model, 1), NoiseMeter(Quadratic(), 1)
    x = torch.randn(2, D, generator=torch.Generator().manual_seed(3))
    x[0, D // 2 :] = 0
    for row in x:
        row = row.split(D // 2)
        for parameter, value in list(zip(model, row, strict=True)) if row[1].any() else [(model[0], row[0])]:
            (parameter * value).sum().backward()
        meter.micro_batch()
        (whole.model.w * torch.cat(row)).sum().backward()
        whole.micro_batch()
    meter.step()
    whole.step()
    assert meter.estimate().trace == pytest.approx(whole.estimate().trace, rel=1e-6)


def test_averages_go_on_from_a_checkpoint_as_if_nothing_were():
    sketch = 8
    whole = heard(NoiseMeter(Quadratic(), 16, sketch=sketch), range(15))
    first, stream = heard(NoiseMeter(Quadratic(), 16, sketch=sketch), range(7)), io.BytesIO()
    torch.save(first.state_dict(), stream)
    stream.seek(0)
    second = NoiseMeter(Quadratic(), 16, sketch=sketch)
    second.load_state_dict(torch.load(stream, weights_only=True))
    assert heard(second, range(7, 15)).state_dict() == whole.state_dict()


def test_the_examples_of_the_docstring_run_as_they_are():
    blocks = re.findall(r"\n\n((?:    .*\n|\n)+)", noise_meter.__doc__)
    code = "\n".join(textwrap.dedent(block) for block in blocks)
    torch.manual_seed(0)
    model, printed = nn.Linear(3, 2), io.StringIO()
    pair, other = ((torch.randn(32, 3), torch.randint(0, 2, (32,))) for _ in range(2))
    given = {"NoiseMeter": NoiseMeter, "model": model, "loss": cross_entropy, "loader": [[pair, other]] * 3}
    given["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.1)
    first, second = code.split("for batch in loader")
    with contextlib.redirect_stdout(printed):
        exec(first, given)
        exec("for batch in loader" + second, given | {"loader": [pair] * 3})
    assert given["meter"].estimate().steps == 6 and "512" in printed.getvalue()


def test_the_file_needs_torch_and_the_standard_library_alone():
    tree = ast.parse((ROOT / "lib/workers/noise_meter.py").read_text(encoding="utf-8"))
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} - {"torch"} <= sys.stdlib_module_names


def sparse():
    model = nn.Embedding(9, 4, sparse=True)
    model(torch.arange(3)).sum().backward()
    NoiseMeter(model, 8).micro_batch()


def too_early():
    heard(NoiseMeter(Quadratic(), 16), [0], sizes=(16,))


def parts(batch, loss=None, **more):
    meter = NoiseMeter(Quadratic(), 16)
    return lambda: meter.backward_in_parts(loss or meter.model, batch, **more)


def made(**fields):
    return lambda: NoiseMeter(**{"model": Quadratic(), "examples": 4} | fields)


@pytest.mark.parametrize(("call", "said"), [
    (made(examples=0), "examples: 0 is not allowed; it must be a whole number from 1"),
    (made(scale=math.nan), "scale: nan is not allowed; it must be a positive finite number"),
    (made(scaler=8.0), "scaler: 8.0 is not allowed; it must be None or a torch.amp.GradScaler"),
    (too_early, "micro-batches: 1 is not allowed; it must be at least 2 a step"),
    (sparse, "gradient: torch.sparse_coo is not allowed; it must be dense and real"),
    (parts((torch.zeros(4, D), torch.zeros(3))), "batch: [3, 4] is not allowed; it must be tensors of one length"),
])  # fmt: skip
def test_a_refusal_names_field_value_and_what_is_allowed(call, said):
    with pytest.raises(ValueError, match=r"is not allowed; it must be") as refused:
        call()
    assert str(refused.value).startswith(said)


# The libraries need not be installed: what stands in for one calls the hooks in the order that it documents.


def stand_in(monkeypatch, name, **contents):
    monkeypatch.setitem(sys.modules, name.partition(".")[0], types.ModuleType(name.partition(".")[0]))
    module = types.ModuleType(name)
    vars(module).update(contents)
    monkeypatch.setitem(sys.modules, name, module)


def lightning_fit(callback, model, steps, count=2, scaler=None):
    """zero_grad, backward, on_after_backward; at a step's last batch unscale, on_before_optimizer_step, step."""
    trainer = SimpleNamespace(accumulate_grad_batches=count, precision_plugin=SimpleNamespace(scaler=scaler), global_step=0)
    optimizer, model.automatic_optimization = torch.optim.SGD(model.parameters(), lr=0.0), True
    callback.setup(trainer, model, stage="fit")
    for k in range(steps):
        optimizer.zero_grad()
        for x in points(k, 16 * count).split(16):
            loss = model(x) / count
            (scaler.scale(loss) if scaler else loss).backward()
            callback.on_after_backward(trainer, model)
        if scaler:
            scaler.unscale_(optimizer)
        callback.on_before_optimizer_step(trainer, model, optimizer)
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        trainer.global_step += 1
    callback.on_train_end(trainer, model)


def test_a_lightning_callback_hears_what_a_plain_loop_hears(monkeypatch, capsys):
    stand_in(monkeypatch, "lightning.pytorch", Callback=object)
    callback = noise_lightning.noise_callback(examples=16, every=10)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=4)
    lightning_fit(callback, Quadratic(), 20, scaler=scaler)
    plain = heard(NoiseMeter(Quadratic(), 16), range(20)).estimate()
    assert callback.meter.estimate().trace == pytest.approx(plain.trace, rel=1e-3)
    told = capsys.readouterr().out
    assert told.count("noise scale") >= 3 and "at 32" in told
    again = noise_lightning.noise_callback(examples=16)
    again.setup(SimpleNamespace(accumulate_grad_batches=2, precision_plugin=None), callback.meter.model, stage="fit")
    again.load_state_dict(callback.state_dict())
    assert again.meter.estimate() == callback.meter.estimate()
    with pytest.raises(ValueError, match="accumulate_grad_batches: 1 is not allowed; it must be at least 2"):
        lightning_fit(noise_lightning.noise_callback(16), Quadratic(), 1, count=1)


def trainer_run(callback, model, steps, count, max_grad_norm):
    """on_substep_end after all backward passes of a step but the last; clipping; on_pre_optimizer_step, step, on_step_end."""
    args = SimpleNamespace(gradient_accumulation_steps=count, max_grad_norm=max_grad_norm, train_batch_size=16)
    state, optimizer = SimpleNamespace(global_step=0), torch.optim.SGD(model.parameters(), lr=0.0)
    callback.on_train_begin(args, state, None, model=model, optimizer=optimizer, train_dataloader=None)
    for k in range(steps):
        for i, x in enumerate(points(k, 16 * count).split(16)):
            (model(x) / count).backward()
            if i < count - 1:
                callback.on_substep_end(args, state, None, model=model)
        if max_grad_norm:
            nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
        callback.on_pre_optimizer_step(args, state, None, model=model)
        optimizer.step()
        model.zero_grad()
        state.global_step += 1
        callback.on_step_end(args, state, None, model=model)
    callback.on_train_end(args, state, None, model=model)


def test_a_trainer_callback_hears_what_a_plain_loop_hears(monkeypatch, capsys):
    count, max_grad_norm = 4, 0.1
    stand_in(monkeypatch, "transformers", TrainerCallback=object)
    callback = noise_trainer.noise_callback(every=10)
    trainer_run(callback, Quadratic(), 20, count, max_grad_norm)
    plain = NoiseMeter(Quadratic(), 16)
    for k in range(20):
        plain.model.zero_grad()
        for x in points(k, 16 * count).split(16)[: count - bool(max_grad_norm)]:
            plain.model(x).backward()
            plain.micro_batch()
        plain.step()
    assert callback.meter.estimate().trace == pytest.approx(plain.estimate().trace, rel=1e-4)
    told = capsys.readouterr().out
    assert told.count("noise scale") >= 3 and f"at {16 * count}" in told
    with pytest.raises(ValueError, match="gradient_accumulation_steps: 2 is not allowed; it must be at least 3"):
        trainer_run(noise_trainer.noise_callback(), Quadratic(), 1, 2, 1.0)


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
def test_training_with_the_hook_is_the_same_to_the_last_bit(three, inside):
    paths = three["_paths"]
    plain, listening = (paths[f"{inside}, {listening}"] for listening in (False, True))
    assert torch.equal(plain["w"], listening["w"]) and torch.equal(plain["kept"], listening["kept"])
    assert listening["steps"] == 12 and plain["w"].isfinite().all()
    if inside != "none":
        assert not torch.equal(plain["w"], paths["none, False"]["w"]), "the hook inside did its work"


@pytest.mark.parametrize("name", ["narrow", "unequal"])
def test_the_hook_finds_a_planted_noise_scale(two, name):
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
