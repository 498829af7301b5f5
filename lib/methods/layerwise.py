"""Steps proportional to each layer's weights, for large batches: LARS (You et al. 2017), with and
without warm-up, CLARS (Huo et al. 2020) and LAMB (You et al. 2020).

LARS     v = momentum v + rate ||w|| / ||g|| g, layer by layer; w -= v
CLARS    the same with the batch's mean of per-example gradient norms in place of ||g||; equals LARS
         at batch size 1.  We know of no public code to compare it with.
LAMB     w -= rate ||w|| / ||u|| u, u being Adam's direction, without weight decay

LARS and CLARS update one-dimensional parameters (biases, gains) by plain momentum, as in public
code (facebookresearch/moco-v3).  Their rate is the product of the paper's global rate and trust
coefficient; there is no weight decay.  LAMB scales every tensor, also biases, with Adam's epsilon,
as in public code (mlcommons/algorithmic-efficiency), from which its space is taken.
"""

from __future__ import annotations

from lib.methods import adam
from lib.methods.intervals import LEE2021, Interval
from lib.methods.method import Method
from lib.methods.momentum import begin


def _ratio(w, length):
    """||w|| / length [T, 1] for a layer's weights w [T, n]; 1 where either is zero.  Removed
    weights are zero and do not count.
    """
    size = w.norm(dim=1, keepdim=True)
    return (size / length).where((size > 0) & (length > 0), 1)


def _step(w, g, buffers, drawn, k, layers):
    """With the rate inside the velocity, as in the paper."""
    for n, layer in enumerate(layers):
        if len(layer.shape) > 1:
            part = g[:, layer.where]
            norm = part.norm(dim=1, keepdim=True)
            length = buffers["norms"][:, n : n + 1] if "norms" in buffers else norm
            part.mul_(_ratio(w[:, layer.where], length))
    v = buffers["v"].mul_(drawn["momentum"]).addcmul_(g, drawn["learning_rate"])
    w.sub_(v)


def _warming_step(w, g, buffers, drawn, k, layers):
    """The rate rises linearly from rate / warmup_steps to rate at step warmup_steps, then stays; no
    warm-up if that is 0 or 1.
    """
    warmth = (k / drawn["warmup_steps"]).clamp(max=1)
    _step(w, g, buffers, drawn | {"learning_rate": drawn["learning_rate"] * warmth}, k, layers)


def _clars_begin(w, layers):
    """Velocities, and each parameter tensor's mean per-example gradient norm in the last batch."""
    return begin(w, layers) | {"norms": w.new_zeros(len(w), len(layers))}


def _clars_gradient(executor, w, batch, mask, buffers):
    losses, g, alive, norms = executor.gradients_with_norms(w, *batch, mask)
    buffers["norms"].copy_(norms)
    return losses, g, alive


def _lamb_step(w, g, buffers, drawn, k, layers):
    rate, beta1 = drawn["learning_rate"], drawn["beta1"]
    u = adam.change(g, buffers, 1, beta1, adam.fixed(beta1), k)
    for layer in layers:
        part = u[:, layer.where]
        part.mul_(_ratio(w[:, layer.where], part.norm(dim=1, keepdim=True)))
    w.addcmul_(u, rate, value=-1)


# Equal to those of Lee et al. (2021), and so drawn from a workload's named space as they are.
SPACE = {"learning_rate": Interval(1e-4, 1.0), "momentum": LEE2021["momentum"]}
WARMING = {**SPACE, "warmup_steps": Interval(1.0, 1000.0)}
OF_LAMB = {"learning_rate": Interval(1e-4, 0.1), "beta1": Interval(0.7, 0.95, "reverse-log")}
ALL = (
    Method("lars", "LARS", SPACE, begin, _step),
    Method("lars-warmup", "LARS with warm-up", WARMING, begin, _warming_step),
    Method("clars", "CLARS", SPACE, _clars_begin, _step, _clars_gradient),
    Method("lamb", "LAMB", OF_LAMB, adam.begin, _lamb_step),
)
