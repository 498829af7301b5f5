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
from torch.utils.data import DataLoader, TensorDataset

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


def nothing(model):
    pass


def heard(meter, steps, sizes=(16, 16), zero=True, between=nothing, before_step=nothing):
    """The meter after backward passes with so many examples per micro-batch, at fixed weights, and what others do to the model."""
    for k in steps:
        if zero:
            meter.model.zero_grad()
        for i, x in enumerate(points(k, sum(sizes)).split(list(sizes))):
            if i:
                between(meter.model)
            meter.model(x).backward()
            meter.micro_batch(len(x))
        before_step(meter.model)
        meter.step()
    return meter


def summary(meter):
    estimate = meter.estimate()
    fields = ("trace", "square", "low", "high", "steps")
    return {name: getattr(estimate, name) for name in fields} | {"skipped": meter.skipped}


def finds_what_is_planted(estimate):
    assert estimate["low"] < PLANTED < estimate["high"] < 3 * PLANTED and estimate["steps"] == 400
    assert estimate["trace"] == pytest.approx(PLANTED, rel=0.1)
    assert estimate["square"] == pytest.approx(1, rel=0.4)


@pytest.mark.parametrize("sizes", [(16, 16), (12, 20)])
def test_a_planted_noise_scale_is_found(sizes):
    finds_what_is_planted(summary(heard(NoiseMeter(Quadratic(), 16, span=300.0), range(400), sizes)))


def test_a_step_gives_the_mean_inner_product_and_the_scatter_between_groups():
    g = np.random.default_rng(0).normal(0.3, 1, size=(4, 7))
    small, big = (g**2).sum(1).mean(), (g.mean(0) ** 2).sum()
    trace, square = trace_and_square(small, big, 4, 16)
    assert square == pytest.approx(np.mean([g[i] @ g[j] for i in range(4) for j in range(4) if i != j]))
    assert trace == pytest.approx(16 * g.var(0, ddof=1).sum())
    assert trace_and_square(small, big, 4, 16, total=1000) == pytest.approx((trace, square + trace / 1000))


def trained(metered):
    """Parameters and buffers after training with accumulation, and the random state.

    The network has dropout, BatchNorm, a frozen layer and a parameter that has no gradient.
    """
    torch.manual_seed(0)
    forward = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 3))
    forward[0].weight.requires_grad_(False)
    model = nn.ModuleList([forward, nn.ParameterList([torch.ones(4)])])
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
    labels = torch.randint(0, 3, (32,))
    batch = {"x": torch.randn(32, 8).double(), "more": (labels, "kept", None)}

    def loss(part):
        return cross_entropy(model(part["x"]), part["more"][0])

    mean = loss(batch)
    expected = torch.autograd.grad(mean, list(model.parameters()))
    meter = NoiseMeter(model, 32)
    assert meter.backward_in_parts(loss, batch, 3).item() == pytest.approx(mean.item(), rel=1e-12)
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-12, atol=1e-14)


# Step, and what spoils it
BAD = ((0, 0), (1, 0), (0, math.nan), (2, 0), (3, 0), (0, math.inf), *[(k, 0) for k in range(4, 9)])


def test_a_scaler_tells_the_scale_of_every_step_and_what_is_not_finite_is_left_out():
    plain = summary(heard(NoiseMeter(Quadratic(), 16), range(9)))
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
    assert summary(meter) == pytest.approx(plain | {"skipped": 2}, rel=1e-3)


def test_averages_go_on_from_a_checkpoint_as_if_nothing_were_and_refuse_a_foreign_one():
    uninterrupted = heard(NoiseMeter(Quadratic(), 16), range(15)).state_dict()
    first, stream = heard(NoiseMeter(Quadratic(), 16), range(7)), io.BytesIO()
    torch.save(first.state_dict(), stream)
    stream.seek(0)
    second = NoiseMeter(Quadratic(), 16)
    second.load_state_dict(torch.load(stream, weights_only=True))
    assert heard(second, range(7, 15)).state_dict() == uninterrupted
    for foreign in (None, uninterrupted | {"epoch": 3}, uninterrupted | {"span": 9.0}):
        with pytest.raises(ValueError, match="saved: .* it must be what .*, with .*'span': 200.0"):
            first.load_state_dict(foreign)
    second.load_state_dict(first.state_dict())
    assert second.averages == first.averages and first.averages.steps == 7


def test_the_file_needs_torch_and_the_standard_library_alone():
    tree = ast.parse((ROOT / "lib/workers/noise_meter.py").read_text(encoding="utf-8"))
    names = {a.name for n in tree.body if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module for n in tree.body if isinstance(n, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} - {"torch"} <= sys.stdlib_module_names


DISTURBED = {
    "never zeroed": {"zero": False},
    "zeroed between": {"between": lambda model: model.zero_grad()},
    "changed by a hook": {"between": lambda model: model.w.grad.mul_(0.5)},
    "replaced": {"between": lambda model: setattr(model.w, "grad", model.w.grad * 0.5)},
    "a step between": {"between": lambda model: torch.optim.SGD([model.w], lr=0.1).step()},
}


@pytest.mark.parametrize("how", DISTURBED)
def test_what_others_do_to_gradients_within_a_step_is_noticed(how):
    with pytest.warns(UserWarning, match="noise scale not measured") as warned:
        meter = heard(NoiseMeter(Quadratic()), range(10), **DISTURBED[how])
        text = str(meter.estimate())
    assert re.search("because gradients.*: .(changed|never) .* it must be", text)
    assert len(warned) == 1


@pytest.mark.parametrize("broken", ["norms", "summed", "versions"])
def test_a_meter_that_fails_warns_once_and_leaves_the_job_alone(monkeypatch, broken):
    def fail(*_):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(noise_meter, broken, fail)
    with pytest.warns(UserWarning, match="out of memory") as warned:
        meter = heard(NoiseMeter(Quadratic()), range(3))
    assert len(warned) == 1 and meter.model.w.grad.isfinite().all()
    assert "RuntimeError" in str(meter.estimate()) == meter.report(32)


def clip(model):
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)


def test_a_clipped_gradient_is_measured_as_it_was_before():
    plain = heard(NoiseMeter(Quadratic()), range(9)).estimate()
    assert heard(NoiseMeter(Quadratic()), range(9), before_step=clip).estimate() == plain


def passes(model, *batches):
    """Backward passes; the meter is told which is last, as under accelerate."""
    meter = NoiseMeter(model)
    for x in batches:
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
    (lambda: passes(nn.Embedding(9, 4, sparse=True), torch.arange(3)), "gradient: 'a sparse tensor.*=False"),
    (lambda: passes(fused(), torch.ones(3, 4)), "gradients: None is not allowed; it must be in .grad"),
    (lambda: passes(Quadratic(), *points(0, 32).split(16)), "backward passes: 2 .* it must be 1 per micro-batch"),
    (lambda: NoiseMeter(Quadratic()).micro_batch(), "examples: None .* it must be at least 1"),
    (lambda: heard(NoiseMeter(Quadratic()), [0], (16,)), "micro-batches: 1 .* it must be at least 2 per step"),
    (lambda: NoiseMeter(Quadratic()).backward_in_parts(*UNEQUAL), r"batch: \{\(., ?\), \(.,\)\} is not"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_within_a_job_a_refusal_is_a_warning_that_names_field_value_and_what_is_allowed(call, message):
    with pytest.warns(UserWarning, match=f"^noise scale not measured, because {message}"):
        call()


def test_before_a_job_it_is_an_error():
    with pytest.raises(ValueError, match="model: 'builtin_.*' is not allowed; it must be an nn.Module"):
        NoiseMeter(len)
    with pytest.raises(ValueError, match="model: 'NoneType' .* it must be the DistributedDataParallel"):
        NoiseState(examples=8)


# Both libraries take four micro-batches of 16 a step, at weights that stay where they are.


ROWS = torch.cat([points(k, 64) for k in range(20)])
LOOP = heard(NoiseMeter(Quadratic()), range(20), (16,) * 4).estimate().noise_scale


@pytest.mark.filterwarnings("ignore:.*(num_workers|log_every|LeafSpec|val_dataloader)")
def test_a_lightning_callback_hears_what_a_plain_loop_hears(tmp_path, capsys):
    lightning = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")

    class Module(Quadratic, lightning.LightningModule):
        def training_step(self, batch, _):
            return self(batch)

        def validation_step(self, batch, _):
            pass

        test_step = validation_step

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.0)

    def fit():
        extras = "enable_progress_bar", "enable_model_summary", "enable_checkpointing", "logger"
        settings = {name: False for name in extras} | {"accelerator": "cpu", "max_epochs": 1}
        settings |= {"default_root_dir": tmp_path, "accumulate_grad_batches": 4}
        trainer = lightning.Trainer(callbacks=[callback], **settings)
        trainer.fit(module, loader)
        return trainer

    loader = torch.utils.data.DataLoader(ROWS, batch_size=16)
    callback, module = noise_meter.lightning_callback(every=10), Module()
    trainer = fit()
    assert callback.meter.estimate().noise_scale == pytest.approx(LOOP, rel=1e-4)
    printed = capsys.readouterr().out
    assert printed.count("noise scale") >= 3 and "at 64" in printed
    saved = callback.state_dict()
    trainer.test(module, loader, verbose=False)
    trainer.validate(module, loader, verbose=False)
    assert callback.state_dict() == saved, "neither test nor validation begins anew"
    fit()
    assert callback.meter.estimate().steps == 40


def fit_trainer(callback, rows, folder, size=16, **settings):
    """Train with Hugging Face's Trainer, with clipping, though callbacks follow it."""
    import transformers

    class Model(Quadratic):
        def forward(self, x):
            return {"loss": super().forward(x)}

    class Small(transformers.Trainer):
        def _get_train_sampler(self, *_):
            return torch.utils.data.SequentialSampler(rows)

        def training_step(self, model, inputs, *rest, **named):
            if len(inputs["x"]) > 16:  # Trainer then tries nine tenths
                raise RuntimeError("CUDA out of memory.")
            return super().training_step(model, inputs, *rest, **named)

    settings = {"report_to": "none", "save_strategy": "no", "use_cpu": True, **settings}
    settings |= {"max_grad_norm": 0.1, "learning_rate": 0.0, "num_train_epochs": 1}
    arguments = transformers.TrainingArguments(str(folder), per_device_train_batch_size=size, **settings)
    Small(Model(), arguments, train_dataset=[{"x": row} for row in rows], callbacks=[callback]).train()
    return callback.meter


def test_a_trainer_callback_hears_what_a_plain_loop_hears(tmp_path, capsys):
    pytest.importorskip("transformers", reason="Hugging Face's transformers are not installed")
    pytest.importorskip("accelerate", reason="its Trainer needs accelerate")
    for settings in ({"size": 16}, {"size": 18, "auto_find_batch_size": True}):
        callback = noise_meter.trainer_callback(every=10)
        meter = fit_trainer(callback, ROWS, tmp_path, gradient_accumulation_steps=4, **settings)
        assert meter.estimate().noise_scale == pytest.approx(LOOP, rel=1e-4)
        printed = capsys.readouterr().out
        assert printed.count("noise scale") >= 3 and "at 64" in printed
    short = ROWS[:335]  # a last micro-batch of 15: its step is left out
    meter = fit_trainer(callback, short, tmp_path, gradient_accumulation_steps=2)
    assert (meter.averages.steps, meter.skipped) == (10, 1)
    with pytest.warns(UserWarning, match="not measured, because micro-batches: 1 is not allowed"):
        capsys.readouterr()
        fit_trainer(noise_meter.trainer_callback(), short, tmp_path, gradient_accumulation_steps=1)
    assert "noise" not in capsys.readouterr().out


def simulated(workers, examples, steps, scale, spectrum, random, freedom=None):
    """Estimates of steps [2, steps] with |G|^2 = 1, tr(Sigma) = scale; freedom: of Student's t, else normal."""
    sigma = spectrum / spectrum.sum() * scale
    if freedom is None:
        noise = random.standard_normal((steps, workers, len(sigma))) / np.sqrt(examples)
    else:
        wide = np.sqrt((freedom - 2) / random.chisquare(freedom, size=(steps, workers, examples, 1)))
        noise = (random.standard_normal((steps, workers, examples, len(sigma))) * wide).mean(2)
    g = 1 / np.sqrt(len(sigma)) + noise * np.sqrt(sigma)
    return trace_and_square((g**2).sum(2).mean(1), (g.mean(1) ** 2).sum(1), workers, examples)


@pytest.mark.parametrize(
    ("workers", "examples", "steps", "span", "scale", "spectrum", "freedom"),
    [(8, 8, 100, 30, 100, 1 / np.arange(1, 101), None), (2, 8, 150, 100, 50, 1 / np.arange(1, 31), 4)],
)
def test_ninety_per_cent_of_the_intervals_hold_the_planted_noise_scale(
    workers, examples, steps, span, scale, spectrum, freedom
):
    random, holds, bounded = np.random.default_rng(5), [], []
    for _ in range(300):
        averages = Averages(span)
        estimates = simulated(workers, examples, steps, scale, spectrum, random, freedom)
        for trace, square in zip(*estimates, strict=True):
            averages = averages.after(float(trace), float(square))
        estimate = averages.estimate()
        holds.append(estimate.low <= scale <= estimate.high)
        bounded.append(not math.isinf(estimate.high))
    assert 0.86 <= np.mean(holds) <= 0.94 and np.mean(bounded) > 0.7


def test_the_quantile_is_students():
    stats = pytest.importorskip("scipy.stats")
    for freedom, off in ((2, 0.03), (5, 0.005), (40, 1e-3)):
        assert noise_meter.student(0.95, freedom) == pytest.approx(stats.t.ppf(0.95, freedom), rel=off)


# --- between processes ----------------------------------------------------------------------------


def shards(steps, count=32):
    """This worker's batches."""
    return [points(1000 + 2 * k + dist.get_rank(), count) for k in steps]


def listening(examples=32, model=None, ddp=None, **options):
    """A model whose gradients a state listens to, and the state."""
    model = DistributedDataParallel(model or Quadratic(), **(ddp or {}))
    state = NoiseState(model, examples, **options)
    model.register_comm_hook(state, noise_hook)
    return model, state


def listened(batches, *options, **named):
    """What the state says after a backward pass on each batch, without training."""
    ddp, state = listening(*options, **named)
    for x in batches:
        ddp.zero_grad()
        ddp(x).backward()
    states = [None] * dist.get_world_size()
    dist.all_gather_object(states, state.state_dict())
    assert all(saved == states[0] for saved in states), "all workers have the same averages"
    return summary(state)


INSIDE = {"none": None, "by layer": sparse_hook, "half": fp16_compress_hook}


def _paths(rank):
    """Parameters at the end of training with hooks of all kinds, each alone and within the noise hook."""
    data, workers, paths = datasets.load("digits").train, dist.get_world_size(), {}
    for inside, hook in INSIDE.items():
        for listening in (False, True):
            ddp = DistributedDataParallel(models.fresh("mlp-64x2", 0), bucket_cap_mb=0.005)
            sparse = hook is sparse_hook
            state = SparseState(ddp, density=0.02, by_layer=True) if sparse else None
            if listening:
                ddp.register_comm_hook(NoiseState(ddp, 16, hook=hook, hook_state=state), noise_hook)
            elif hook:
                ddp.register_comm_hook(state, hook)
            optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
            for _, rows in zip(range(12), lockstep.batches(len(data), 16 * workers, 0), strict=False):
                shard = rows.chunk(workers)[rank]
                optimizer.zero_grad()
                cross_entropy(ddp(data.x[shard]), data.y[shard]).backward()
                optimizer.step()
            ends = [*ddp.parameters(), *(state.residual.values() if state else [])]
            paths[inside, listening] = torch.cat([x.detach().flatten() for x in ends])
    return list(paths.values())


def _planted(rank):
    """Planted noise: from fewer random sums than entries; from unequal shares of 10 and 30."""
    hooks.ENTRIES = 16
    inside = listened(shards(range(400), 16), 16, span=300, hook=allreduce_hook)
    unequal = (10, 30)[rank]
    return {"inside": inside, "unequal": listened(shards(range(400), unequal), unequal, span=300)}


def _accumulated(rank):
    """The same 32 examples at once, and in four passes; told of one pass, and of all."""
    outcomes = {}
    cases = ("at once", 1, 32), ("counted", 4, None), ("of a pass", 4, 8), ("of all", 4, 32)
    for name, count, examples in cases:
        ddp, state = listening(examples)
        for batch in shards(range(20)):
            ddp.zero_grad()
            *first, last = batch.chunk(count)
            with ddp.no_sync():
                for x in first:
                    (ddp(x) / count).backward()
            (ddp(last) / count).backward()
        outcomes[name] = state.refusal or summary(state)
    return outcomes


def _scaler(rank):
    """With a scaler that grows every third step, and one worker's gradient not finite at two steps; and without a scaler."""
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=3)
    ddp, state = listening(scaler=scaler)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.0)
    for k, bad in BAD:
        ddp.zero_grad()
        spoils = ddp.module.w[3] * bad if bad and rank else 0
        scaler.scale(ddp(shards([k])[0]) + spoils).backward()
        scaler.step(optimizer)
        scaler.update()
    return {"plain": listened(shards(range(9))), "scaled": summary(state)}


def _jobs(rank):
    """bfloat16; a static graph; a short last batch; a sparse gradient, which is refused."""
    batches = shards(range(12))
    outcomes = {
        "plain": listened(batches),
        "bfloat16": listened([x.bfloat16() for x in batches], model=Quadratic().bfloat16()),
        "static graph": listened(batches, ddp={"static_graph": True}),
        "short": listened([*batches, batches[0][:5]]),
    }
    network = nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Linear(4, 2))
    embedding, state = listening(model=network)
    with contextlib.suppress(RuntimeError):  # PyTorch's, about sparse gradients
        embedding(torch.arange(3)).sum().backward()
    return outcomes | {"sparse": state.refusal}


def _meters(rank):
    """The meter in two processes: of two micro-batches each; of one; with gradients that are views of buckets; and what is
    refused: without DistributedDataParallel, in its join(), FSDP.
    """
    outcomes = {}
    for name, parts in (("accumulated", 2), ("at once", 1)):
        ddp = DistributedDataParallel(Quadratic())
        meter = NoiseMeter(ddp, span=300)
        for x in shards(range(400)):
            ddp.zero_grad()
            for i, part in enumerate(x.chunk(parts), 1):
                with ddp.no_sync() if i < parts else contextlib.nullcontext():
                    (ddp(part) / parts).backward()
                if i == parts:
                    clip(ddp)
                meter.micro_batch(len(part), 1 / parts)
            meter.step()
        outcomes[name] = summary(meter)
    views = DistributedDataParallel(models.fresh("mlp-64x2", 0), gradient_as_bucket_view=True)
    meter = NoiseMeter(views)
    for _ in range(3):
        views.zero_grad(set_to_none=False)
        for _ in range(2):
            views(torch.randn(8, 64)).square().mean().backward()
            meter.micro_batch(8)
        meter.step()
    outcomes["views"] = meter.estimate().steps
    alone = heard(NoiseMeter(ddp.module), range(1))
    with ddp.join():
        joined = heard(NoiseMeter(ddp), range(1 + rank))
    wrapped = fully_shard(Quadratic()), FullyShardedDataParallel(Quadratic(), device_id=torch.device("cpu"))
    sharded = [heard(NoiseMeter(model), range(1), (16,)) for model in wrapped]
    return outcomes | {"refused": [meter.refusal for meter in (alone, joined, *sharded)]}


def as_torchrun(rank):
    """What it sets in each process."""
    ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ |= ranks | {"MASTER_ADDR": "localhost", "MASTER_PORT": "0"}


def _accelerate(rank, accumulated):
    """The loop of the theory page: 16 examples per worker, once or twice a step."""
    from accelerate import Accelerator

    as_torchrun(rank)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=accumulated)
    model = Quadratic()
    loader = DataLoader(TensorDataset(points(1, 12_800 * accumulated)), 16)
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    meter = NoiseMeter(model, scaler=accelerator.scaler, span=300.0)
    for (x,) in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(x))
            meter.micro_batch(len(x))
            if accelerator.sync_gradients:
                meter.step()
            optimizer.step()
            optimizer.zero_grad()
    return summary(meter) | {"processes": accelerator.num_processes}


def _trainer(rank):
    """Hugging Face's Trainer: 16 examples per worker, twice a step."""
    as_torchrun(rank)
    settings = {"ddp_backend": "gloo", "disable_tqdm": True, "gradient_accumulation_steps": 2}
    callback = noise_meter.trainer_callback(span=300)
    meter = fit_trainer(callback, points(1, 25_600), tempfile.gettempdir(), **settings)
    return summary(meter) | {"refusal": meter.refusal}


def _cases(rank, names):
    return {name: globals()[name](rank) for name in names}


@pytest.fixture(scope="module")
def two():
    """What two processes find in all cases."""
    return processes.launch(_cases, 2, 300, ["_planted", "_accumulated", "_scaler", "_jobs", "_meters"])


def test_training_with_the_hook_is_the_same_to_the_last_bit():
    """In three processes, where a mean of gradients is not exact in binary."""
    paths = processes.launch(_paths, 3, 300)
    ends = paths[0]
    for inside, plain, listening in zip(INSIDE, paths[::2], paths[1::2], strict=True):
        assert torch.equal(plain, listening) and plain.isfinite().all()
        same = torch.equal(plain[: len(ends)], ends)
        assert same == (inside == "none"), "the hook inside did its work"


@pytest.mark.parametrize("case", ["_planted inside", "_planted unequal", "_meters accumulated", "_meters at once"])
def test_a_planted_noise_scale_is_found_between_processes(two, case):
    kind, name = case.split(maxsplit=1)
    finds_what_is_planted(two[kind][name])


def test_processes_whose_gradients_are_not_averaged_or_that_may_leave_early_are_refused(two):
    """Plain ones, those in join(), both kinds of FSDP."""
    for refusal in two["_meters"]["refused"]:
        assert refusal.startswith("processes: 2 is not allowed; it must be 1, unless the model")
    assert two["_meters"]["views"] == 3


def test_the_trainer_in_two_processes_finds_a_planted_noise_scale():
    pytest.importorskip("transformers", reason="Hugging Face's transformers are not installed")
    pytest.importorskip("accelerate", reason="its Trainer needs accelerate")
    outcome = processes.launch(_trainer, 2, 300)
    assert not outcome["refusal"]
    finds_what_is_planted(outcome)


@pytest.mark.parametrize("accumulated", [1, 2])
def test_accelerate_in_two_processes_finds_a_planted_noise_scale(accumulated):
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    outcome = processes.launch(_accelerate, 2, 300, accumulated)
    assert outcome.pop("processes") == 2
    for name in ("trace", "square"):  # of a loss that accelerate divides by the passes of a step
        outcome[name] *= accumulated**2
    finds_what_is_planted(outcome)


def test_accumulated_gradients_are_those_of_all_their_examples(two):
    """A planted noise scale, from eight groups and from two; being told all of a worker's is noticed."""
    outcomes = two["_accumulated"]
    assert outcomes["of a pass"] == outcomes["counted"]
    assert outcomes["counted"]["trace"] == pytest.approx(PLANTED, rel=0.1) == outcomes["at once"]["trace"]
    assert outcomes["of all"].startswith("examples: 32 is not allowed; it must be the number in each of 4")


def test_the_hook_knows_the_scalers_scale_and_leaves_out_what_it_skips(two):
    plain, scaled = (two["_scaler"][name] for name in ("plain", "scaled"))
    assert scaled == pytest.approx(plain | {"skipped": 2}, rel=1e-6)


def test_half_precision_static_graphs_and_short_batches_are_listened_to(two):
    outcomes = two["_jobs"]
    plain = outcomes["plain"]
    assert outcomes["static graph"] == plain and outcomes["bfloat16"] == pytest.approx(plain, rel=0.02)
    assert outcomes["short"] == plain | {"skipped": 1}, "left out: another number than it was told"
    assert outcomes["sparse"].startswith("gradient: 'a sparse tensor")
