"""SOAP (Vyas et al. 2024): Adam on the axes of a matrix's averaged products G G^T and G^T G.

Every weight of a linear layer or of a convolution is a matrix [outputs, the rest], as for Muon.
The averages decay like Adam's average of squares.  The axes start as the eigenvectors of the first
step's products and approach those of the averages, one round of orthogonal iteration after another.
All other parameters move by Adam.  As in the authors' code, the first step moves nothing.
"""

from __future__ import annotations

import functools

from lib.methods import adam
from lib.methods.method import Method, aligned, eigen

SIDES = ("outputs", "inputs")  # of a matrix: rows, then columns


def _begin(w, layers):
    """Adam's averages, on the axes; which weights are kept; and for either side of a matrix its
    averaged products and its axes, [T, side, side].

    A weight that is initially zero counts as removed until it has a gradient.
    """
    import torch  # slow to import, and not needed to read records

    buffers = adam.begin(w, layers) | {"kept": w != 0}
    for layer in _matrices(layers):
        for name, side in zip(SIDES, layer.matrix(w).shape[1:]):
            unit = torch.eye(side, dtype=w.dtype, device=w.device)
            buffers[f"{layer.name} {name}"] = w.new_zeros(len(w), side, side)
            buffers[f"{layer.name} {name} axes"] = unit.repeat(len(w), 1, 1)
    return buffers


def _step(w, g, buffers, drawn, k, layers, interval):
    """Apply Adam's change, rotated back; then average in g, and update the axes if due.

    interval: steps between two rounds of orthogonal iteration.
    """
    rate, beta1, beta2 = (drawn[name] for name in adam.SPACE)
    matrices = _matrices(layers)
    kept = buffers["kept"].logical_or_(g != 0)
    if k > 1:
        turned = g.clone()
        for layer in matrices:
            _turn(turned, layer, _axes(buffers, layer))
        moves = adam.change(turned, buffers, rate, beta1, beta2, k - 1)
        for layer in matrices:
            _turn_back(moves, layer, _axes(buffers, layer))
        w.sub_(moves.mul_(kept))
    for layer in matrices:
        slope = layer.matrix(g)
        share = 1 - beta2[:, :, None]
        products = _product(slope, slope.mT), _product(slope.mT, slope)
        for name, product in zip(SIDES, products):
            buffers[f"{layer.name} {name}"].lerp_(product, share)
        if k == 1:
            _first_axes(buffers, layer)
        elif (k - 1) % interval == 0:
            _next_axes(buffers, layer)


def _matrices(layers):
    return [layer for layer in layers if layer.kind]


def _axes(buffers, layer):
    """The axes of the rows and those of the columns, as columns of two matrices."""
    return [buffers[f"{layer.name} {name} axes"] for name in SIDES]


def _product(*factors):
    """The product of matrices [T, rows, columns], from the left."""
    product = functools.reduce(lambda a, b: a.bmm(b), map(aligned, factors))
    return product[:, : factors[0].shape[1], : factors[-1].shape[2]]


def _turn(values, layer, axes):
    """Replace the layer's part of values [T, P] by its coordinates on the axes."""
    down, across = axes
    values[:, layer.where] = _product(down.mT, layer.matrix(values), across).flatten(1)


def _turn_back(values, layer, axes):
    _turn(values, layer, [side.mT for side in axes])


def _first_axes(buffers, layer):
    """Set the axes to eigenvectors, that of the largest eigenvalue first."""
    for name, axes in zip(SIDES, _axes(buffers, layer)):
        for row, average in enumerate(buffers[f"{layer.name} {name}"]):
            if decomposition := eigen(average):
                axes[row] = decomposition[1].flip(1)


def _next_axes(buffers, layer):
    """A round of orthogonal iteration, with Adam's averages moved to the new axes.

    As in the authors' code, axes are first sorted by their estimated eigenvalues, and averages of
    squares are only reordered likewise.
    """
    import torch

    old, orders = _axes(buffers, layer), []
    _turn_back(buffers["mean"], layer, old)
    for name, axes in zip(SIDES, old):
        ahead = _product(buffers[f"{layer.name} {name}"], axes)
        order = (axes * ahead).sum(1).argsort(dim=1, descending=True, stable=True)
        ahead = ahead.gather(2, order[:, None].expand_as(ahead))
        axes.copy_(torch.linalg.qr(aligned(ahead))[0][:, : axes.shape[1], : axes.shape[1]])
        orders.append(order)
    _turn(buffers["mean"], layer, old)
    down, across = orders
    square = layer.matrix(buffers["square"])
    square = square.gather(1, down[:, :, None].expand_as(square))
    square = square.gather(2, across[:, None].expand_as(square))
    buffers["square"][:, layer.where] = square.flatten(1)


def _turning(name: str, title: str, interval: int) -> Method:
    step = functools.partial(_step, interval=interval)
    return Method(name, title, adam.SPACE, _begin, step)


ALL = (_turning("soap", "SOAP", 1), _turning("soap-10", "SOAP, axes every 10 steps", 10))
