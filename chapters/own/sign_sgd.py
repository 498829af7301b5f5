"""A training method of your own: the sign of the averaged gradient (Bernstein et al. 2018)."""

from lib.methods.intervals import Interval
from lib.methods.method import Method


def begin(w, layers):
    """Averages of the gradient, zero at first: one row per trial, like all state between steps."""
    return {"mean": w.new_zeros(w.shape)}


def step(w, g, buffers, drawn, k, layers):
    """mean = momentum mean + (1 - momentum) g; w -= rate sign(mean).  Everything in place, no row depends on another."""
    mean = buffers["mean"]
    mean.mul_(drawn["momentum"]).addcmul_(g, 1 - drawn["momentum"])
    w.addcmul_(mean.sign(), drawn["learning_rate"], value=-1)


def sign_sgd():
    """The function at the end of the method's name: says what is tuned, and over which ranges."""
    space = {"learning_rate": Interval(1e-5, 0.1), "momentum": Interval(0.5, 0.99, "reverse-log")}
    return Method("sign-sgd", "signs of gradients", space, begin, step)
