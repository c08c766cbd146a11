"""Weights of a file or folder as a transformers model; what can't be one is refused."""

# transformers' own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any, cast

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
                # What does not fit is told below, and by its name.
                ignore_mismatched_sizes=True,
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
    model, loaded = cast("tuple[PreTrainedModel, dict[str, set[Any]]]", found)
    fault = _fault(model, loaded)
    if fault is not None:
        raise ModelError(
            f"{source.path.name} is damaged or incomplete: {fault}. Get the model again."
        )
    return model.eval()


def _fault(model: PreTrainedModel, loaded: dict[str, set[Any]]) -> str | None:
    """Why the weights are not what the config speaks of; None where they are.

    transformers makes up what is missing or of another shape, and leaves out what is too much.
    """
    missing: list[str] = sorted(loaded["missing_keys"])
    if missing:
        more = f" and {len(missing) - 1} more tensors" if missing[1:] else ""
        return f"it lacks {missing[0]}{more}"
    misshapen = sorted(loaded["mismatched_keys"])
    if misshapen:
        name, *shapes = misshapen[0]
        found, wanted = (" × ".join(map(str, shape)) for shape in shapes)
        return f"its tensor {name} is {found} in place of {wanted}"
    parts = {name.rpartition(".")[0] for name, _ in model.named_parameters()}
    for name in sorted(loaded["unexpected_keys"]):
        # What is of no part of the model, another head say, does it no harm.
        if not parts.isdisjoint(_in_first_layer(name, model.base_model_prefix)):
            return f"it has no use for its tensor {name}"
    return None


def _in_first_layer(tensor: str, prefix: str) -> set[str]:
    """What the part of a model that a tensor belongs to is called in the first layer."""
    part = re.sub(r"\.\d+\.", ".0.", tensor, count=1).rpartition(".")[0]
    return {part, f"{prefix}.{part}"}


def _first_line(error: Exception) -> str:
    """The first line that says something; some only announce the next one."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.endswith(":")]
    return textwrap.shorten("".join(said[:1]), 160, placeholder=" …") or type(error).__name__
