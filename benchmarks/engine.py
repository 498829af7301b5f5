"""What the engine saves and how fast it is, as ratios measured in one run.

    python -m benchmarks.engine            # all nine; MNIST and the text need BOOK_DATASETS or a network; about half an hour
    python -m benchmarks.engine digits     # only the digits' throughput; seconds
    python -m benchmarks.engine decoder    # only the language model's floating-point rate; a minute

Run it on an idle machine.  Every ratio compares two things measured side by side, alternately, by their medians.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import joblib
import numpy as np
import torch
from torch.nn import functional

import benchmarks
from lib.engine import flattening, lockstep, sequential
from lib.measuring import machine, one_search
from lib.methods import method
from lib.studies.search import Search
from lib.workloads import catalogue, datasets, models, texts
from lib.workloads.tasks import TASKS

ROUNDS = 5
HORIZON = 8_000  # steps for which the exhaustive protocol is followed


def engine_rate(cell: Search, steps: int) -> float:
    """Trial-steps per second of the engine on a cell that nobody finishes: updates only, checks none."""
    machine.use_one_core()
    data, trials = (
        datasets.load(catalogue.workload(cell.workload).dataset),
        one_search.start(cell),
    )
    executor = one_search.executor(cell)
    options = {
        "method": method(cell.algorithm),
        "batch_size": cell.batch_size,
        "goals": (-1.0,),
        "checks": "every-100",
    }
    lockstep.train(
        executor, trials, data.train, data.validation, max_steps=2, **options
    )  # warm up
    began = time.perf_counter()
    outcome = lockstep.train(
        executor, trials, data.train, data.validation, max_steps=steps, **options
    )
    return outcome.trial_steps / (time.perf_counter() - began)


def plain_rate(cell: Search, steps: int, threads: int) -> float:
    """Trial-steps per second of the loop that everybody writes: one network, float32, an optimiser of torch.optim."""
    torch.set_num_threads(threads)
    work = catalogue.workload(cell.workload)
    split = datasets.load(work.dataset).train
    net = models.initialise(models.build(work.model), 0)
    adam = cell.algorithm == "adam"
    optimiser = (
        torch.optim.Adam(net.parameters())
        if adam
        else torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    )
    order = lockstep.batches(len(split), cell.batch_size, 0)
    for step in range(steps + 3):
        if step == 3:
            began = time.perf_counter()
        pick = next(order)
        optimiser.zero_grad()
        TASKS[work.task].loss(net(split.x[pick]), split.y[pick]).backward()
        optimiser.step()
    return steps / (time.perf_counter() - began)


def alternately(*measures) -> list[float]:
    """Medians of several measures taken in turn: A B A B ..."""
    return list(np.median([[measure() for measure in measures] for _ in range(ROUNDS)], axis=0))


def digits() -> None:
    """100 stacked trials of the digits' MLP at batch size 16 against a plain loop, one process each."""
    cell = Search("digits-mlp", 16, trials=100)
    ours, plain = alternately(
        lambda: engine_rate(cell, 300), lambda: plain_rate(cell, 3000, threads=1)
    )
    print(
        f"digits-mlp, B = 16, 100 trials: engine {ours:,.0f} trial-steps/s, plain loop {plain:,.0f}: {ours / plain:.1f} x"
    )


def decoder_flops(module: torch.nn.Module) -> float:
    """Floating-point operations of one sequence, forward and back: 6 a weight of a product and token, and attention's own.

    Attention multiplies queries by keys, and answers by values, for all pairs of places; the half that causality leaves out
    is counted, as is usual.
    """
    gathered = {"symbol.weight", "place.weight"}  # rows are read, not multiplied
    weights = sum(
        p.numel()
        for name, p in module.named_parameters()
        if p.ndim == 2 and name not in gathered
    )
    width, blocks = module.head.weight.shape[1], len(module.blocks)
    return texts.CONTEXT * (6 * weights + 12 * blocks * texts.CONTEXT * width)


def decoder() -> None:
    """Sixteen stacked trials of the language model with Adam against a plain loop on one core, in GFLOP/s."""
    lines, flops = [], decoder_flops(models.build(catalogue.workload("shakespeare").model))
    for size, steps in ((1, 100), (4, 40), (16, 10), (64, 3)):
        cell = Search("shakespeare", size, "adam", trials=16)
        exact = Search("shakespeare", size, "adam", trials=16, precision="float32")
        rates = alternately(
            lambda cell=cell, steps=steps: engine_rate(cell, steps),
            lambda cell=exact, steps=steps: engine_rate(cell, steps),
            lambda cell=cell, steps=steps: plain_rate(cell, 4 * steps, threads=1),
        )
        ours, single, plain = (1e-9 * rate * size * flops for rate in rates)
        lines.append(
            f"B = {size}: {ours:.0f}, in float32 {single:.0f}; plain loop {plain:.0f} ({ours / plain:.1f} x)"
        )
    print("Decoder, 16 trials, GFLOP/s on one core, update included:\n  " + "\n  ".join(lines))


def rate_of(call: Callable[[], object], count: float, rounds: int = 20) -> float:
    """How much a call does per second that does so much: floating-point operations, or examples."""
    began = time.perf_counter()
    for _ in range(rounds):
        call()
    return rounds * count / (time.perf_counter() - began)


def product_rate(dtype: torch.dtype, size: int = 1024) -> float:
    """Floating-point operations per second of a product of two square matrices on this core: what a step can at most reach."""
    a, b = torch.rand(2, size, size).to(dtype)
    return rate_of(lambda: a @ b, 2 * size**3)


def simple_cnn_flops() -> float:
    """Floating-point operations of one image in Simple-CNN, forward and back; no derivative of the image is asked for."""
    first, second, last = (
        24 * 24 * 32 * 25,
        8 * 8 * 64 * 32 * 25,
        1024 * 10,
    )  # multiply-adds of its layers
    return 2 * (2 * first + 3 * second + 3 * last)


def peak() -> None:
    """Simple-CNN's steps, updates included, beside a product of matrices in the same arithmetic, on one core."""
    lines = []
    for size in (16, 64, 256, 1024):
        cell, steps = Search("mnist-simple-cnn", size, "sgd", trials=1), max(3, 4096 // size)
        step, product = alternately(
            lambda cell=cell, steps=steps: (
                engine_rate(cell, steps) * cell.batch_size * simple_cnn_flops()
            ),
            lambda: product_rate(torch.bfloat16),
        )
        lines.append(
            f"{step / product:.0%} at {size:,} ({1e-9 * step:.0f} of {1e-9 * product:.0f} GFLOP/s)"
        )
    print(
        f"Simple-CNN, one core: of what a product of matrices reaches, a step reaches {', '.join(lines)}"
    )


def convolutions() -> None:
    """Simple-CNN's two convolutions at batch size 64: what a step takes, and the same as products of patches that lie ready.

    All as shares of what a product of large matrices reaches in the same arithmetic, on one core.
    """
    machine.use_one_core()
    for name, inputs, outputs, side in (("first", 1, 32, 28), ("second", 32, 64, 12)):
        lines, flops = [], 2 * 64 * (side - 4) ** 2 * 25 * inputs * outputs
        for product, pair in _both_ways(64, inputs, outputs, side).items():
            if (name, product) == (
                "first",
                "by inputs",
            ):  # nobody asks for the derivative of an image
                continue
            rates = [functools.partial(rate_of, call, flops) for call in pair]
            step, flat, most = alternately(*rates, lambda: product_rate(torch.bfloat16))
            lines.append(f"{product} {step / most:.0%}, of patches {flat / most:.0%}")
        print(
            f"Simple-CNN, B = 64, {name} convolution, shares of a large product's rate: {'; '.join(lines)}"
        )


def _both_ways(
    batch_size: int, inputs: int, outputs: int, side: int
) -> dict[str, tuple[Callable, Callable]]:
    """The products of a convolution by 5 x 5 kernels in bfloat16, by name: as a step takes them, and of patches."""
    places = side - 4
    images, kernel = _bfloat16(batch_size, inputs, side, side), _bfloat16(outputs, inputs, 5, 5)
    errors = _bfloat16(batch_size, outputs, places, places)
    patches, weights = (
        _bfloat16(batch_size * places**2, 25 * inputs),
        _bfloat16(25 * inputs, outputs),
    )
    rows = _bfloat16(len(patches), outputs)  # errors, a row each place

    def back(by_inputs: bool) -> object:
        wanted = [by_inputs, not by_inputs, not by_inputs]
        geometry = (
            [outputs],
            [1, 1],
            [0, 0],
            [1, 1],
            False,
            [0, 0],
            1,
        )  # bias, stride, padding, dilation, not transposed
        return torch.ops.aten.convolution_backward(errors, images, kernel, *geometry, wanted)

    return {
        "forward": (lambda: functional.conv2d(images, kernel), lambda: patches @ weights),
        "by weights": (lambda: back(False), lambda: rows.T @ patches),
        "by inputs": (lambda: back(True), lambda: rows @ weights.T),
    }


def _bfloat16(*shape: int) -> torch.Tensor:
    """Random numbers, images with their channels last, as the engine has them."""
    drawn = torch.randn(shape).bfloat16()
    return drawn.contiguous(memory_format=torch.channels_last) if len(shape) == 4 else drawn


def simple_cnn() -> None:
    """Simple-CNN at batch size 64: one engine process per core against a plain loop that may use every core."""
    cores = joblib.cpu_count()
    # One trial that neither dies nor diverges (learning rate 0.01): dead trials would flatter the engine.
    cell = Search("mnist-simple-cnn", 64, "sgd", trials=1)
    pool = joblib.Parallel(n_jobs=cores)
    pool(
        joblib.delayed(engine_rate)(cell, 2) for _ in range(cores)
    )  # start the processes, load the data

    def ours() -> float:
        return sum(pool(joblib.delayed(engine_rate)(cell, 150) for _ in range(cores)))

    fast, plain = alternately(ours, lambda: plain_rate(cell, 60, threads=cores))
    single = float(
        np.median([pool([joblib.delayed(engine_rate)(cell, 150)])[0] for _ in range(3)])
    )
    print(
        f"Simple-CNN, B = 64: engine {64 * fast:,.0f} examples/s on {cores} cores ({64 * single:,.0f} on one), plain float32 "
        f"loop with {cores} threads {64 * plain:,.0f}: {fast / plain:.1f} x (one core: {single / plain:.1f} x)"
    )


def recorded() -> None:
    """ResNet-8's gradients for 16 trials on a graphics processor: passes recorded and launched together against Python's."""
    if not torch.cuda.is_available():
        print("ResNet-8 on a graphics processor: torch finds none here")
        return
    lines = []
    for size in (8, 32, 128, 512, 2048):
        w = torch.stack(
            [flattening.flatten(models.fresh("resnet-8", seed)) for seed in range(16)]
        ).cuda()
        x, y = torch.randn(size, 3, 32, 32), torch.randint(10, (size,)).cuda()

        def rate(kind: type[sequential.SequentialExecutor], w=w, x=x, y=y) -> float:
            executor = kind(models.build("resnet-8"), torch.bfloat16, "cuda")
            inputs = executor.inputs(x)

            def call() -> None:
                executor.gradients(w, inputs, y)
                torch.cuda.synchronize()

            call()  # warm up
            return rate_of(call, len(y) * len(w), rounds=5)

        plain = sequential.SequentialExecutor
        ours, alone = alternately(
            lambda rate=rate: rate(sequential.CapturedExecutor),
            lambda rate=rate, plain=plain: rate(plain),
        )
        lines.append(f"{ours / alone:.1f} x at {size:,} ({ours:,.0f} examples/s)")
    print(
        f"ResNet-8, 16 trials, {torch.cuda.get_device_name()}: recorded over launched one by one {', '.join(lines)}"
    )


def exhaustive() -> None:
    """The published protocol's cost of the MNIST cell at batch size 64: every trial to the goal or to 40,000 steps.

    Trials are followed for HORIZON steps; those still training then are counted with these steps and no more, dead
    ones with the whole budget, since nothing can switch their units on again.
    """
    cell = Search("mnist-simple-cnn", 64, trials=32, hits=32, max_steps=HORIZON)
    machine.use_one_core()
    outcome = one_search.train_search(cell)
    budget, met = catalogue.workload(cell.workload).max_steps, outcome.first[:, 0]
    fifth = np.sort(met)[Search.hits - 1]
    lock_step = np.minimum(outcome.last_step, fifth).sum()
    off = outcome.cause == "dead"
    counted = np.where(off, budget, outcome.last_step)
    open_end = (np.isnan(met) & ~off & (outcome.cause != "diverged")).sum() * (budget - HORIZON)
    print(
        f"MNIST dense, B = 64, {cell.trials} trials: lock step {lock_step:,.0f} trial-steps. Exhaustive: at least "
        f"{counted.sum():,} ({counted.sum() / lock_step:.1f} x), {off.sum()} trials off at the full budget, "
        f"{np.isnan(met).sum() - off.sum()} counted for {HORIZON:,} steps only; at most {counted.sum() + open_end:,} "
        f"({(counted.sum() + open_end) / lock_step:.1f} x)."
    )


if __name__ == "__main__":
    measures = {"digits": digits, "decoder": decoder, "peak": peak,
             "convolutions": convolutions, "simple_cnn": simple_cnn, "recorded": recorded,
             "exhaustive": exhaustive}  # fmt: skip
    for name in benchmarks.chosen(__doc__, measures):
        measures[name]()
