"""The machine that measures: one thread per process, and how records describe it."""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import functools
import hashlib
import os
import platform
import re
import warnings
from pathlib import Path

import torch
from torch.nn import functional

from lib import MEASURING, SOURCE, code

if code(MEASURING) != SOURCE:
    raise RuntimeError(
        "lib was edited after its first modules were loaded; restart, "
        "so that records name the code in use"
    )


def device_name(device: str) -> str:
    """The device's name in a record: its model, if torch knows it."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu ({torch.backends.cpu.get_cpu_capability()})" if device == "cpu" else device


def processor() -> str:
    """This processor, on Linux as `described`; elsewhere as Python names it."""
    file = Path("/proc/cpuinfo")
    text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    return described(text) or platform.processor() or platform.machine()


def described(cpuinfo: str) -> str:
    """Model name, family and number, on which matrix products depend, from the text of
    /proc/cpuinfo; of several processors, the first.
    """
    names = {"model name": "", "cpu family": "family ", "model": "model "}
    lines = (re.search(rf"^{name}[ \t]*:[ \t]*(.*)$", cpuinfo, re.M) for name in names)
    return ", ".join(word + line[1] for word, line in zip(names.values(), lines) if line)


def libraries() -> str:
    """The libraries that multiply for torch on a CPU, with versions, as far as torch names them."""
    built = torch.__config__.show()
    blas = re.findall(r"BLAS_INFO=(\w+)", built)
    blas += re.findall(r"Math Kernel Library Version ([\d.]+)", built)
    others = [f"oneDNN {version}" for version in re.findall(r"MKL-DNN v([\d.]+)", built)]
    ceiling = os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper()  # limits what oneDNN may use
    return ", ".join(filter(None, [" ".join(blas), *others, ceiling and f"at most {ceiling}"]))


def rounding(precision: str) -> str:
    """Digest, eight hex digits, of how this process rounds: equal if a few products and a
    convolution agree to the bit.

    In single precision they include products of sparse matrices, if torch has them (from MKL).
    """
    return _rounding(getattr(torch, precision), torch.get_num_threads())


@functools.lru_cache
def _rounding(dtype: torch.dtype, threads: int) -> str:
    """threads: sums are split among them, so their number is part of the arithmetic."""
    random = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=random).to(dtype).requires_grad_()

    x, w, several = drawn(64, 300), drawn(100, 300), drawn(3, 300, 10)
    images, kernels = drawn(16, 8, 14, 14), drawn(16, 8, 5, 5)
    channels_last = images.contiguous(memory_format=torch.channels_last)
    maps = functional.conv2d(channels_last, kernels, padding=2)
    hidden = functional.linear(x, w)
    results = [hidden, x.expand(3, -1, -1) @ several, maps, hidden.log_softmax(1)]
    sum(result.float().square().mean() for result in results).backward()
    results += [leaf.grad for leaf in (x, w, several, images, kernels)]
    if dtype == torch.float32 and torch.backends.mkl.is_available():
        # A sparse matrix by x, and its gradient for hidden
        with warnings.catch_warnings(), torch.no_grad():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
            matrix = (w * (w > 1.5)).to_sparse_csr()
            gradient = torch.sparse.sampled_addmm(matrix, hidden.T, x, beta=0)
            results += [matrix @ x.T, gradient.values()]
    bits = b"".join(result.detach().float().numpy().tobytes() for result in results)
    return hashlib.sha256(bits).hexdigest()[:8]


def origin(device: str, precision: str | None = None) -> dict:
    """What something is measured with, as its record says.

    processor, libraries, rounding: what may differ between machines of the same name, and does if
    their results differ in the last bit; rounding is that of the precision, or of single precision,
    and only recorded for CPUs.

    Args:
        precision: of the arithmetic; None leaves it out.
    """
    about = {
        "torch": torch.__version__,
        "device": device_name(device),
        "processor": processor(),
        "libraries": libraries(),
    }
    if torch.device(device).type == "cpu":
        about["rounding"] = rounding(precision or "float32")
    if precision:
        about["precision"] = precision
    return {**about, "threads": torch.get_num_threads(), "source": SOURCE}


def provenance(measured_with: dict, wall_s: float, **more) -> dict:
    """A record's first line, apart from what was measured: date, origin, more, seconds."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"date": date, **measured_with, **more, "wall_s": round(wall_s, 6)}


def use_one_core() -> None:
    """Set up this process to train on one core: one thread, denormal numbers as zeros, freed memory
    kept.

    Gradients below 1e-38, of classes that a network has long ruled out, doubled the time of a step
    in single precision.
    """
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    # So that single precision is as exact on a GPU as on a CPU
    torch.backends.cudnn.allow_tf32 = False
    # Ask glibc to keep freed large blocks: faulting them in again took half of a Simple-CNN
    # step.
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL("libc.so.6").mallopt
        m_trim_threshold, m_top_pad, m_mmap_max = -1, -2, -4
        mallopt(m_mmap_max, 0)
        mallopt(m_trim_threshold, 2**31 - 1)
        mallopt(m_top_pad, 64 * 2**20)
