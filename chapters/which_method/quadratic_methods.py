"""What the noisy quadratic model says of training methods: a preconditioned one is plain SGD on
another model of the kind.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from lib.analysis.noisy_quadratic import Model, best

# Rates, up to the edge of stability at 2 / h
COARSE = np.r_[np.geomspace(1e-7, 1.6, 45), 2 - np.geomspace(0.35, 1e-3, 12)]
FINE = np.linspace(-1, 1, 15)  # between a coarse rate's neighbours


def preconditioned(model: Model, power: float) -> Model:
    """The model on which SGD moves as it does here if the gradient is multiplied by h^(-power),
    power from 0 to 1: with h^(power / 2) w for w.

    Curvature h^(1 - power), noise c h^(-power), and every loss as it was.
    """
    h = model.curvature
    return Model(
        h ** (1 - power), model.noise * h**-power, model.target, model.square * h**power
    )


# examples a batch; half as many take twice the steps, to a percent, and more than a few in any case
SMALL = 0.25


def constants(
    model: Model, momenta: tuple = (0.0,), averages: tuple = (None,)
) -> tuple[float, float]:
    """c1 and c2 of the model's curve by its limits: examples to the target at small batches, fewest
    steps without noise.

    Each at the best constant rate, momentum and average; `best` on a coarse grid of rates, then
    about the best of it. The largest curvature must be one.
    """
    quiet = replace(model, noise=0 * model.noise)
    c1 = _fewest(model, SMALL, momenta, averages) * SMALL
    return c1, _fewest(quiet, 1.0, momenta, averages)


def _fewest(model: Model, batch_size: float, momenta: tuple, averages: tuple) -> float:
    """Fewest steps at one batch size."""
    size = np.array([batch_size])
    _, [(rate, momentum, _)] = best(model, size, COARSE, momenta, averages)
    place = np.abs(COARSE * (1 + momentum) - rate).argmin()
    place = place.clip(1, len(COARSE) - 2)
    low, middle, high = COARSE[place - 1 : place + 2]
    below = middle * (low / middle) ** -FINE
    above = middle * (high / middle) ** FINE
    near = np.where(FINE < 0, below, above)
    steps, _ = best(model, size, near, momenta, averages)
    return float(steps[0])


MOMENTA = (0.0, *(1 - np.geomspace(0.5, 0.005, 9)))
AVERAGES = (None, 0.9, 0.99, 0.999, 0.9999, 0.99999)
# What the model knows of a training method: the power by which it preconditions, whether it has a
# momentum, and an average of the weights.  A layer's length is one number, part of the rate: LARS
# is momentum here, and LAMB is Adam.  Adam divides by the root of a mean square, which noise makes
# h; Muon does so along the singular directions of a layer.
MOMENTUM, ADAPTIVE = (0.0, True, False), (0.5, True, False)
KINDS = {
    "sgd": (0.0, False, False),
    **dict.fromkeys(("momentum", "nesterov", "lars", "lars-warmup", "clars"), MOMENTUM),
    "momentum-ema": (0.0, True, True),
    **dict.fromkeys(("adam", "adam-fixed", "adam-half-life", "lamb", "muon"), ADAPTIVE),
    **dict.fromkeys(("kfac", "kfac-unclipped"), (1.0, True, False)),
}


def predictions(model: Model) -> pd.DataFrame:
    """What the model says of every method of KINDS over SGD, a row each: algorithm, small (c1),
    large (c2) and critical.

    An average helps at small batches alone, and momentum at large ones alone: with both, c1 is that
    of averaged SGD.
    """
    limits = {}
    for kind in set(KINDS.values()):
        power, momentum, average = kind
        turned = preconditioned(model, power)
        c1, c2 = constants(turned, MOMENTA if momentum else (0.0,))
        if average:
            c1, _ = constants(turned, averages=AVERAGES)
        limits[kind] = c1, c2, c1 / c2
    table = pd.DataFrame(
        map(limits.get, KINDS.values()), columns=["small", "large", "critical"]
    )
    return (table / table.iloc[0]).assign(algorithm=[*KINDS])  # SGD is the first
