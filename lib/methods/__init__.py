"""Training methods: how each updates weights from gradients, and what is tuned; a line here for
each.

Importing this does not import PyTorch.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from lib import own, require
from lib.methods import (
    adam,
    kfac,
    layerwise,
    local_alignment,
    momentum,
    muon,
    optimisers,
    soap,
    variants,
)
from lib.methods.method import Method


def _by_name(*methods: Method) -> dict[str, Method]:
    return {m.name: m for m in methods}


METHODS = _by_name(
    *(momentum.SGD, momentum.METHOD, momentum.NESTEROV, adam.METHOD),
    *layerwise.ALL,  # made for large batches
    *(adam.FIXED, adam.LASTING, momentum.AVERAGED, muon.METHOD, *kfac.ALL),
)
# Only for networks of linear layers; METHODS are for any network.
LOCAL = _by_name(*local_alignment.ALL)
# Searched on one network only and not timed, so not part of METHODS
ROTATED = _by_name(*soap.ALL)
EVERY = METHODS | LOCAL | ROTATED
WITH_MOMENTUM = ("momentum", "nesterov")  # what the papers' claims about momentum refer to


def method(name: str) -> Method:
    """Look up a training method, load a reader's own (`lib.methods.own_method`), or make one from a
    class of torch.optim (`lib.methods.optimisers`).

    NAME+decay is one of the book's methods with weight decay (`lib.methods.variants`).  Raises
    ValueError naming those allowed.
    """
    if isinstance(name, str) and name in EVERY:
        return EVERY[name]
    if in_file(name):
        from lib.methods import own_method  # imports PyTorch, which is slow

        return own_method.load(name)
    if isinstance(name, str) and name.startswith(optimisers.PREFIX):
        return optimisers.named(name)
    plain = name.removesuffix(variants.SUFFIX) if isinstance(name, str) else name
    allowed = f"one of {', '.join(EVERY)}, or torch.optim:CLASS, or file.py:function"
    require(isinstance(name, str) and plain in EVERY, "algorithm", name, allowed)
    return variants.decayed(EVERY[plain])


in_file = own.is_own  # whether a method's name is that of a function in a reader's file


# Any spelling, converted to the book's
MethodName = Annotated[str, AfterValidator(lambda name: method(name).name)]
