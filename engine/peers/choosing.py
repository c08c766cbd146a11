"""Which peers can be measured on this machine with this target, and why the others can't."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from engine.models.catalog import find_model
from engine.peers.generate import TransformersPeer
from engine.peers.llama_server import LlamaServerPeer
from engine.peers.peer import PeerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.engine import Engine
    from engine.models.catalog import ModelSource
    from engine.peers.measuring import Work
    from engine.peers.peer import Peer

PROGRAM = "llama-server"
_DRAFT_MODEL = "draft-model:"
_SPARE_TOKENS = 256
"""Room for drafts that reach past a reply's end."""


def peers_here(
    engine: Engine, work: Work, drafters: Sequence[str], program: Path | None, notes: list[str]
) -> list[Peer]:
    """The peers; a sentence goes to `notes` for each that has to be left out.

    drafters: the bench's own specs; their first draft model is the peers' too. program: None to
    look for llama.cpp's server on the path.
    """
    target = find_model(engine.source)
    draft = _draft_model(drafters)
    peers: list[Peer] = [
        TransformersPeer(
            target, draft, device=engine.device, end_ids=engine.lm.end_ids, decode=engine.text
        )
    ]
    program = program or _on_path()
    if not target.is_gguf:
        notes.append("llama.cpp was left out: it reads GGUF files, and this target is none.")
    elif program is None:
        notes.append(f"llama.cpp was left out: there is no {PROGRAM} on the path.")
    else:
        if draft is not None and not draft.is_gguf:
            notes.append("llama.cpp got no draft model: it reads GGUF files, and this one is none.")
            draft = None
        try:
            peers.append(_llama_server(engine, work, program, target, draft))
        except PeerError as error:
            notes.append(f"llama.cpp was left out: {error}")
    return peers


def _llama_server(
    engine: Engine, work: Work, program: Path, target: ModelSource, draft: ModelSource | None
) -> LlamaServerPeer:
    longest = max(len(prompt.ids) for prompt in work.prompts)
    return LlamaServerPeer(
        program,
        target.path,
        draft.path if draft else None,
        threads=torch.get_num_threads(),
        context_tokens=longest + work.max_new_tokens + _SPARE_TOKENS,
        on_cpu=engine.device == "cpu",
    )


def _draft_model(drafters: Sequence[str]) -> ModelSource | None:
    specs = [spec for spec in drafters if spec.startswith(_DRAFT_MODEL)]
    return find_model(specs[0].removeprefix(_DRAFT_MODEL)) if specs else None


def _on_path() -> Path | None:
    found = shutil.which(PROGRAM)
    return Path(found) if found else None
