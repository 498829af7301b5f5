"""From steps to hours and money: the time of a step on given hardware, and what a goal costs at every batch size."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

BYTES = 4  # per weight and per gradient entry


@dataclass(frozen=True)
class Hardware:
    """Equal devices that share every batch and add up their gradients in a ring.

    throughput: examples per second of one device that has enough to do.  saturation: examples per device below which a
    step gets no faster.  bandwidth: bytes per second between neighbours in the ring.  latency: seconds per message.
    price: of one device for an hour.  Raises ValueError naming the field, its value and what is allowed.
    """

    devices: int = 1
    throughput: float = 10_000.0
    saturation: float = 1.0
    bandwidth: float = math.inf
    latency: float = 0.0
    price: float = 1.0

    def __post_init__(self):
        for field in fields(self):
            value, zero = getattr(self, field.name), field.name in ("latency", "price")
            if not (value >= 0 if zero else value > 0):
                allowed = "zero or positive" if zero else "positive"
                raise ValueError(f"{field.name}: {value!r} is not allowed; it must be {allowed}")
        if self.devices != int(self.devices):
            raise ValueError(f"devices: {self.devices!r} is not allowed; it must be a whole number from 1")


def step_time(hardware: Hardware, batch_size: np.ndarray, parameters: int) -> np.ndarray:
    """Seconds per training step [n] at these batch sizes [n] for a network with so many parameters.

    Compute: the share of a device, or its saturation if that is more, over its throughput.  Communication: a ring
    all-reduce sends 2 (W - 1) messages of 1/W of the gradient; not overlapped with compute.
    """
    w = hardware.devices
    compute = np.maximum(np.asarray(batch_size, float) / w, hardware.saturation) / hardware.throughput
    messages = 2 * (w - 1)
    return compute + messages * (BYTES * parameters / w / hardware.bandwidth + hardware.latency)


def to_goal(
    hardware: Hardware, batch_size: np.ndarray, steps: np.ndarray, parameters: int
) -> tuple[np.ndarray, np.ndarray]:
    """Seconds and price [n] to reach the goal in `steps` [n] at these batch sizes [n]."""
    seconds = np.asarray(steps, float) * step_time(hardware, batch_size, parameters)
    return seconds, seconds / 3600 * hardware.devices * hardware.price


# The same in the language of the charts; a test evaluates both.
EXPRESSIONS = {
    "seconds": "datum.steps * (max(datum.batch_size / {devices}, {saturation}) / {throughput} + 2 * ({devices} - 1) * "
    f"({BYTES} * datum.parameters / {{devices}} / {{bandwidth}} + {{latency}}))",
    "cost": "datum.seconds / 3600 * {devices} * {price}",
}
