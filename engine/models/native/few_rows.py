"""Products of few rows are summed in another order than those of many, so some are filled up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor


def padded(rows: Tensor, fewest: int) -> Tensor:
    """(..., m, width) with rows of zeros where there are fewer; else as they are."""
    missing = fewest - rows.shape[-2]
    return functional.pad(rows, (0, 0, 0, missing)) if missing > 0 else rows
