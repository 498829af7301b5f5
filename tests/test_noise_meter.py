"""The noise scale of one process: estimates on planted noise, training untouched, and callbacks in their libraries' order."""

import ast
import contextlib
import io
import math
import re
import sys
import textwrap
import types
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from lib import ROOT
from lib.workers import noise_hook, noise_lightning, noise_meter, noise_trainer
from lib.workers.noise_meter import (
    Averages,
    NoiseMeter,
)

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


@pytest.mark.parametrize(("sketch", "sizes"), [(16, (16, 16))])
def test_a_planted_noise_scale_is_found(sketch, sizes):
    found = heard(NoiseMeter(Quadratic(), 16, sketch=sketch, span=300.0), range(400), sizes).estimate()
    assert found.low < PLANTED < found.high < 3 * PLANTED and found.steps == 400
    assert found.trace == pytest.approx(PLANTED, rel=0.1) and found.square == pytest.approx(1, rel=0.4)


def test_it_agrees_with_the_hook_on_the_same_gradients():
    meter, averages = heard(NoiseMeter(Quadratic(), 16, span=50.0), range(60)), Averages(50.0)
    for k in range(60):
        g = -points(k, 32).view(2, 16, D).mean(1).double()  # the gradients of two workers
        small, big = g.square().sum(1).mean().item(), g.mean(0).square().sum().item()
        averages = averages.after(*noise_hook.of_step(small, big, 2, 16))
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


@pytest.mark.parametrize("sketch", [32])
def test_training_is_the_same_with_and_without_to_the_last_bit(sketch):
    plain, metered = trained(lambda model: None), trained(lambda model: NoiseMeter(model, 12, sketch=sketch))
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
