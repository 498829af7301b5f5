"""The noise scale of a running job: planted noise is found, training is untouched, hooks between real processes."""

import ast
import contextlib
import io
import math
import os
import re
import sys
import tempfile

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import (
    allreduce_hook,
    fp16_compress_hook,
)
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from lib import ROOT
from lib.engine import lockstep
from lib.workers import noise_hook as hooks
from lib.workers import noise_meter, processes
from lib.workers.hook import SparseState, sparse_hook
from lib.workers.noise_hook import NoiseState, noise_hook
from lib.workers.noise_meter import Averages, NoiseMeter, trace_and_square
from lib.workloads import datasets, models

D, PLANTED = 40, 120.0


class Quadratic(nn.Module):
    """Loss |w - x|^2 / 2 of an example x: its gradient is w - x, so G and Sigma are those of the examples."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(D))

    def forward(self, x):
        return (self.w - x).square().sum(1).mean() / 2


def points(seed, count):
    """Examples with |G|^2 = 1 and tr(Sigma) = PLANTED at w = 0."""
    random = torch.Generator().manual_seed(seed)
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


@pytest.mark.parametrize("sizes", [(16, 16), (12, 20)])
def test_a_planted_noise_scale_is_found(sizes):
    found = heard(NoiseMeter(Quadratic(), 16, span=300.0), range(400), sizes).estimate()
    assert found.low < PLANTED < found.high < 3 * PLANTED and found.steps == 400
    assert found.trace == pytest.approx(PLANTED, rel=0.1)
    assert found.square == pytest.approx(1, rel=0.4)


def test_a_step_gives_the_mean_inner_product_and_the_scatter_between_groups():
    g = np.random.default_rng(0).normal(0.3, 1, size=(4, 7))
    small, big = (g**2).sum(1).mean(), (g.mean(0) ** 2).sum()
    trace, square = trace_and_square(small, big, 4, 16)
    pairs = [g[i] @ g[j] for i in range(4) for j in range(4) if i != j]
    assert square == pytest.approx(np.mean(pairs))
    assert trace == pytest.approx(16 * g.var(0, ddof=1).sum())
    assert trace_and_square(small, big, 4, 16, total=1000) == pytest.approx((trace, square + trace / 1000))


def network():
    """With dropout, BatchNorm, a frozen layer and a parameter that has no gradient."""
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 3))
    body[0].weight.requires_grad_(False)
    body.unused = nn.Parameter(torch.ones(4))
    return body


def trained(metered):
    """Parameters and buffers after training with accumulation, and the random state."""
    model = network()
    forward = nn.Sequential(*list(model)[:4])
    meter = NoiseMeter(model, 12) if metered else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(8):
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
    assert not meter or (meter.estimate().steps, meter.skipped) == (8, 0)
    return [*model.state_dict().values(), torch.get_rng_state()]


def test_training_is_the_same_with_and_without_to_the_last_bit():
    assert all(map(torch.equal, trained(metered=False), trained(metered=True)))


def test_the_parts_gradients_add_up_to_the_whole_batchs():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3)).double()
    batch = {"x": torch.randn(32, 8).double(), "more": (torch.randint(0, 3, (32,)), "kept", None)}

    def loss(part):
        return cross_entropy(model(part["x"]), part["more"][0])

    whole = loss(batch)
    expected = torch.autograd.grad(whole, list(model.parameters()))
    meter = NoiseMeter(model, 32)
    assert meter.backward_in_parts(loss, batch, 3).item() == pytest.approx(whole.item(), rel=1e-12)
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-12, atol=1e-14)


BAD = ((0, 0), (1, 0), (0, math.nan), (2, 0), (3, 0), (0, math.inf), *[(k, 0) for k in range(4, 9)])  # step, what spoils it


def test_a_scaler_tells_the_scale_of_every_step_and_what_is_not_finite_is_left_out():
    plain = heard(NoiseMeter(Quadratic(), 16), range(9)).estimate()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=3)
    meter = NoiseMeter(Quadratic(), 16, scaler=scaler)
    optimizer = torch.optim.SGD(meter.model.parameters(), lr=0.0)
    for k, bad in BAD:
        optimizer.zero_grad()
        for i, x in enumerate(points(k, 32).split(16)):
            loss = meter.model(x) + (meter.model.w[3] * bad if bad and i else 0)
            scaler.scale(loss / 2).backward()
            meter.micro_batch(scale=1 / 2)
        meter.step()
        scaler.step(optimizer)
        scaler.update()
    found = meter.estimate()
    assert (found.trace, found.square) == pytest.approx((plain.trace, plain.square), rel=1e-3)
    assert (found.steps, meter.skipped) == (9, 2)


def test_averages_go_on_from_a_checkpoint_as_if_nothing_were():
    whole = heard(NoiseMeter(Quadratic(), 16), range(15))
    first, stream = heard(NoiseMeter(Quadratic(), 16), range(7)), io.BytesIO()
    torch.save(first.state_dict(), stream)
    stream.seek(0)
    second = NoiseMeter(Quadratic(), 16)
    second.load_state_dict(torch.load(stream, weights_only=True))
    assert heard(second, range(7, 15)).state_dict() == whole.state_dict()


def test_a_foreign_state_is_refused_by_name_and_changes_nothing():
    meter = heard(NoiseMeter(Quadratic(), 16), range(5))
    good = meter.state_dict()
    for foreign in (None, good | {"epoch": 3}, good | {"span": 9.0}):
        said = "saved: .* it must be what .*, with .*'span': 200.0"
        with pytest.raises(ValueError, match=said):
            meter.load_state_dict(foreign)
    assert meter.state_dict() == good


def test_the_file_needs_torch_and_the_standard_library_alone():
    tree = ast.parse((ROOT / "lib/workers/noise_meter.py").read_text(encoding="utf-8"))
    names = {a.name for n in tree.body if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module for n in tree.body if isinstance(n, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} - {"torch"} <= sys.stdlib_module_names


def disturbed(how):
    """The meter after ten steps of two micro-batches, between which others do as they like."""
    meter = NoiseMeter(Quadratic())
    w = meter.model.w
    for k in range(10):
        if how != "never zeroed":
            meter.model.zero_grad()
        for i, x in enumerate(points(k, 32).split(16)):
            if i and how == "changed by a hook":
                w.grad.mul_(0.5)
            if i and how == "a step between":
                torch.optim.SGD([w], lr=0.1).step()
            meter.model(x).backward()
            meter.micro_batch(16)
        meter.step()
    return meter


@pytest.mark.parametrize("how", ["never zeroed", "changed by a hook", "a step between"])
def test_what_others_do_to_gradients_within_a_step_is_noticed(how):
    with pytest.warns(UserWarning, match="noise scale not measured") as warned:
        meter = disturbed(how)
        said = str(meter.estimate())
    assert re.search("because gradients.*: .(changed|never) .* it must be", said) and len(warned) == 1


@pytest.mark.parametrize("broken", ["norms", "summed", "versions"])
def test_a_meter_that_fails_warns_once_and_leaves_the_job_alone(monkeypatch, broken):
    def fail(*_):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(noise_meter, broken, fail)
    with pytest.warns(UserWarning, match="out of memory") as warned:
        meter = heard(NoiseMeter(Quadratic()), range(3))
    assert len(warned) == 1 and meter.model.w.grad.isfinite().all()
    assert "RuntimeError" in str(meter.estimate()) == meter.report(32)


def test_a_clipped_gradient_is_measured_as_it_was_before():
    plain, meter = heard(NoiseMeter(Quadratic()), range(9)), NoiseMeter(Quadratic())
    for k in range(9):
        meter.model.zero_grad()
        for x in points(k, 32).split(16):
            meter.model(x).backward()
            meter.micro_batch(16)
        nn.utils.clip_grad_norm_(meter.model.parameters(), 0.1)
        meter.step()
    assert meter.estimate() == plain.estimate()


def test_two_backward_passes_are_no_micro_batch():
    """As under accelerate, where only the last of a step's is told of."""
    meter = NoiseMeter(Quadratic())
    with pytest.warns(UserWarning, match="backward passes: 2 is not allowed; it must be 1 a micro-batch"):
        for x in points(0, 32).split(16):
            meter.model(x).backward()
        meter.micro_batch(16)


def one_pass(model, x):
    meter = NoiseMeter(model)
    model(x).square().mean().backward()
    meter.micro_batch(len(x))


def fused():
    """Its optimiser runs within the backward pass."""
    net = nn.Linear(4, 1)
    for p in net.parameters():
        p.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", None))
    return net


UNEQUAL = lambda x: x[0].sum(), [torch.ones(4, requires_grad=True), torch.ones(3)]
REFUSED = [
    (lambda: one_pass(nn.Embedding(9, 4, sparse=True), torch.arange(3)), "gradient: 'a sparse tensor.*sparse=False"),
    (lambda: one_pass(fused(), torch.ones(3, 4)), "gradients: None is not allowed; it must be in .grad"),
    (lambda: NoiseMeter(Quadratic()).micro_batch(), "examples: None .* it must be a number from 1"),
    (lambda: heard(NoiseMeter(Quadratic(), 16), [0], sizes=(16,)), "micro-batches: 1 is not allowed; it must be at least 2 a step"),
    (lambda: NoiseMeter(Quadratic()).backward_in_parts(*UNEQUAL), r"batch: \{\(., ?\), \(.,\)\} is not"),
]


@pytest.mark.parametrize(("call", "said"), REFUSED)
def test_within_a_job_a_refusal_is_a_warning_that_names_field_value_and_what_is_allowed(call, said):
    with pytest.warns(UserWarning, match=f"^noise scale not measured, because {said}"):
        call()


def test_before_a_job_it_is_an_error():
    with pytest.raises(ValueError, match="model: 'builtin_.*' is not allowed; it must be an nn.Module"):
        NoiseMeter(len)
    with pytest.raises(ValueError, match="model: 'NoneType' .* it must be the DistributedDataParallel"):
        NoiseState(examples=8)


# Both libraries take four micro-batches of 16 a step, at weights that stay where they are.


ROWS = [points(k, 64) for k in range(20)]


def plain_loop(count):
    """The noise scale of so many micro-batches of each step."""
    meter = NoiseMeter(Quadratic(), 16)
    for rows in ROWS:
        meter.model.zero_grad()
        for x in rows.split(16)[:count]:
            meter.model(x).backward()
            meter.micro_batch()
        meter.step()
    return meter.estimate().noise_scale


@pytest.fixture
def lit(tmp_path):
    """A Lightning module's class, and what fits one to rows, in batches, and returns the trainer."""
    lightning = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")

    class Module(Quadratic, lightning.LightningModule):
        def training_step(self, batch, _):
            return self(batch)

        def validation_step(self, batch, _):
            pass

        test_step = validation_step

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.0)

    extras = "enable_progress_bar", "enable_model_summary", "enable_checkpointing", "logger"
    more = {name: False for name in extras} | {"accelerator": "cpu", "max_epochs": 1}
    more["default_root_dir"] = tmp_path

    def fit(callback, module, rows=None, size=16, accumulate=4):
        rows = torch.cat(ROWS) if rows is None else rows
        more["accumulate_grad_batches"] = accumulate
        trainer = lightning.Trainer(callbacks=[callback], **more)
        trainer.fit(module, torch.utils.data.DataLoader(rows, batch_size=size))
        return trainer

    return Module, fit


@pytest.mark.filterwarnings("ignore:.*(num_workers|log_every|LeafSpec)")
def test_a_lightning_callback_hears_what_a_plain_loop_hears(lit, capsys):
    module, fit = lit
    callback, net = noise_meter.lightning_callback(every=10), module()
    trainer = fit(callback, net)
    assert callback.meter.estimate().noise_scale == pytest.approx(plain_loop(4), rel=1e-4)
    told = capsys.readouterr().out
    assert told.count("noise scale") >= 3 and "at 64" in told
    saved, loader = callback.state_dict(), torch.utils.data.DataLoader(ROWS[0], batch_size=16)
    trainer.test(net, loader, verbose=False)
    trainer.validate(net, loader, verbose=False)
    assert callback.state_dict() == saved, "neither test nor validation begins anew"
    fit(callback, net)
    assert callback.meter.estimate().steps == 40


def test_a_trainer_callback_hears_what_a_plain_loop_hears(tmp_path, capsys):
    """With clipping, too, though callbacks follow it."""
    transformers = pytest.importorskip("transformers", reason="Hugging Face's transformers are not installed")
    pytest.importorskip("accelerate", reason="its Trainer needs accelerate")

    class Model(Quadratic):
        def forward(self, x):
            return {"loss": super().forward(x)}

    class Small(transformers.Trainer):
        def training_step(self, model, inputs, *rest, **named):
            if len(inputs["x"]) > 16:  # Trainer then tries nine tenths
                raise RuntimeError("CUDA out of memory.")
            return super().training_step(model, inputs, *rest, **named)

    def run(callback, size=16, **more):
        told = {"max_grad_norm": 0.1, "learning_rate": 0.0, "num_train_epochs": 1, "report_to": "none", "use_cpu": True, **more}
        arguments = transformers.TrainingArguments(str(tmp_path), per_device_train_batch_size=size, save_strategy="no", **told)
        trainer = Small(Model(), arguments, train_dataset=rows, callbacks=[callback])
        trainer._get_train_sampler = lambda *_: torch.utils.data.SequentialSampler(rows)
        trainer.train()

    rows = [{"x": row} for row in torch.cat(ROWS)]
    callback = noise_meter.trainer_callback(every=10)
    run(callback, gradient_accumulation_steps=4)
    assert callback.meter.estimate().noise_scale == pytest.approx(plain_loop(4), rel=1e-4)
    told = capsys.readouterr().out
    assert told.count("noise scale") >= 3 and "at 64" in told
    callback = noise_meter.trainer_callback()
    accumulate = {"gradient_accumulation_steps": 4, "max_grad_norm": 0.0}
    run(callback, size=18, auto_find_batch_size=True, **accumulate)
    assert callback.meter.estimate().noise_scale == pytest.approx(plain_loop(4), rel=1e-4)
    assert "at 64" in capsys.readouterr().out
    rows += rows[:15]  # a last micro-batch of 15: its step is left out
    run(callback, gradient_accumulation_steps=2, max_grad_norm=0.0)
    assert (callback.meter.averages.steps, callback.meter.skipped) == (40, 1)
    callback = noise_meter.trainer_callback()
    with pytest.warns(UserWarning, match="not measured, because micro-batches: 1 is not allowed"):
        capsys.readouterr()
        run(callback, gradient_accumulation_steps=1)
    assert "noise" not in capsys.readouterr().out


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
    return trace_and_square((g**2).sum(2).mean(1), (g.mean(1) ** 2).sum(1), workers, examples)


@pytest.mark.parametrize(
    ("workers", "examples", "steps", "span", "scale", "spectrum", "more"),
    [
        (8, 8, 100, 30, 100, 1 / np.arange(1, 101), {}),
        (2, 8, 150, 100, 50, 1 / np.arange(1, 31), {"freedom": 4}),
    ],
)
def test_ninety_per_cent_of_the_intervals_hold_the_planted_noise_scale(workers, examples, steps, span, scale, spectrum, more):
    random, held, bounded, runs = np.random.default_rng(5), [], [], 300
    for _ in range(runs):
        averages = Averages(span)
        for trace, square in zip(*simulated(workers, examples, steps, scale, spectrum, random, **more), strict=True):
            averages = averages.after(float(trace), float(square))
        found = averages.estimate()
        weight = averages.decay ** np.arange(steps)[::-1]
        squares = np.exp(-2 * more.get("shrink", 0) * np.arange(steps))
        planted = scale / np.average(squares, weights=weight)  # of the window, if the gradient shrinks
        held.append(found.low <= planted <= found.high)
        bounded.append(not math.isinf(found.high))
    assert 0.86 <= np.mean(held) <= 0.94 and np.mean(bounded) > 0.7


def test_the_quantile_is_students():
    stats = pytest.importorskip("scipy.stats")
    for freedom, off in ((2, 0.03), (5, 0.005), (40, 1e-3)):
        assert noise_meter.student(0.95, freedom) == pytest.approx(stats.t.ppf(0.95, freedom), rel=off)


# --- between processes ----------------------------------------------------------------------------


def some(steps, count=32):
    """This worker's batches."""
    return [points(1000 + 2 * k + dist.get_rank(), count) for k in steps]


def listening(examples=32, model=None, ddp=None, **more):
    """A model whose gradients a state listens to, and the state."""
    model = DistributedDataParallel(model or Quadratic(), **(ddp or {}))
    state = NoiseState(model, examples, **more)
    model.register_comm_hook(state, noise_hook)
    return model, state


def listened(batches, *model, **more):
    """What the state tells after a backward pass of each batch, without training."""
    ddp, state = listening(*model, **more)
    for x in batches:
        ddp.zero_grad()
        ddp(x).backward()
    everywhere: list = [None] * dist.get_world_size()
    dist.all_gather_object(everywhere, state.state_dict())
    assert all(own == everywhere[0] for own in everywhere), "all workers have the same averages"
    return told(state)


def told(state):
    found = state.estimate()
    return {name: getattr(found, name) for name in ("trace", "square", "low", "high", "steps")} | {"skipped": state.skipped}


def _paths(rank):
    """Parameters at the end of training with hooks of all kinds, each alone and within the noise hook."""
    data, workers, paths = datasets.load("digits").train, dist.get_world_size(), {}
    for inside in ("none", "by layer", "half"):
        for listening in (False, True):
            ddp = DistributedDataParallel(models.fresh("mlp-64x2", 0), bucket_cap_mb=0.005)
            hook, own = {"none": None, "by layer": sparse_hook, "half": fp16_compress_hook}[inside], None
            if hook is sparse_hook:
                own = SparseState(ddp, compressor="top-k", density=0.02, by_layer=True)
            if listening:
                ddp.register_comm_hook(NoiseState(ddp, 16, hook=hook, hook_state=own), noise_hook)
            elif hook:
                ddp.register_comm_hook(own, hook)
            optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
            for _, rows in zip(range(12), lockstep.batches(len(data), 16 * workers, 0), strict=False):
                mine = rows.chunk(workers)[rank]
                optimizer.zero_grad()
                cross_entropy(ddp(data.x[mine]), data.y[mine]).backward()
                optimizer.step()
            kept = list(own.residual.values()) if own else []
            paths[f"{inside}, {listening}"] = torch.cat([p.detach().flatten() for p in [*ddp.parameters(), *kept]])
    return paths


def _planted(rank):
    """Planted noise: from random sums, fewer than entries; from unequal shares of 10 and 30."""
    hooks.ENTRIES = 16
    inside = listened(some(range(400), 16), 16, span=300, hook=allreduce_hook)
    unequal = (10, 30)[rank]
    return {
        "inside": inside,
        "unequal": listened(some(range(400), unequal), unequal, span=300),
    }


def _accumulated(rank):
    """The same 32 examples at once, and in four passes; told of one pass, and of all."""
    found, batches = {}, some(range(20))
    for name, passes, examples in (("at once", 1, 32), ("counted", 4, None), ("of a pass", 4, 8), ("of all", 4, 32)):
        ddp, state = listening(examples)
        for batch in batches:
            ddp.zero_grad()
            *first, last = batch.chunk(passes)
            with ddp.no_sync():
                for x in first:
                    (ddp(x) / passes).backward()
            (ddp(last) / passes).backward()
        found[name] = state.refusal or told(state)
    return found


def _scaler(rank):
    """With a scaler that grows every third step, and one worker's gradient not finite at two steps; beside the plain."""
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=3)
    ddp, state = listening(scaler=scaler)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.0)
    for k, bad in BAD:
        ddp.zero_grad()
        scaler.scale(ddp(some([k])[0]) + (ddp.module.w[3] * bad if bad and rank else 0)).backward()
        scaler.step(optimizer)
        scaler.update()
    return {"plain": listened(some(range(9))), "scaled": told(state)}


def _jobs(rank):
    """bfloat16; a static graph; a sparse gradient, which is refused."""
    batches = some(range(12))
    found = {
        "plain": listened(batches),
        "bfloat16": listened([x.bfloat16() for x in batches], model=Quadratic().bfloat16()),
        "static graph": listened(batches, ddp={"static_graph": True}),
    }
    embedding, state = listening(model=nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Linear(4, 2)))
    with contextlib.suppress(RuntimeError):  # PyTorch's own, of sparse gradients
        embedding(torch.arange(3)).sum().backward()
    found["sparse"] = state.refusal
    return found


def _meters(rank):
    """The meter in two processes: of two micro-batches each; of one; without DistributedDataParallel; in its join()."""
    found = {}
    for name, parts in (("accumulated", 2), ("at once", 1)):
        ddp = DistributedDataParallel(Quadratic())
        meter = NoiseMeter(ddp, span=300)
        for x in some(range(400)):
            ddp.zero_grad()
            *first, last = x.chunk(parts)
            with ddp.no_sync():
                for part in first:
                    ddp(part).backward()
                    meter.micro_batch(len(part), 1 / parts)
            ddp(last).backward()
            nn.utils.clip_grad_norm_(ddp.parameters(), 0.1)
            meter.micro_batch(len(last), 1 / parts)
            meter.step()
        found[name] = told(meter)
        found[name]["trace"] /= parts**2  # whose losses are not divided
        found[name]["square"] /= parts**2
    meter = NoiseMeter(ddp.module)
    heard(meter, range(1))
    found["alone"] = meter.refusal
    meter = NoiseMeter(ddp)
    with ddp.join():
        heard(meter, range(1 + rank))
    found["join"] = meter.refusal
    for name, wrap in (("FSDP2", fully_shard), ("FSDP", FullyShardedDataParallel)):
        sharded = wrap(Quadratic(), **({"device_id": torch.device("cpu")} if name == "FSDP" else {}))
        meter = NoiseMeter(sharded)
        sharded(points(rank, 16)).backward()
        meter.micro_batch(16)
        meter.step()
        found[name] = meter.refusal
    return found


def _trainer(rank):
    """Hugging Face's Trainer with clipping, as torchrun would start it: 16 examples of a worker, twice a step."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "0"}
    import transformers

    class Model(Quadratic):
        def forward(self, x):
            return {"loss": super().forward(x)}

    class Plain(transformers.Trainer):
        def create_optimizer(self, *_):
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.0)
            return self.optimizer

    more = {"use_cpu": True, "ddp_backend": "gloo", "report_to": "none", "save_strategy": "no", "disable_tqdm": True}
    more |= {"max_grad_norm": 0.1, "gradient_accumulation_steps": 2, "num_train_epochs": 1, "per_device_train_batch_size": 16}
    rows, callback = [{"x": x} for x in points(1, 25_600)], noise_meter.trainer_callback(span=300)
    Plain(Model(), transformers.TrainingArguments(tempfile.gettempdir(), **more), train_dataset=rows, callbacks=[callback]).train()
    return told(callback.meter) | {"refusal": callback.meter.refusal}


def _cases(rank, names):
    return {name: globals()[name](rank) for name in names}


@pytest.fixture(scope="module")
def two():
    """What two processes find in all cases."""
    return processes.launch(_cases, 2, 300, ["_planted", "_accumulated", "_scaler", "_jobs", "_meters"])


@pytest.fixture(scope="module")
def three():
    """Of three processes, where a mean of gradients is not exact in binary."""
    return processes.launch(_paths, 3, 300)


@pytest.mark.parametrize("inside", ["none", "by layer", "half"])
def test_training_with_the_hook_is_the_same_to_the_last_bit(three, inside):
    plain, listening = (three[f"{inside}, {listening}"] for listening in (False, True))
    assert torch.equal(plain, listening) and plain.isfinite().all()
    size = len(three["none, False"])
    assert (inside == "none") == torch.equal(plain[:size], three["none, False"]), "the hook inside did its work"


def finds_what_is_planted(found):
    assert found["low"] < PLANTED < found["high"] < 3 * PLANTED and found["steps"] == 400
    assert found["trace"] == pytest.approx(PLANTED, rel=0.1) and found["square"] == pytest.approx(1, rel=0.4)


@pytest.mark.parametrize("name", ["inside", "unequal"])
def test_the_hook_finds_a_planted_noise_scale(two, name):
    finds_what_is_planted(two["_planted"][name])


@pytest.mark.parametrize("name", ["accumulated", "at once"])
def test_the_meter_finds_a_planted_noise_scale_between_processes(two, name):
    finds_what_is_planted(two["_meters"][name])


def test_processes_whose_gradients_are_not_averaged_or_that_may_leave_early_are_refused(two):
    for name in ("alone", "join", "FSDP", "FSDP2"):
        assert two["_meters"][name].startswith("processes: 2 is not allowed; it must be 1, or the model a Dist"), name


def test_the_trainer_in_two_processes_finds_a_planted_noise_scale():
    pytest.importorskip("transformers", reason="Hugging Face's transformers are not installed")
    pytest.importorskip("accelerate", reason="its Trainer needs accelerate")
    found = processes.launch(_trainer, 2, 300)
    assert not found["refusal"]
    finds_what_is_planted(found)


def test_accumulated_gradients_are_those_of_all_their_examples(two):
    """A planted noise scale, of eight groups and of two; what is told of all of a worker's is noticed."""
    found = two["_accumulated"]
    assert found["of a pass"] == found["counted"]
    assert found["counted"]["trace"] == pytest.approx(PLANTED, rel=0.1) == found["at once"]["trace"]
    assert found["of all"].startswith("examples: 32 is not allowed; it must be those of one of 4")


def test_the_hook_knows_the_scalers_scale_and_leaves_out_what_it_skips(two):
    plain, scaled = (two["_scaler"][name] for name in ("plain", "scaled"))
    assert scaled == pytest.approx(plain | {"skipped": 2}, rel=1e-6)


def test_half_precision_and_static_graphs_are_listened_to(two):
    found = two["_jobs"]
    assert found["static graph"] == found["plain"] and found["bfloat16"] == pytest.approx(found["plain"], rel=0.02)
    assert found["sparse"].startswith("gradient: 'a sparse tensor") and "sparse=False" in found["sparse"]
