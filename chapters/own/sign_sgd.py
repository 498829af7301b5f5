"""An example of a training method of your own: the sign of the averaged gradient (Bernstein et al. 2018, Signum)."""

from lib.methods.intervals import Interval
from lib.methods.method import Method


def begin(w, layers):
    """Averages of the gradient, zero at first: a row for each trial, as all that is remembered from step to step."""
    return {"mean": w.new_zeros(w.shape)}


def step(w, g, buffers, drawn, k, layers):
    """mean = momentum mean + (1 - momentum) g; w -= rate sign(mean).  Everything in place, no row depends on another."""
    mean = buffers["mean"]
    mean.mul_(drawn["momentum"]).addcmul_(g, 1 - drawn["momentum"])
    w.addcmul_(mean.sign(), drawn["learning_rate"], value=-1)


def sign_sgd():
    """The function that the name of the method ends with; it says what is tuned, and from where it is drawn."""
    space = {"learning_rate": Interval(1e-5, 0.1), "momentum": Interval(0.5, 0.99, "reverse-log")}
    return Method("sign-sgd", "signs of gradients", space, begin, step)
