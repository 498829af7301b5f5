"""How much a training step of a fully connected network computes."""

from __future__ import annotations

import itertools


def multiply_adds(sizes: tuple[int, ...]) -> int:
    """Per example, for layers of these sizes from the inputs to the outputs: forward, backward by
    weights and by activations.

    Nobody asks for derivatives by the inputs, so the first matrix counts twice and all others three
    times.
    """
    first, *rest = (a * b for a, b in itertools.pairwise(sizes))
    return 2 * first + 3 * sum(rest)
