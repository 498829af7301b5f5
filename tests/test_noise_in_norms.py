"""Noise scales in three norms: cases with known answers, and the rules on planted ones."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from chapters.disputed import claims, gradient_norms, norms
from chapters.disputed import norms_experiments as experiments
from lib.analysis.scaling import Effect
from lib.claims import AGAINST, FOR
from lib.claims.claim import REGISTRY, judged
from lib.engine import flattening
from lib.methods.method import Layer
from lib.probes import noise_scale
from lib.workloads import models

ROOTS = 1e-5


def scales(parts):
    return [(parts[noise] / parts[g]) ** power for noise, g, power in norms.NORMS.values()]


def measured(examples, *shape):
    """The noise scales of examples' gradients [n, P], a hidden matrix of this shape."""
    g = examples.mean(0)
    layer = Layer("0.weight", slice(0, g.numel()), shape, "linear")
    return scales(gradient_norms.parts(g, examples.split(3), [layer]))


def test_with_one_parameter_all_norms_agree():
    examples = torch.randn(50, 1) + 0.3
    euclid, entries, spectrum = measured(examples, 1, 1)
    assert entries == pytest.approx(euclid, rel=ROOTS)
    assert spectrum == pytest.approx(euclid, rel=ROOTS)


def test_of_a_matrix_with_one_row_the_nuclear_norm_is_euclidean():
    euclid, _, spectrum = measured(torch.randn(30, 7) + 0.5, 1, 7)
    assert spectrum == pytest.approx(euclid, rel=ROOTS)


def test_of_noise_alike_in_all_rows_and_an_orthogonal_gradient_all_norms_agree():
    """C is a multiple of the identity, so that both nuclear lengths are √rows times Euclidean."""
    g = torch.linalg.qr(torch.randn(4, 4))[0].flatten()
    away = torch.cat([torch.eye(16), -torch.eye(16)])
    euclid, _, spectrum = measured(g + away, 4, 4)
    assert spectrum == pytest.approx(euclid, rel=1e-4)


def test_a_gradient_of_low_rank_has_the_larger_nuclear_noise_scale():
    noise = torch.randn(200, 36)
    low = torch.outer(torch.randn(6), torch.randn(6)).flatten()
    full = torch.linalg.qr(torch.randn(6, 6))[0].flatten() * low.norm() / 6**0.5
    noise -= noise.mean(0)
    (euclid, _, one), (same, _, other) = (measured(noise + g, 6, 6) for g in (low, full))
    assert euclid == pytest.approx(same, rel=1e-4) and one == pytest.approx(6 * other, rel=1e-3)


@pytest.mark.parametrize("name", ["mlp-64x2", "digits-cnn"])
def test_every_length_is_that_of_examples_one_by_one(name):
    x, y = torch.randn(12, 1, 8, 8), torch.randint(10, (12,))
    module = models.build(name)
    w, layers = flattening.flatten(models.fresh(name, 1)), flattening.layers(module)

    class Chunks:
        executor = noise_scale.SequentialExecutor(models.build(name))
        size = 5

        def drawn(self, seed):
            return torch.arange(len(y))

    chunks = Chunks()
    chunks.module, chunks.x, chunks.y = module, x, y
    each = []
    for one, label in zip(x, y, strict=True):
        own = w.clone().requires_grad_()
        loss = nn.functional.cross_entropy(flattening.outputs(module, own, one[None]), label[None])
        each.append(torch.autograd.grad(loss, own)[0])
    each = torch.stack(each)
    found, away = gradient_norms.look(chunks, w, layers), each - each.mean(0)
    trace, square = noise_scale.estimate(noise_scale.gram(each), 1, len(y))
    assert found["square"] == pytest.approx(square, rel=1e-4)
    assert found["trace"] == pytest.approx(trace * 11 / 12, rel=1e-4)
    assert found["sigmas"] == pytest.approx(away.std(0, correction=0).sum().item(), rel=1e-4)
    assert found["slopes"] == pytest.approx(each.mean(0).abs().sum().item(), rel=1e-4)
    roots = nuclear = 0
    for layer in layers:
        if layer.kind in gradient_norms.HIDDEN:
            own = [gradient_norms.matrix(row[None], layer)[0].double().numpy() for row in away]
            values = np.linalg.eigvalsh(np.mean([m @ m.T for m in own], 0)).clip(min=0)
            roots += np.sqrt(values).sum()
            mean = gradient_norms.matrix(each.mean(0)[None], layer)[0].double().numpy()
            nuclear += np.linalg.norm(mean, "nuc")
    # Of twelve examples C has zero eigenvalues, whose roots in single precision are not quite zero
    assert found["roots"] == pytest.approx(roots, rel=2e-3)
    assert found["nuclear"] == pytest.approx(nuclear, rel=1e-4)


def test_a_path_is_that_of_the_fastest_trial_on_record():
    path = experiments.Path("digits-mlp", "muon", 64, 3, points=2)
    rows = path.measure()
    assert (rows.step <= rows["last"]).all() and len(rows) == 2
    assert (rows[["trace", "square", "sigmas", "slopes", "roots", "nuclear"]] > 0).all(axis=None)


def planted(own_off, euclid_off):
    """Critical batch sizes, and paths whose noise scales lie off them by so large factors."""
    random, found, critical = np.random.default_rng(2), [], {}
    for work in experiments.PLANNED:
        for name in experiments.METHODS:
            batch = random.normal(4, 1)
            critical[work, name] = Effect(batch, 0.05, 4.0, 5)
            near, far = batch - np.array([own_off, euclid_off]) * random.standard_normal(2)
            for n in range(5):
                own = norms.OTHERS.get(name, norms.EUCLID)
                noise = dict.fromkeys(norms.NORMS, far) | {own: near}
                noise = {k: v + 0.01 * random.standard_normal() for k, v in noise.items()}
                about = {"workload": work, "algorithm": name, "replicate": n}
                found.append(about | noise | {norms.OWN: noise[own]})
    return pd.DataFrame(found), critical


@pytest.mark.parametrize(("own", "euclid", "verdict"), [(0.05, 1.0, FOR), (1.0, 1.0, AGAINST)])
def test_planted_noise_scales_are_judged_as_they_are(own, euclid, verdict, monkeypatch):
    rows = norms.beside(*planted(own, euclid))
    monkeypatch.setattr(norms, "compared", lambda: rows)
    (group,) = judged(REGISTRY.claims["Q1"], claims.spread()).groups
    assert group.n == 18 and group.low < group.effect < group.high
    assert group.verdict == verdict or verdict == AGAINST and group.high > 0.8
    level = judged(REGISTRY.claims["Q2"], claims.level()).groups
    assert len(level) == 9
    if verdict == FOR:
        assert {one.verdict for one in level} == {FOR}
