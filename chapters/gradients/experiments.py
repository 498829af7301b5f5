"""What this chapter measures besides searches."""

from __future__ import annotations

from collections.abc import Sequence

from lib.probes import timings


def _messages() -> Sequence:
    import torch  # slow to import

    from chapters.gradients import message_times

    on_a_gpu = message_times.ON_A_GPU if torch.cuda.is_available() else ()
    return (*message_times.PLANNED, *on_a_gpu)


EXPERIMENTS = {"timings-messages": timings.experiment("compressors and collectives", _messages)}
