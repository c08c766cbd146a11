"""Where models are found, and what can be said of a file or folder before it is loaded."""

# safetensors has no annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from safetensors import SafetensorError, safe_open

from engine.errors import ModelError
from engine.models import default_model

DEFAULT = "default"
_PICKLES = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"})
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json")
_GGUF_MAGIC = b"GGUF"
_BORROWS = ("target_embedding", "target_head")


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model on disk. name: for people; spec: "default" or an absolute path."""

    name: str
    spec: str
    path: Path

    @property
    def is_gguf(self) -> bool:
        """One GGUF file, or else a folder of safetensors."""
        return self.path.is_file()

    @property
    def folder(self) -> Path:
        """The folder that transformers is pointed at."""
        return self.path.parent if self.is_gguf else self.path


def find_model(target: str | Path) -> ModelSource:
    """The model behind "default", a GGUF file, or a folder of safetensors.

    Raises:
        ModelError: it is none of these; the sentence says what is missing.
    """
    if target == DEFAULT:
        return ModelSource(default_model.NAME, DEFAULT, _installed_default())
    try:
        path = Path(target).expanduser().absolute()
        if not path.exists():
            raise ModelError(f"There is no file or folder at {path}.")
        if path.is_dir():
            _check_folder(path)
        else:
            _check_file(path)
    except (OSError, RuntimeError) as error:  # no permission, a name too long, no such user
        raise ModelError(
            f"{target} can't be read ({error}). Check its name and its permissions."
        ) from error
    return ModelSource(path.stem if path.is_file() else path.name, str(path), path)


def borrowing_folder(path: str) -> Path | None:
    """The folder of a draft model that takes its embedding and head from the target.

    None where that is another model, or no folder.
    """
    folder = Path(path).expanduser().absolute()
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError):
        return None
    says_so = isinstance(config, dict) and all(config.get(name) is True for name in _BORROWS)
    return folder if says_so else None


def _installed_default() -> Path:
    path = default_model.default_model_path()
    if not path.is_file():
        raise ModelError(
            "The default model is not installed yet. Run `make run`, or "
            "`python -m engine.models.default_model`, once; or open a model of your own."
        )
    return path


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise ModelError(f"{path.name} is no ordinary file. Open a GGUF file or a folder.")
    with path.open("rb") as file:
        if file.read(4) == _GGUF_MAGIC:
            return
    if path.suffix.lower() in _PICKLES:
        raise ModelError(
            f"{path.name} is a pickle, which can run code when opened. "
            "Draftlight reads safetensors folders and GGUF files."
        )
    if path.suffix.lower() == ".safetensors":
        raise ModelError(
            f"{path.name} holds weights alone. "
            "Open the folder that also has config.json and the tokenizer."
        )
    raise ModelError(f"{path.name} is not a model file. Open a GGUF file or a safetensors folder.")


def _check_folder(path: Path) -> None:
    if not (path / "config.json").is_file():
        raise ModelError(
            f"The folder {path.name} has no config.json, so it is no model. "
            "Open the folder that holds config.json, or a GGUF file."
        )
    if not any(path.glob("*.safetensors")):
        pickled = any(file.suffix in _PICKLES for file in path.iterdir())
        raise ModelError(
            f"The folder {path.name} has no .safetensors file"
            + (", only pickled weights, which can run code when opened." if pickled else ".")
            + " Choose a model saved as safetensors, or a GGUF file."
        )
    _check_layers(path)
    if borrowing_folder(str(path)) is not None:
        raise ModelError(
            f"The folder {path.name} holds a draft model that borrows parts of its target, so it "
            "can't answer by itself. Choose it as a drafter, draft-model."
        )
    if not any((path / name).is_file() for name in _TOKENIZER_FILES):
        raise ModelError(
            f"The folder {path.name} has no tokenizer (tokenizer.json or tokenizer.model). "
            "Copy the model's tokenizer files into it."
        )


def _check_layers(path: Path) -> None:
    """No count of layers is believed but one that the files can hold: a model of it would be built.

    What can't be read of the weights is told when they are loaded.
    """
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        layers = (config.get("text_config") or config).get("num_hidden_layers")
    except (ValueError, AttributeError) as error:
        raise ModelError(
            f"The folder {path.name} is damaged: its config.json can't be read. "
            "Get the model again."
        ) from error
    try:
        held = sum(len(_tensor_names(file)) for file in path.glob("*.safetensors"))
    except (OSError, SafetensorError):
        return
    if isinstance(layers, int) and not 0 < layers <= held:
        raise ModelError(
            f"The folder {path.name} is damaged: its config.json speaks of {layers:,} layers, and "
            f"its files hold {held:,} tensors. Get the model again."
        )


def _tensor_names(file: Path) -> list[str]:
    with safe_open(file, framework="pt") as opened:
        return list(cast("list[str]", opened.keys()))
