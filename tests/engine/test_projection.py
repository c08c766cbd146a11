"""Projections of drafters: packed ones give nearly what dense ones do, whatever comes in."""

from __future__ import annotations

import pytest
import torch

from engine.drafters.projection import (
    DenseProjection,
    PackedOutput,
    PackedProjection,
    projections_for,
)

OUTPUTS, INPUTS = 48, 64


@pytest.fixture
def weights() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    weight = torch.randn(OUTPUTS, INPUTS, generator=generator).bfloat16()
    return weight, torch.randn(OUTPUTS, generator=generator).bfloat16()


def given_rows(count):
    return torch.randn(count, INPUTS, generator=torch.Generator().manual_seed(count))


def exactly(given, weight, bias):
    return given.double() @ weight.double().T + (0.0 if bias is None else bias.double())


@pytest.mark.parametrize("rows", [1, 4, 16, 17, 300])
@pytest.mark.parametrize("biased", [False, True])
def test_packed_gives_nearly_what_dense_gives(weights, rows, biased):
    weight, bias = weights[0], weights[1] if biased else None
    given = given_rows(rows)
    exact = exactly(given, weight, bias)

    out = PackedProjection(weight, bias)(given)

    assert out.dtype == torch.float32
    error = (out - exact).square().mean().sqrt() / exact.square().mean().sqrt()
    assert error < (0.1 if rows <= 16 else 0.01)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("biased", [False, True])
def test_the_highest_logits_are_those_of_the_weights_themselves(weights, rows, biased):
    weight, bias = weights[0], weights[1] if biased else None
    given = given_rows(rows)
    exact = exactly(given, weight, bias)

    out = PackedOutput(weight, bias)(given)

    assert out.shape == exact.shape
    assert torch.equal(out.argmax(dim=-1), exact.argmax(dim=-1))
    best = exact.topk(8).indices
    assert torch.allclose(out.gather(1, best), exact.gather(1, best).float(), atol=1e-4)
    assert not torch.allclose(out, exact.float(), atol=1e-2)


def made_for(weight, *, state):
    make = projections_for(state)
    return type(make.inner(weight)), type(make.output(weight))


def test_a_target_in_bfloat16_on_the_cpu_has_them_packed_and_any_other_dense(weights):
    weight, _ = weights
    state = torch.zeros(1, INPUTS)

    assert made_for(weight, state=state.bfloat16()) == (PackedProjection, PackedOutput)
    assert made_for(weight, state=state) == (DenseProjection, DenseProjection)
    assert made_for(weight, state=state.double()) == (DenseProjection, DenseProjection)


@pytest.mark.parametrize(("outputs", "inputs"), [(47, 64), (48, 63), (8, 16)])
def test_what_does_not_fill_the_packed_layout_stays_dense(outputs, inputs):
    weight = torch.ones(outputs, inputs).bfloat16()

    assert made_for(weight, state=weight) == (DenseProjection, DenseProjection)


def test_gradients_flow_through_dense_ones():
    weight = torch.ones(2, 3, requires_grad=True)

    DenseProjection(weight)(torch.ones(1, 3)).sum().backward()

    assert weight.grad is not None
    assert weight.grad.tolist() == [[1.0] * 3] * 2
