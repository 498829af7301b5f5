"""A network trained on half of Tiny Shakespeare, and its further data: the rest in capitals."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from chapters.disputed.lora_base import DIGEST, MODEL, TEXT, WINDOWS
from lib import require
from lib.engine import lockstep
from lib.engine.batched import BatchedExecutor
from lib.engine.flattening import flatten
from lib.methods import METHODS
from lib.workloads import datasets, models, texts
from lib.workloads.datasets import Split
from lib.workloads.tasks import TASKS

STEPS, BATCH_SIZE, RATE = 3000, 32, 3e-3  # of the base; the rate decays to zero
SYMBOLS = [*"\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"]


def capitals(values: np.ndarray) -> np.ndarray:
    """Small letters turned into capitals, both as indices into SYMBOLS, int64 [characters]."""
    symbols = np.array(SYMBOLS)
    return np.searchsorted(symbols, np.char.upper(symbols))[values]


def other(split: int) -> list[Split]:
    """Windows of the second half in capitals: this split's training and validation parts."""
    text = datasets.characters(TEXT)
    parts = texts.examples(capitals(text[len(text) // 2 :]), split, WINDOWS)
    return [Split(*map(torch.from_numpy, part)) for part in parts[:2]]


def trained(steps: int = STEPS) -> Tensor:
    """The base [P] after `steps` of its STEPS of Adam on the first half, as it was made."""
    text = datasets.characters(TEXT)[: texts.LENGTHS[TEXT] // 2]
    starts = np.arange(0, len(text) - texts.CONTEXT - 1, texts.CONTEXT)
    x, y = map(torch.from_numpy, texts.windows(text, starts))
    executor = BatchedExecutor(models.build(MODEL), task=TASKS["cross-entropy"])
    w, adam = flatten(models.fresh(MODEL, 0))[None], METHODS["adam"]
    state, order = adam.begin(w.clone(), ()), lockstep.batches(len(x), BATCH_SIZE, 0)
    betas = {"beta1": torch.tensor([[0.9]]), "beta2": torch.tensor([[0.999]])}
    for k in range(1, steps + 1):
        pick = next(order)
        rate = torch.tensor([[RATE]]) * (1 - (k - 1) / STEPS)
        g = executor.gradients(w, x[pick], y[pick])[1]
        adam.step(w, g, state, {"learning_rate": rate, **betas}, k, ())
    return w[0]


def base() -> Tensor:
    """The base [P], stored in half precision.  Raises ValueError for any other weights."""
    with np.load(Path(__file__).with_name("base.npz")) as arrays:
        w = arrays["w"]
    digest = hashlib.sha256(w.tobytes()).hexdigest()[:16]
    require(digest == DIGEST, "base.npz", digest, f"the weights whose digest is {DIGEST}")
    return torch.from_numpy(w.astype(np.float32))
