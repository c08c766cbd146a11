"""Where a model can run on this machine, and in which dtype it does so best."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import os
from dataclasses import dataclass

import psutil
import torch

from engine.errors import EngineError

AUTO = "auto"
PACKED = "packed"
"""What the dtype of a GGUF model is called on the native decoder: the file's own codes."""

PACKED_BITS = {"int8": 8, "int4": 4}
"""Names that stand beside torch's dtypes: bits that a model's weights are packed to as it loads."""

_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64)
}


@dataclass(frozen=True, slots=True)
class Device:
    """Somewhere a model can run. id: as torch spells it."""

    id: str
    label: str
    memory_bytes: int


def devices() -> tuple[Device, ...]:
    """Where a model can run on this machine, the fastest first."""
    found: list[Device] = []
    for index in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(index)
        found.append(Device(f"cuda:{index}", facts.name, facts.total_memory))
    memory = psutil.virtual_memory().total
    if torch.backends.mps.is_available():
        found.append(Device("mps", "Apple GPU", memory))
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    return (*found, Device("cpu", f"CPU, {cores} cores", memory))


def chosen_device(device: str) -> str:
    """The device that "auto" or a name means.

    Raises:
        EngineError: there is no such device here; with those that are.
    """
    if device == AUTO:
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    known = ["cuda", *(found.id for found in devices())]
    if device not in known or (device == "cuda" and not torch.cuda.is_available()):
        usable = ", ".join(found.id for found in devices())
        raise EngineError(f'There is no device "{device}" here. Choose one of: auto, {usable}.')
    return device


def check_dtype(dtype: str) -> None:
    """See that a dtype's name means something.

    Raises:
        EngineError: there is no such dtype; with those there are.
    """
    if dtype not in (AUTO, *_DTYPES, PACKED, *PACKED_BITS):
        known = ", ".join((AUTO, *_DTYPES, PACKED, *PACKED_BITS))
        raise EngineError(f'There is no dtype "{dtype}". Choose one of: {known}.')


def chosen_dtype(dtype: str, device: str) -> torch.dtype:
    """The torch dtype that "auto" or the name of one means."""
    return fast_dtype(device) if dtype == AUTO else _DTYPES[dtype]


def fast_dtype(device: str) -> torch.dtype:
    """bfloat16, or float32 where the processor only emulates that."""
    fast = device != "cpu" or _cpu_multiplies_bfloat16()
    return torch.bfloat16 if fast else torch.float32


def _cpu_multiplies_bfloat16() -> bool:
    """Whether bfloat16 products run on instructions of their own; emulated ones are slow."""
    check = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(check()) if check is not None else False
