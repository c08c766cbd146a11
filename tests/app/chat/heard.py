"""A controller with a played engine, and everything it says to the window."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from app.chat.controller import ChatController
from app.engine_thread import EngineThread
from engine.events import Round
from engine.params import ReplyParams, SamplingParams

if TYPE_CHECKING:
    from tests.app.fakes import FakeLoad

PARAMS = ReplyParams(sampling=SamplingParams(seed=42))
SIGNALS = (
    "busy_changed",
    "user_turn_added",
    "reply_begun",
    "events_arrived",
    "reply_failed",
    "user_turn_withdrawn",
    "prompt_returned",
    "reply_withdrawn",
    "chat_cleared",
    "failed",
    "drafter_changed",
    "drafter_measured",
)


class Heard:
    """Everything a controller has said, in order."""

    def __init__(self, chat: ChatController) -> None:
        self.said: list[tuple] = []
        for name in SIGNALS:
            getattr(chat, name).connect(
                lambda *values, name=name: self.said.append((name, *values))
            )

    def names(self) -> list[str]:
        merged = [name for name, *_ in self.said if name != "busy_changed"]
        return [name for at, name in enumerate(merged) if at == 0 or merged[at - 1] != name]

    def of(self, name: str) -> list:
        return [values[0] if values else None for said, *values in self.said if said == name]


@asynccontextmanager
async def chatting(load: FakeLoad):
    async with EngineThread(load) as engine:
        await engine.load("default", device="auto", on_progress=lambda stage, share: None)
        chat = ChatController(engine)
        heard = Heard(chat)
        yield chat, heard
        await chat.finish()


def rounds(heard: Heard) -> list[Round]:
    return [
        event for batch in heard.of("events_arrived") for event in batch if isinstance(event, Round)
    ]
