"""Draftlight's engine: a target, its drafters, and replies as streams of events. No Qt anywhere.

Names that need torch load on first use, so that a window can show before torch is imported.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.events import (
    Drafted,
    Event,
    Finished,
    FinishReason,
    Node,
    Origin,
    Outcome,
    Prefilled,
    Round,
    Token,
)
from engine.params import ReplyParams, Rule, SamplingParams
from engine.stats import Baseline, BaselineReading, ReplyStats

if TYPE_CHECKING:
    from engine.engine import DrafterChoice, Engine
    from engine.session import Message, Session

# Read by transformers, its hub client and tqdm when they are first imported: no network unless the
# user asks for it, and nothing printed over a console that is not theirs.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TQDM_DISABLE", "1")

__version__ = "0.1.0"

__all__ = [
    "Baseline",
    "BaselineReading",
    "Drafted",
    "DrafterChoice",
    "Engine",
    "EngineError",
    "Event",
    "FinishReason",
    "Finished",
    "Message",
    "Node",
    "Origin",
    "Outcome",
    "Prefilled",
    "ReplyParams",
    "ReplyStats",
    "Round",
    "Rule",
    "SamplingParams",
    "Session",
    "Token",
]

_HOMES = {
    "DrafterChoice": "engine.engine",
    "Engine": "engine.engine",
    "Message": "engine.session",
    "Session": "engine.session",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'engine' has no attribute {name!r}")
