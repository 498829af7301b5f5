"""Adam (Kingma and Ba 2015), with bias correction, as in PyTorch.

Also with beta2 fixed at 0.999, or set by a half-life in examples, beta2 = 2^(-B / half-life)
(Marek et al. 2025).
"""

from __future__ import annotations

from lib.methods.intervals import Interval
from lib.methods.method import Method

EPSILON = 1e-8
BETA2 = 0.999  # of Kingma and Ba (2015), where it is fixed


def begin(w, layers):
    """Averages of the gradient and of its square, initially zero."""
    return {"mean": w.new_zeros(w.shape), "square": w.new_zeros(w.shape)}


def change(g, buffers, rate, beta1, beta2, k):
    """rate mean / (sqrt(square) + epsilon) [T, P], after both averages have taken in g.

    mean = beta1 mean + (1 - beta1) g; square = beta2 square + (1 - beta2) g^2; both divided by
    1 - beta^k to remove bias.
    """
    mean = buffers["mean"]
    square = buffers["square"]
    mean.mul_(beta1).addcmul_(g, 1 - beta1)
    square.mul_(beta2).addcmul_(g.square(), 1 - beta2)
    # Near zero at first, hence inexact in single precision
    unbiased1, unbiased2 = (1 - beta.double() ** k for beta in (beta1, beta2))
    scale = square.sqrt().div_(unbiased2.sqrt().to(g.dtype)).add_(EPSILON)
    return mean.mul((rate / unbiased1).to(g.dtype)).div_(scale)


def step(w, g, buffers, drawn, k, layers):
    """w -= `change`."""
    rate, beta1, beta2 = _drawn(drawn)
    w.sub_(change(g, buffers, rate, beta1, beta2, k))


def drift(buffers, drawn):
    """An upper bound: in j steps without a gradient the mean shrinks by beta1^j, the square's root
    by no more than beta2^(j/2).

    So the sum of their ratios is at most a geometric series in beta1 / sqrt(beta2), or in beta1 if
    epsilon dominates.
    """
    rate, beta1, beta2 = _drawn(drawn)
    ratio = beta1 / beta2.sqrt()
    ahead = (ratio / (1 - ratio)).where(ratio < 1, float("inf")) / buffers["square"].sqrt()
    ahead = ahead.clamp(max=beta1 / (1 - beta1) / EPSILON)
    return -rate * ahead * buffers["mean"] / (1 - beta1)


SPACE = {
    "learning_rate": Interval(1e-5, 0.1),
    "beta1": Interval(1 - 0.5, 1 - 4e-3, "reverse-log"),
    "beta2": Interval(1 - 0.1, 1 - 1e-4, "reverse-log"),
}
METHOD = Method("adam", "Adam", SPACE, begin, step, drift=drift)

# In examples; spans as many decades as 1 - beta2 does in Adam
HALF_LIFE = Interval(100.0, 1e5)


def fixed(beta1):
    """beta2 = `BETA2`, with the shape of beta1."""
    return beta1.new_full((), BETA2).expand_as(beta1)


def _drawn(drawn):
    """Rate, beta1 and beta2, which is drawn, fixed, or set by a half-life: an average of squares
    then halves in that many examples, whatever the batch size.
    """
    rate, beta1 = drawn["learning_rate"], drawn["beta1"]
    if "half_life" in drawn:
        return rate, beta1, 2 ** -(drawn["batch_size"] / drawn["half_life"])
    return rate, beta1, drawn.get("beta2", fixed(beta1))


HELD = {name: SPACE[name] for name in ("learning_rate", "beta1")}
FIXED = Method("adam-fixed", "Adam, β₂ = 0.999", HELD, begin, step, drift=drift)
LASTING = Method(
    "adam-half-life",
    "Adam, half-life in examples",
    {**HELD, "half_life": HALF_LIFE},
    begin,
    step,
    drift=drift,
)
