"""GGUF files: metadata and tensors as they lie in the file, checked before anything is allocated.

Layout and block formats: the GGUF specification and ggml's block definitions (facts only).
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import torch

from engine.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

Value = int | float | bool | str | list["Value"]

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_SMALLEST_ENTRY_BYTES = 12
_MOST_DIMENSIONS = 4
_DEFAULT_ALIGNMENT = 32


@dataclass(frozen=True, slots=True)
class BlockType:
    """How a tensor's numbers are stored: `elements` of them in `size_bytes`."""

    name: str
    elements: int
    size_bytes: int


BLOCK_TYPES = {
    0: BlockType("F32", 1, 4),
    1: BlockType("F16", 1, 2),
    2: BlockType("Q4_0", 32, 18),
    3: BlockType("Q4_1", 32, 20),
    6: BlockType("Q5_0", 32, 22),
    7: BlockType("Q5_1", 32, 24),
    8: BlockType("Q8_0", 32, 34),
    12: BlockType("Q4_K", 256, 144),
    13: BlockType("Q5_K", 256, 176),
    14: BlockType("Q6_K", 256, 210),
    30: BlockType("BF16", 1, 2),
}


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor in the file. shape: rows first, as torch has it; offset: from the file's start."""

    name: str
    shape: tuple[int, ...]
    type: BlockType
    offset: int

    @property
    def size_bytes(self) -> int:
        """What it takes in the file."""
        return prod(self.shape) // self.type.elements * self.type.size_bytes


class GgufFile:
    """A GGUF file, mapped. metadata: by key; tensors: by name.

    Raises:
        ModelError: the file is no GGUF, is damaged or cut short, or uses a type that is not known
        here.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            try:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            except ValueError as error:  # an empty file cannot be mapped
                raise _damaged(path, "it is empty") from error
            except OSError as error:
                raise ModelError(
                    f"{path.name} can't be mapped into memory ({error}). "
                    "Close other programs, or lift a limit on this one's memory."
                ) from error
        try:
            header = _Header(path, self._map)
            self.metadata, self.tensors = header.read()
            self._header_bytes = header.read_bytes
        except struct.error as error:
            raise _damaged(path, "its header ends too early") from error
        except UnicodeDecodeError as error:
            raise _damaged(path, "its header holds names that are no text") from error

    def header_sha256(self) -> str:
        """The hash of everything before the tensors' data."""
        return hashlib.sha256(self._map[: self._header_bytes]).hexdigest()

    def blocks(self, name: str) -> Tensor:
        """A tensor's blocks as bytes, (blocks, bytes a block), without copying them."""
        tensor = self.tensors[name]
        flat = torch.frombuffer(
            self._map, dtype=torch.uint8, count=tensor.size_bytes, offset=tensor.offset
        )
        return flat.view(-1, tensor.type.size_bytes)

    def release(self) -> None:
        """Let go of the pages that were read; they come back when they are wanted."""
        if hasattr(self._map, "madvise"):  # not on Windows
            self._map.madvise(mmap.MADV_DONTNEED)


class _Header:
    """Reads a header field by field; no count is believed beyond what the file can hold."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path = path
        self._data = data
        self._at = 0

    @property
    def read_bytes(self) -> int:
        """How far it has read."""
        return self._at

    def read(self) -> tuple[dict[str, Value], dict[str, GgufTensor]]:
        """Metadata and tensors."""
        if self._data[:4] != _MAGIC:
            raise ModelError(f"{self._path.name} is not a GGUF file.")
        self._at = 4
        version = self._number("I")
        if version not in _VERSIONS:
            raise ModelError(
                f"{self._path.name} is of GGUF version {version}; versions 2 and 3 can be read."
            )
        num_tensors, num_values = self._count(), self._count()
        metadata = dict(self._entry() for _ in range(num_values))
        infos = [self._tensor() for _ in range(num_tensors)]
        alignment = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1:
            raise _damaged(self._path, "its alignment makes no sense")
        start = -(-self._at // alignment) * alignment
        return metadata, {info[0]: self._placed(*info, start) for info in infos}

    def _entry(self) -> tuple[str, Value]:
        return self._string(), self._value(self._number("I"))

    def _value(self, kind: int, *, nested: bool = False) -> Value:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY and not nested:
            return self._array()
        if kind in _SCALARS:
            return self._number(_SCALARS[kind])
        raise _damaged(self._path, f"it holds a value of the unknown kind {kind}")

    def _array(self) -> list[Value]:
        kind, count = self._number("I"), self._count(smallest=1)
        if kind in _SCALARS:
            form = f"<{count}{_SCALARS[kind]}"
            values = struct.unpack_from(form, self._data, self._at)
            self._at += struct.calcsize(form)
            return list(values)
        return [self._value(kind, nested=True) for _ in range(count)]

    def _tensor(self) -> tuple[str, tuple[int, ...], BlockType, int]:
        name, num_dimensions = self._string(), self._number("I")
        if not 0 < num_dimensions <= _MOST_DIMENSIONS:
            raise _damaged(self._path, f"its tensor {name} has {num_dimensions} dimensions")
        shape = tuple(self._number("Q") for _ in range(num_dimensions))
        if not all(shape):
            raise _damaged(self._path, f"its tensor {name} is empty")
        kind, offset = self._number("I"), self._number("Q")
        if kind not in BLOCK_TYPES:
            known = ", ".join(block.name for block in BLOCK_TYPES.values())
            raise ModelError(
                f"{self._path.name} stores {name} in a type that Draftlight can't read "
                f"(number {kind}). "
                f"Choose a file in one of: {known}."
            )
        return name, tuple(reversed(shape)), BLOCK_TYPES[kind], offset

    def _placed(
        self, name: str, shape: tuple[int, ...], kind: BlockType, offset: int, start: int
    ) -> GgufTensor:
        tensor = GgufTensor(name, shape, kind, start + offset)
        if shape[-1] % kind.elements or tensor.offset + tensor.size_bytes > len(self._data):
            raise _damaged(self._path, f"its tensor {name} does not fit into the file")
        return tensor

    def _count(self, *, smallest: int = _SMALLEST_ENTRY_BYTES) -> int:
        count = self._number("Q")
        if count * smallest > len(self._data) - self._at:
            raise _damaged(self._path, f"it announces {count:,} entries, more than it can hold")
        return count

    def _string(self) -> str:
        length = self._number("Q")
        if length > len(self._data) - self._at:
            raise _damaged(self._path, "a text in it is longer than the file")
        text = self._data[self._at : self._at + length].decode("utf-8")
        self._at += length
        return text

    def _number(self, form: str) -> int:
        [number] = struct.unpack_from("<" + form, self._data, self._at)
        self._at += struct.calcsize("<" + form)
        return number


def _damaged(path: Path, what: str) -> ModelError:
    return ModelError(f"{path.name} is damaged or incomplete: {what}. Get the file again.")
