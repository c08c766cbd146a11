"""Weights of a file or folder as a transformers model; what can't be one is refused."""

# transformers' own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, cast

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from engine.errors import ModelError
from engine.models.memory import is_memory_error, memory_errors

if TYPE_CHECKING:
    from engine.models.catalog import ModelSource


def load_model(source: ModelSource, *, device: str, dtype: torch.dtype) -> PreTrainedModel:
    """A model's weights on their device, ready for inference.

    On CUDA, accelerate places what does not fit one GPU on the others and the CPU.

    Raises:
        ModelError: the file or folder holds no usable model. OutOfMemory: it does not fit.
    """
    with memory_errors(device):
        try:
            found = AutoModelForCausalLM.from_pretrained(
                str(source.folder),
                **(
                    {"gguf_file": source.path.name} if source.is_gguf else {"use_safetensors": True}
                ),
                dtype=dtype,
                device_map="auto" if device == "cuda" else device,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
        except (torch.OutOfMemoryError, MemoryError):
            raise
        except Exception as error:  # transformers and gguf raise of every kind on damaged files
            if is_memory_error(error):
                raise
            raise ModelError(
                f"{source.path.name} could not be read as a model; it may be damaged, incomplete "
                f"or of a kind that transformers does not know ({_first_line(error)})."
            ) from error
    model, loaded = cast("tuple[PreTrainedModel, dict[str, set[str]]]", found)
    missing = sorted(loaded["missing_keys"])
    if missing:  # transformers makes up what is not there
        raise ModelError(
            f"{source.path.name} is damaged or incomplete: it lacks {missing[0]}"
            + (f" and {len(missing) - 1} more tensors." if missing[1:] else ".")
            + " Get the model again."
        )
    return model.eval()


def _first_line(error: Exception) -> str:
    line = (str(error).strip().splitlines() or [""])[0]
    return textwrap.shorten(line, 160, placeholder=" …") or type(error).__name__
