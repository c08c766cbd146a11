"""Each block type's projection against the file's exact values, and row by row against itself."""

from __future__ import annotations

import re

import pytest
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import devices
from engine.models.blocks import read_codes, read_floats
from engine.models.native import linear
from engine.models.native.linear import (
    DenseFloat32,
    joined,
    linear_for_many_rows,
    linear_of_codes,
    linear_of_floats,
    quantised,
)
from tests.engine.models.gguf_writer import exact, some_blocks

FLOATS = ("F32", "F16", "BF16")
PACKED = ("Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q8_0")
ROWS, COLUMNS = 48, 1024


def stated_errors():
    """The table in the module's docstring: how far off products may be, by block type."""
    lines = (linear.__doc__ or "").splitlines()
    return {
        kind: float(cells[3].strip(" %")) / 100
        for cells in (line.split("|") for line in lines if line.endswith("% |"))
        for kind in re.findall(r"\bB?[FQ]\d\w*", cells[1])
    }


def projection(weights, kind):
    """A projection from a file that holds the weights as blocks of a type; its exact values."""
    blocks = some_blocks(weights, kind)
    _, size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    tensor, shape = torch.from_numpy(blocks), tuple(weights.shape)
    if kind in FLOATS:
        return linear_of_floats(read_floats(tensor, kind, shape)), exact(blocks, kind)
    codes = read_codes(tensor.reshape(-1, size), kind, shape)
    return linear_of_codes(codes, kind), exact(blocks, kind)


def inputs(rows=32, seed=0):
    generator = torch.Generator().manual_seed(100 + seed)
    return torch.randn(rows, COLUMNS, generator=generator).to(torch.bfloat16)


def normal(rows=ROWS, seed=0):
    """Weights as a trained model has them."""
    return 0.02 * torch.randn(rows, COLUMNS, generator=torch.Generator().manual_seed(seed))


def error(ours, rows, weights):
    """Relative to the exact product, root mean square."""
    product = rows.double() @ weights.double().T
    return ((ours.double() - product).norm() / product.norm()).item()


def test_the_table_names_every_block_type():
    assert set(stated_errors()) == {*FLOATS, *PACKED}


@pytest.mark.parametrize("kind", [*FLOATS, *PACKED])
def test_a_product_is_as_close_to_the_files_values_as_the_table_says(kind):
    multiply, weights = projection(normal(), kind)
    rows = inputs()

    found = error(multiply(rows), rows, weights)

    stated = stated_errors()[kind]
    assert error(multiply.in_full(rows), rows, weights) <= stated
    # A table that promised far less than it keeps would be of no use.
    assert stated / 2 < found <= stated


@pytest.mark.parametrize("kind", [*FLOATS, *PACKED])
def test_outliers_among_the_weights_cost_no_more_than_the_text_says(kind):
    outliers = torch.rand(ROWS, COLUMNS, generator=torch.Generator().manual_seed(7)) < 0.02
    multiply, weights = projection(normal() * torch.where(outliers, 20.0, 1.0), kind)
    rows = inputs()

    assert error(multiply(rows), rows, weights) <= 0.01


@pytest.mark.parametrize("kind", [*FLOATS, *PACKED])
@given(st.lists(st.integers(-6, 10), min_size=8, max_size=8), st.integers(0, 3))
@settings(deadline=None, max_examples=15)
def test_no_product_is_worse_where_scales_are_large_or_small(kind, exponents, seed):
    sizes = 2.0 ** torch.tensor(exponents).repeat_interleave(COLUMNS // len(exponents))
    multiply, weights = projection(normal(seed=seed) * sizes, kind)
    rows = inputs(seed=seed)

    found = error(multiply(rows), rows, weights)

    assert found <= stated_errors()[kind]


@pytest.mark.parametrize("kind", ["Q4_0", "Q5_1", "Q6_K", "Q8_0"])
def test_a_matrix_that_does_not_fill_the_packed_layout_is_as_close_as_bfloat16(kind):
    multiply, weights = projection(normal(rows=19), kind)
    rows = inputs()

    found = error(multiply(rows), rows, weights)

    assert multiply(rows).shape == (32, 19)
    assert found <= stated_errors()["BF16"]


@pytest.mark.parametrize("kind", [*FLOATS, *PACKED])
def test_a_row_has_the_same_bits_alone_and_among_others(kind):
    multiply, _ = projection(normal(), kind)
    rows = inputs(64)

    together, in_full = multiply(rows), multiply.in_full(rows)

    assert (together.dtype, in_full.dtype) == (torch.bfloat16, torch.float32)
    for count in (1, 2, 3, 5, 17, 33):
        assert torch.equal(multiply(rows[:count]), together[:count])
        assert torch.equal(multiply.in_full(rows[-count:]), in_full[-count:])


def test_projections_of_one_input_stand_side_by_side_in_the_given_order():
    first, _ = projection(normal(), "Q4_K")
    second, _ = projection(normal(rows=16, seed=2), "Q6_K")
    rows, order = inputs(), torch.randperm(64, generator=torch.Generator().manual_seed(3))

    both = joined([first, second], order)

    assert torch.equal(both(rows), torch.cat([first(rows), second(rows)], dim=1)[:, order])
    assert torch.equal(
        joined([first, second], None).in_full(rows),
        torch.cat([first.in_full(rows), second.in_full(rows)], dim=1),
    )


# Packing on request.


@given(st.integers(-30, 30), st.floats(-4.0, 4.0), st.sampled_from([4, 8]))
@settings(deadline=None, max_examples=60)
def test_packed_weights_are_within_half_a_step_of_what_they_were(exponent, shift, bits):
    weights = (normal() / 0.02 + shift) * 2.0**exponent

    codes = quantised(weights, bits=bits)

    steps = codes.scales.repeat_interleave(codes.group, dim=1)
    assert codes.group == 32
    assert codes.codes.min() >= (0 if bits == 4 else -127)
    assert codes.codes.max() <= (15 if bits == 4 else 127)
    assert ((codes.weights() - weights).abs() <= 0.501 * steps).all()


@pytest.mark.parametrize("bits", [4, 8])
def test_packing_what_was_packed_changes_nothing(bits):
    once = quantised(normal(), bits=bits)

    twice = quantised(once.weights(), bits=bits)

    assert torch.equal(twice.codes, once.codes)
    torch.testing.assert_close(twice.weights(), once.weights(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("value", [0.0, 0.5, -3.0])
def test_a_group_of_equal_weights_stays_what_it_is(bits, value):
    weights = torch.full((16, 64), value)

    torch.testing.assert_close(quantised(weights, bits=bits).weights(), weights)


@pytest.mark.parametrize("bits", [4, 8])
def test_a_product_of_packed_weights_is_as_close_as_that_of_a_files_codes(bits):
    codes, rows = quantised(normal(), bits=bits), inputs()
    kind = "Q4_1" if bits == 4 else "Q8_0"

    product = linear_of_codes(codes, kind)(rows)

    assert error(product, rows, codes.weights()) <= stated_errors()[kind]


# Many rows on processors that only emulate bfloat16.


@pytest.mark.parametrize("shape", [(960, 576), (576, 1536), (48, 64)])
def test_a_row_in_float32_has_the_same_bits_beside_any_others(shape):
    generator = torch.Generator().manual_seed(0)
    multiply = DenseFloat32(torch.randn(shape, generator=generator))
    rows = torch.randn(128, shape[1], generator=generator).to(torch.bfloat16)

    together = multiply.in_full(rows)

    for first, last in [(0, 1), (5, 7), (3, 6), (120, 128), (64, 100), (1, 128)]:
        assert torch.equal(multiply.in_full(rows[first:last]), together[first:last])
        assert torch.equal(multiply(rows[first:last]), together[first:last].to(torch.bfloat16))


@pytest.mark.parametrize("emulated", [True, False])
def test_a_prompts_rows_meet_float32_only_where_bfloat16_is_emulated(monkeypatch, emulated):
    monkeypatch.setattr(devices, "_cpu_multiplies_bfloat16", lambda: not emulated)
    weights, rows = normal(), inputs()

    multiply = linear_for_many_rows(weights.to(torch.bfloat16))

    assert isinstance(multiply, DenseFloat32) == emulated
    assert error(multiply(rows), rows, weights.to(torch.bfloat16)) <= stated_errors()["BF16"]
