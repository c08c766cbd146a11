"""Running out of memory, as one error with one sentence; and giving back what was freed."""

from __future__ import annotations

import ctypes
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from engine.errors import OutOfMemory

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def memory_errors(device: str) -> Generator[None]:
    """Turn the spellings of "no memory left" into one sentence, and give back what was taken."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not (isinstance(error, MemoryError) or is_memory_error(error)):
            raise
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        otherwise = "close other programs" if device == "cpu" else "take the CPU"
        raise OutOfMemory(
            f"No memory is left on {device}. Choose a smaller model, a shorter conversation or no "
            f"draft model, or {otherwise}."
        ) from error


def is_memory_error(error: Exception) -> bool:
    """Whether an error means that no memory is left, in the spellings of torch's devices."""
    return isinstance(error, torch.OutOfMemoryError) or any(
        sign in str(error)
        for sign in ("not enough memory", "can't allocate memory", "out of memory")
    )


def give_back_freed_memory() -> None:
    """Return what loading freed to the system, where the C library would keep it."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc alone has it
        if trim is not None:
            trim(0)
