"""The machine that measures: one thread a process, and what a record says of it."""

from __future__ import annotations

import contextlib
import ctypes
import datetime

import torch

from lib import MEASURING, SOURCE, code

if code(MEASURING) != SOURCE:
    raise RuntimeError("lib was edited after its first modules had been loaded; start anew, so that a record names its code")


def device_name(device: str) -> str:
    """What the record calls the device: its model where torch knows it."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu ({torch.backends.cpu.get_cpu_capability()})" if device == "cpu" else device


def origin(device: str, precision: str | None = None) -> dict:
    """What something is measured with, as its record tells; precision: of the arithmetic, None to leave it out."""
    return {
        "torch": torch.__version__,
        "device": device_name(device),
        **({"precision": precision} if precision else {}),
        "threads": torch.get_num_threads(),
        "source": SOURCE,
    }


def provenance(measured_with: dict, wall_s: float, **more) -> dict:
    """What the first line of every record says besides what was measured: the date, the origin, more, and the seconds taken."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"date": date, **measured_with, **more, "wall_s": round(wall_s, 2)}


def use_one_core() -> None:
    """Set this process up, from here on, to train on its own: one thread, denormal numbers as zeros, freed memory kept.

    Gradients below 1e-38, of classes that a network has long ruled out, doubled the time of a step in single precision.
    """
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    # Ask glibc to keep large blocks when they are freed: faulting them in anew took half of a Simple-CNN step.
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL("libc.so.6").mallopt
        m_trim_threshold, m_top_pad, m_mmap_max = -1, -2, -4
        mallopt(m_mmap_max, 0)
        mallopt(m_trim_threshold, 2**31 - 1)
        mallopt(m_top_pad, 64 * 2**20)
