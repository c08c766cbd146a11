"""Projections of drafters: packed ones give nearly what dense ones do, whatever comes in."""

from __future__ import annotations

import pytest
import torch

from engine.drafters.projection import DenseProjection, PackedProjection, projections_for

OUTPUTS, INPUTS = 48, 64


@pytest.fixture
def weights() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    weight = torch.randn(OUTPUTS, INPUTS, generator=generator).bfloat16()
    return weight, torch.randn(OUTPUTS, generator=generator).bfloat16()


@pytest.mark.parametrize("rows", [1, 4, 16, 17, 300])
@pytest.mark.parametrize("biased", [False, True])
def test_packed_gives_nearly_what_dense_gives(weights, rows, biased):
    weight, bias = weights
    given = torch.randn(rows, INPUTS, generator=torch.Generator().manual_seed(rows))
    exact = given.double() @ weight.double().T + (bias.double() if biased else 0.0)

    out = PackedProjection(weight, bias if biased else None)(given)

    assert out.dtype == torch.float32
    error = (out - exact).square().mean().sqrt() / exact.square().mean().sqrt()
    assert error < 0.015


def made_for(weight, *, state):
    return type(projections_for(state)(weight))


def test_a_target_in_bfloat16_on_the_cpu_has_them_packed_and_any_other_dense(weights):
    weight, _ = weights
    state = torch.zeros(1, INPUTS)

    assert made_for(weight, state=state.bfloat16()) is PackedProjection
    assert made_for(weight, state=state) is DenseProjection
    assert made_for(weight, state=state.double()) is DenseProjection


@pytest.mark.parametrize(("outputs", "inputs"), [(47, 64), (48, 63), (8, 16)])
def test_what_does_not_fill_the_packed_layout_stays_dense(outputs, inputs):
    weight = torch.ones(outputs, inputs).bfloat16()

    assert made_for(weight, state=weight) is DenseProjection


def test_gradients_flow_through_dense_ones():
    weight = torch.ones(2, 3, requires_grad=True)

    DenseProjection(weight)(torch.ones(1, 3)).sum().backward()

    assert weight.grad is not None
    assert weight.grad.tolist() == [[1.0] * 3] * 2
