"""The converted tokenizer in the cache folder: made once, and made anew when damaged."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from engine.errors import ModelError
from engine.models.catalog import ModelSource
from engine.models.tokenizer import load_tokenizer
from tests.engine import models_for_tests as tiny
from tests.engine.models.gguf_models import llama
from tests.engine.models.gguf_writer import Contents, contents

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "Grüße 🙂 你好 <|im_end|> def f(x):\\n    return x"


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A GGUF file that is all header and converts to a tiny tokenizer; and when it did."""
    monkeypatch.setenv("DRAFTLIGHT_DATA", str(tmp_path / "data é"))
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + (3).to_bytes(4, "little") + bytes(16))
    made = []

    def convert(folder, **options):
        if "gguf_file" in options:
            made.append(options["gguf_file"])
            return tiny.tokenizer()
        return read(folder, **options)

    from engine.models import tokenizer

    read = tokenizer.AutoTokenizer.from_pretrained
    monkeypatch.setattr(tokenizer.AutoTokenizer, "from_pretrained", convert)
    return ModelSource("model", str(path), path), made


def kept_folder(tmp_path) -> Path:
    [folder] = (tmp_path / "data é" / "cache" / "tokenizers").iterdir()
    return folder


def test_a_conversion_is_made_once_and_says_the_same_afterwards(source):
    model, made = source

    first, again = load_tokenizer(model), load_tokenizer(model)

    assert made == ["model.gguf"]
    assert again.encode(TEXT) == first.encode(TEXT)
    assert again.chat_template == first.chat_template
    assert again.eos_token_id == first.eos_token_id
    assert again.added_tokens_decoder.keys() == first.added_tokens_decoder.keys()


def test_a_damaged_copy_is_made_anew(source, tmp_path):
    model, made = source
    load_tokenizer(model)
    (kept_folder(tmp_path) / "tokenizer.json").write_text("{", encoding="utf-8")

    load_tokenizer(model)
    load_tokenizer(model)

    assert made == ["model.gguf"] * 2


def test_another_header_is_another_tokenizer(source):
    model, made = source
    load_tokenizer(model)
    model.path.write_bytes(model.path.read_bytes()[:8] + bytes(16) + bytes(32))
    entry = (1).to_bytes(8, "little") + b"k" + (4).to_bytes(4, "little") + bytes(4)
    model.path.write_bytes(
        b"GGUF" + (3).to_bytes(4, "little") + bytes(8) + (1).to_bytes(8, "little") + entry
    )

    load_tokenizer(model)

    assert len(made) == 2


def test_no_room_to_keep_it_is_no_error(source, tmp_path):
    model, made = source
    (tmp_path / "data é").mkdir()
    (tmp_path / "data é" / "cache").write_text("in the way")

    load_tokenizer(model)
    load_tokenizer(model)

    assert len(made) == 2
    shutil.rmtree(tmp_path / "data é")


# What is wrong in a header beside the tokenizer, which transformers reads along with it.


@pytest.fixture
def header(tmp_path, monkeypatch):
    """A tiny file of llama's with other numbers, or of another architecture."""
    monkeypatch.setenv("DRAFTLIGHT_DATA", str(tmp_path / "data"))

    def made(architecture="llama", **numbers):
        held = contents(llama(num_hidden_layers=1))
        held.values |= {f"llama.attention.{key}": number for key, number in numbers.items()}
        of_it = {key.replace("llama.", f"{architecture}."): held.values[key] for key in held.values}
        path = Contents(architecture, of_it, held.tensors).write(tmp_path / "odd.gguf")
        return ModelSource("odd", str(path), path)

    return made


@pytest.mark.parametrize(
    ("heads", "sentence"),
    [(0, "its attention.head_count makes no sense"), (7, "its 7 heads can't share 2 key heads")],
)
def test_a_number_of_heads_that_makes_no_sense_is_named(header, heads, sentence):
    with pytest.raises(ModelError, match=rf"odd\.gguf can't be run: {sentence}"):
        load_tokenizer(header(head_count=heads))


def test_an_architecture_that_nobody_can_read_is_named(header):
    with pytest.raises(
        ModelError, match=r'odd\.gguf is of the architecture "jamba", which'
    ) as caught:
        load_tokenizer(header("jamba"))

    assert "Get the model again" not in str(caught.value)


def test_a_tokenizer_that_is_damaged_is_called_that(header):
    with pytest.raises(ModelError, match=r"The tokenizer of odd\.gguf could not be read"):
        load_tokenizer(header())
