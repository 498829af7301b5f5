"""The machine that measures: one thread a process, and what a record calls it."""

from __future__ import annotations

import contextlib
import ctypes

import torch


def device_name(device: str) -> str:
    """What the record calls the device: its model where torch knows it."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu ({torch.backends.cpu.get_cpu_capability()})" if device == "cpu" else device


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
