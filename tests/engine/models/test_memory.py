"""What is said where no memory is left: what helps there."""

from __future__ import annotations

import pytest

from engine.errors import OutOfMemory
from engine.models.memory import memory_errors


@pytest.mark.parametrize(
    ("device", "helps"), [("cpu", "close other programs"), ("cuda:0", "take the CPU")]
)
def test_what_helps_depends_on_the_device(device, helps):
    with pytest.raises(OutOfMemory) as caught, memory_errors(device):
        raise MemoryError

    assert str(caught.value) == (
        f"No memory is left on {device}. Choose a smaller model, a shorter conversation or no "
        f"draft model, or {helps}."
    )
