"""Optimizers and clipping of a phase; the default is the recipe of all released runs."""

import pytest
import torch
from torch import nn

from training.configs.schema import ClippingConfig, OptimizerConfig
from training.engine.optimizers import OPTIMIZERS, clip_gradient, layers_with_factors, make_optimizer, parameter_groups


def module():
    torch.manual_seed(0)
    return nn.Linear(3, 2)


def differentiate(linear, scale):
    linear.zero_grad()
    (scale * linear(torch.arange(6.0).reshape(2, 3))).square().sum().backward()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_takes_the_settings_of_the_phase(name):
    linear = module()
    config = OptimizerConfig(name=name, betas=[0.8, 0.95], momentum=0.7, eps=1e-7, weight_decay=0.1)
    optimizer = make_optimizer(config, [{"params": list(linear.parameters()), "lr": 0.1}])
    (group,) = optimizer.param_groups
    settings = {"momentum": 0.7} if name == "sgd" else {"betas": (0.8, 0.95), "eps": 1e-7}
    assert group.items() >= {**settings, "weight_decay": 0.1}.items()
    before = linear.weight.clone()
    differentiate(linear, 1.0)
    optimizer.step()
    assert not torch.equal(linear.weight, before)


def test_clipping_by_norm_scales_by_value_clamps_every_element_and_none_leaves_the_gradient():
    linear = module()
    differentiate(linear, 1.0)
    gradient = linear.weight.grad
    whole = gradient.clone()
    norm = torch.cat([parameter.grad.flatten() for parameter in linear.parameters()]).norm()
    torch.testing.assert_close(clip_gradient(list(linear.parameters()), ClippingConfig(by="none")), norm)
    assert torch.equal(gradient, whole)
    torch.testing.assert_close(clip_gradient(list(linear.parameters()), ClippingConfig(by="value", limit=0.5)), norm)
    assert torch.equal(gradient, whole.clamp(-0.5, 0.5))
    assert whole.abs().max() > 0.5
    differentiate(linear, 1.0)
    torch.testing.assert_close(clip_gradient(list(linear.parameters()), ClippingConfig()), norm)
    assert norm > 5
    torch.testing.assert_close(linear.weight.grad, whole * 5 / norm)


def test_lamb_scales_adam_s_step_to_the_norm_of_the_parameter():
    ours, theirs = module(), module()
    optimizer = make_optimizer(
        OptimizerConfig(name="lamb", betas=[0.9, 0.999], eps=1e-6, weight_decay=0.01),
        [{"params": list(ours.parameters()), "lr": 0.1}],
    )
    adam = torch.optim.Adam(theirs.parameters(), lr=1.0, betas=(0.9, 0.999), eps=1e-6)
    for scale in (10.0, 0.01, 3.0):
        differentiate(ours, scale)
        for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            other.data, other.grad = own.detach().clone(), own.grad.clone()
        before = [parameter.detach().clone() for parameter in ours.parameters()]
        optimizer.step()
        adam.step()
        for own, other, first in zip(ours.parameters(), theirs.parameters(), before, strict=True):
            step = first - other + 0.01 * first
            expected = first - 0.1 * step * first.norm() / step.norm()
            torch.testing.assert_close(own.detach(), expected)


def test_matrices_decay_and_biases_normalisations_and_embeddings_do_not():
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 2), nn.LayerNorm(2))
    decaying, others = parameter_groups(model, OptimizerConfig(weight_decay=0.1), name="captioner")
    assert [parameter.shape for parameter in decaying["params"]] == [(2, 3)]
    assert sum(parameter.numel() for parameter in others["params"]) == 15 + 2 + 4
    optimizer = make_optimizer(OptimizerConfig(name="adamw", weight_decay=0.1), [
        {**group, "lr": 0.1} for group in (decaying, others)
    ])  # fmt: skip
    before = [parameter.detach().clone() for parameter in model.parameters()]
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    changed = [not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)]
    assert changed == [False, True, False, False, False]


def test_layers_learn_slower_the_nearer_they_are_to_the_frame():
    layers = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
    network = nn.ModuleDict({"embedding": nn.Linear(2, 2), "layers": layers, "norm": nn.LayerNorm(2)})
    divided = layers_with_factors(network, 0.5)
    assert [factor for _, factor in divided] == [0.0625, 0.125, 0.25, 0.5, 1.0]
    assert [parameters[0] for parameters, _ in divided] == [
        network["embedding"].weight, *(layer.weight for layer in layers), network["norm"].weight
    ]  # fmt: skip
    assert len(layers_with_factors(nn.ModuleList([network, network]), 0.5)) == 10
    assert [factor for _, factor in layers_with_factors(network, 1.0)] == [1.0]
