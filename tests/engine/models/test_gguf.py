"""GGUF files against the `gguf` package's own writer and dequantisation; damaged ones refused."""

from __future__ import annotations

import errno
import mmap
import struct

import gguf
import numpy as np
import pytest
import torch
from gguf.constants import GGMLQuantizationType
from gguf.quants import dequantize, quantize
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ModelError
from engine.models.blocks import read_codes, read_floats
from engine.models.gguf import GgufFile

QUANTISED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]
HALVES_AT = {"Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}
ROWS, COLUMNS = 6, 512


def some_blocks(kind, seed=0):
    """Blocks of a type, (rows, bytes): by the package's quantiser, or random where it has none."""
    generator = np.random.default_rng(seed)
    quant = GGMLQuantizationType[kind]
    if kind not in HALVES_AT:
        return quantize(generator.standard_normal((ROWS, COLUMNS)).astype(np.float32), quant)
    elements, size = gguf.GGML_QUANT_SIZES[quant]
    blocks = generator.integers(0, 256, (ROWS * COLUMNS // elements, size)).astype(np.uint8)
    for at in HALVES_AT[kind]:
        halves = generator.standard_normal((len(blocks), 1)).astype(np.float16)
        blocks[:, at : at + 2] = halves.view(np.uint8)
    return blocks.reshape(ROWS, -1)


@pytest.fixture
def written(tmp_path):
    """A file with one tensor of every type and metadata of every kind."""
    path = tmp_path / "modèle 模型.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("llama.block_count", 3)
    writer.add_float32("llama.epsilon", 0.5)
    writer.add_bool("tokenizer.flag", val=True)
    writer.add_string("general.name", "Größe 🙂")
    writer.add_array("tokenizer.tokens", ["a", "é", ""])
    writer.add_array("tokenizer.types", [1, 2, 3])
    for kind in QUANTISED:
        writer.add_tensor(kind, some_blocks(kind), raw_dtype=GGMLQuantizationType[kind])
    writer.add_tensor("F32", np.arange(6, dtype=np.float32).reshape(2, 3))
    writer.add_tensor("F16", np.arange(6, dtype=np.float16).reshape(3, 2))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_metadata_of_every_kind_is_read(written):
    metadata = GgufFile(written).metadata

    assert metadata["general.architecture"] == "llama"
    assert metadata["llama.block_count"] == 3
    assert metadata["llama.epsilon"] == 0.5
    assert metadata["tokenizer.flag"] is True
    assert metadata["general.name"] == "Größe 🙂"
    assert metadata["tokenizer.tokens"] == ["a", "é", ""]
    assert metadata["tokenizer.types"] == [1, 2, 3]


@pytest.mark.parametrize("kind", QUANTISED)
def test_codes_times_scales_are_the_files_exact_values(written, kind):
    file = GgufFile(written)

    codes = read_codes(file.blocks(kind), kind, (ROWS, COLUMNS))

    expected = dequantize(some_blocks(kind), GGMLQuantizationType[kind])
    assert file.tensors[kind].shape == (ROWS, COLUMNS)
    torch.testing.assert_close(codes.weights(), torch.from_numpy(expected), rtol=1e-6, atol=1e-7)


def test_unquantised_tensors_are_read_as_they_are(written):
    file = GgufFile(written)

    assert read_floats(file.blocks("F32"), "F32", (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert file.tensors["F16"].shape == (3, 2)
    assert read_floats(file.blocks("F16"), "F16", (3, 2)).dtype == torch.float16


def test_a_file_cut_anywhere_is_a_sentence(written, tmp_path):
    whole = written.read_bytes()
    cut = tmp_path / "cut.gguf"

    for length in [*range(0, 700, 7), len(whole) // 2, len(whole) - 40]:
        cut.write_bytes(whole[:length])

        with pytest.raises(ModelError, match=r"cut\.gguf is (damaged|not a GGUF)"):
            GgufFile(cut)


@given(st.integers(4, 600), st.binary(min_size=1, max_size=8))
@settings(deadline=None, max_examples=200)
def test_a_damaged_header_never_crashes_or_takes_much_memory(tmp_path_factory, at, junk):
    path = tmp_path_factory.getbasetemp() / "junk.gguf"
    path.write_bytes(_small_file()[:at] + junk + _small_file()[at + len(junk) :])

    try:
        file = GgufFile(path)
    except ModelError:
        return
    for name in file.tensors:
        assert file.blocks(name).numel() <= path.stat().st_size


@pytest.mark.parametrize("counts", [(2**63, 0), (0, 2**63), (10**9, 1)])
def test_absurd_counts_are_refused_before_anything_is_allocated(tmp_path, counts):
    path = tmp_path / "absurd.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, *counts) + bytes(64))

    with pytest.raises(ModelError, match=r"announces .* entries, more than it can hold"):
        GgufFile(path)


def test_a_type_that_is_not_known_names_those_that_are(tmp_path):
    path = tmp_path / "new.gguf"
    tensor = struct.pack("<Q1sIQIQ", 1, b"w", 1, 32, 39, 0)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + tensor + bytes(64))

    with pytest.raises(ModelError, match="stores w in a type that Draftlight can't read"):
        GgufFile(path)


def test_an_old_version_is_named(tmp_path):
    path = tmp_path / "old.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 1, 0, 0))

    with pytest.raises(ModelError, match="GGUF version 1"):
        GgufFile(path)


def _small_file(rows=2):
    entry = struct.pack("<Q4sIQ5s", 4, b"name", 8, 5, b"value")
    array = struct.pack("<Q3sIIQ3I", 3, b"arr", 9, 4, 3, 1, 2, 3)
    tensor = struct.pack("<Q1sIQQIQ", 1, b"w", 2, 4, rows, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 2) + entry + array + tensor
    return head + bytes(-len(head) % 32) + bytes(32)


def test_a_name_that_is_no_text_is_called_that(written):
    whole = written.read_bytes()
    written.write_bytes(whole.replace(b"llama.epsilon", b"llama.\xff\xfesilon"))

    with pytest.raises(ModelError, match="names that are no text"):
        GgufFile(written)


def test_a_tensor_without_numbers_is_refused(tmp_path):
    path = tmp_path / "empty.gguf"
    path.write_bytes(_small_file(rows=0))

    with pytest.raises(ModelError, match="is empty"):
        GgufFile(path)


def test_no_room_to_map_a_file_is_a_sentence(written, monkeypatch):
    def refuses(*_, **__):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuses)

    with pytest.raises(ModelError, match="can't be mapped into memory"):
        GgufFile(written)
