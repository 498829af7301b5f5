"""Training methods: how weights follow from gradients, and what is tuned of each; a line here for
each.

Nothing here needs PyTorch to be imported.
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
# Of networks of linear layers alone; what goes through METHODS is for any network.
LOCAL = _by_name(*local_alignment.ALL)
# Searched on one network and not timed, so that lists of METHODS go without
ROTATED = _by_name(*soap.ALL)
EVERY = METHODS | LOCAL | ROTATED
WITH_MOMENTUM = ("momentum", "nesterov")  # of which the papers' claims on momentum speak


def method(name: str) -> Method:
    """Look a training method up, or read a reader's own (`lib.methods.own_method`); or make one of
    a class of torch.optim (`lib.methods.optimisers`).

    NAME+decay is a method of the book's with weight decay (`lib.methods.variants`).  Raises
    ValueError naming the allowed.
    """
    if isinstance(name, str) and name in EVERY:
        return EVERY[name]
    if in_file(name):
        from lib.methods import own_method  # brings PyTorch, which is slow to import

        return own_method.load(name)
    if optimisers.is_class(name):
        return optimisers.named(name)
    plain = name.removesuffix(variants.SUFFIX) if isinstance(name, str) else name
    allowed = f"one of {', '.join(EVERY)}, or torch.optim:CLASS, or file.py:function"
    require(isinstance(name, str) and plain in EVERY, "algorithm", name, allowed)
    return variants.decayed(EVERY[plain])


in_file = own.is_own  # whether the name of a method is that of a function in a reader's file


# As the book spells it
MethodName = Annotated[str, AfterValidator(lambda name: method(name).name)]
