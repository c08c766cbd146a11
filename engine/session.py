"""One conversation: each reply a stream of events, one memo from turn to turn."""

# transformers' and torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine import plan_words
from engine.drafters import FAMILIES
from engine.errors import EngineError, PromptTooLong
from engine.events import (
    Drafted,
    Event,
    Finished,
    FinishReason,
    Node,
    Prefilled,
    Round,
    Token,
)
from engine.speculation import Committed, Drafting, Proposed, Read, speculate
from engine.stats import Baseline, ReplyStats, RoundCounter
from engine.templates import ChatFormat, Message, Prompt
from engine.text import ReplyText

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator

    from engine.models.causal_lm import CausalLM
    from engine.models.kv_memo import KVMemo
    from engine.params import ReplyParams

__all__ = ["Message", "Session"]


class Session:
    """A conversation with one target.

    messages: the turns so far, without the system prompt. drafting: who drafts and how far; may be
    changed at any time, also while a reply runs. baseline: where plain rounds are measured.
    """

    def __init__(
        self,
        lm: CausalLM,
        chat_format: ChatFormat,
        drafting: Drafting,
        *,
        name: str,
        baseline: Baseline,
        system_prompt: str = "",
    ) -> None:
        self.messages: list[Message] = []
        self.system_prompt = system_prompt
        self.drafting = drafting
        self._lm = lm
        self._format = chat_format
        self._memo = lm.new_memo()
        self._name = name
        self._baseline = baseline

    def reply(
        self, text: str | None, params: ReplyParams, stop: threading.Event
    ) -> Iterator[Event]:
        """Answer `text`, or the last user turn again where it is None.

        Before the first of its text the conversation is as it was, whatever ends the reply there;
        from then on turn and reply are part of it as far as they got, also when the reader goes
        away.

        Raises:
            EngineError: an empty or too long prompt, no memory left, a template that fails.
        """
        turns = self._turns_to_answer(text)
        reply = _Reply(self._lm, self._format, params, self._name, self._baseline)
        prompt = self._format.encode(self._with_system(turns))
        try:
            for event in reply.events(self._memo, prompt, self.drafting, stop):
                # A model may end its turn without a word; stopped there, it has not replied.
                if isinstance(event, Finished) and (
                    reply.message() or event.reason is not FinishReason.STOPPED
                ):
                    self.messages = [*turns, *reply.message()]
                yield event
        except BaseException:
            if reply.message():
                self.messages = [*turns, *reply.message()]
            raise

    def context_tokens(self, draft_text: str = "") -> int:
        """How many tokens the conversation takes, with `draft_text` as its next turn."""
        turns = [*self.messages, *([Message("user", draft_text)] if draft_text else [])]
        return len(self._format.encode(self._with_system(turns)).ids) if turns else 0

    def plan_sentence(self) -> str:
        """What the next rounds will do and why, in words."""
        drafting, length = self.drafting, self.drafting.draft_length
        if not self._lm.can_rewind:
            return plan_words.PLAINLY
        return plan_words.sentence(drafting.planner, drafting.drafter.proposers, length, _label)

    def plan_estimates(self) -> plan_words.Estimates | None:
        """What the planner goes by; None before it knows anything, or where nobody drafts."""
        return plan_words.estimates(self.drafting.planner, self.drafting.drafter.proposers)

    def _turns_to_answer(self, text: str | None) -> list[Message]:
        if text is not None:
            if not text.strip():
                raise EngineError("The message is empty. Type something to answer.")
            return [*self.messages, Message("user", text)]
        turns = list(self.messages)
        if turns and turns[-1].role == "assistant":
            turns.pop()
        if not turns:
            raise EngineError("There is no message to answer yet.")
        return turns

    def _with_system(self, turns: list[Message]) -> list[Message]:
        system = [Message("system", self.system_prompt)] if self.system_prompt.strip() else []
        return [*system, *turns]


def _label(proposer: str) -> str:
    """A proposer's name as it stands in a text."""
    labels = {family.name: family.label.rstrip("…").lower() for family in FAMILIES}
    return labels.get(proposer, proposer)


class _Reply:
    """One reply in the making."""

    def __init__(
        self,
        lm: CausalLM,
        chat_format: ChatFormat,
        params: ReplyParams,
        name: str,
        baseline: Baseline,
    ) -> None:
        self._lm = lm
        self._format = chat_format
        self._params = params
        self._name = name
        self._baseline = baseline
        self._counter = RoundCounter()
        self._ids: list[int] = []
        self._parts: list[str] = []
        self._planned = False

    def events(
        self, memo: KVMemo, prompt: Prompt, drafting: Drafting, stop: threading.Event
    ) -> Iterator[Event]:
        """The reply's events, its numbers last."""
        began = time.perf_counter()
        room = self._lm.context_length - len(prompt.ids)
        if room < 1:
            raise PromptTooLong(needed=len(prompt.ids), context_length=self._lm.context_length)
        text = ReplyText(
            self._format.decode,
            end_ids=self._lm.end_ids,
            stop_texts=self._params.stop_texts,
            max_new_tokens=self._params.max_new_tokens,
            context_room=room,
        )
        reason = FinishReason.STOPPED
        prefill_seconds = first_token_seconds = 0.0
        steps = speculate(
            self._lm,
            memo,
            prompt.ids,
            drafting,
            params=self._params.sampling,
            ending=text,
            stop=stop,
            replies=prompt.replies,
        )
        for step in steps:
            match step:
                case Read():
                    prefill_seconds = time.perf_counter() - began
                    yield Prefilled(step.done, step.total)
                case Proposed():
                    yield Drafted(text.preview(step.draft.first_path()), step.drafter)
                case Committed():
                    self._planned |= self._is_planned(drafting)
                    first_token_seconds = first_token_seconds or time.perf_counter() - began
                    reason = step.cut.reason or reason
                    yield self._commit(step)
        rest, _ = text.flush() if reason is FinishReason.STOPPED else ("", False)
        self._parts.append(rest)
        stats = self._stats(len(prompt.ids), prefill_seconds, first_token_seconds)
        yield Finished(reason, stats, rest)

    def message(self) -> list[Message]:
        """The reply as a turn; none where nothing was committed."""
        content = "".join(self._parts)
        if not content:
            return []
        ids = tuple(self._ids[:-1] if self._ids[-1] in self._lm.end_ids else self._ids)
        # Where a stop text or an unfinished character was cut off, the text says what the turn is.
        return [Message("assistant", content, ids if self._format.decode(ids) == content else None)]

    def _is_planned(self, drafting: Drafting) -> bool:
        drafts = self._lm.can_rewind and bool(drafting.drafter.proposers)
        return drafts and drafting.draft_length is None

    def _commit(self, step: Committed) -> Round:
        done = _round(step, self._counter.rounds, self._format.spelled)
        self._ids += step.ids
        self._parts += step.cut.texts
        self._counter.add(done)
        if done.rows == 1:
            self._baseline.observe(done.seconds, context_tokens=step.first_position)
        return done

    def _stats(
        self, prompt_tokens: int, prefill_seconds: float, first_token_seconds: float
    ) -> ReplyStats:
        counter = self._counter
        return ReplyStats(
            target=self._name,
            drafters=tuple(counter.drafters),
            params=self._params,
            tokens=counter.tokens,
            rounds=counter.rounds,
            drafted=counter.drafted,
            accepted=counter.accepted,
            resampled=counter.resampled,
            survival_by_depth=counter.survival_by_depth,
            prompt_tokens=prompt_tokens,
            prefill_seconds=prefill_seconds,
            decode_seconds=counter.decode_seconds,
            first_token_seconds=first_token_seconds,
            baseline=self._baseline.reading(prompt_tokens + counter.tokens // 2),
            planned=self._planned,
        )


def _round(step: Committed, index: int, spelled: Callable[[int], str]) -> Round:
    """A committed round as its event."""
    draft = step.draft
    tokens = tuple(
        Token(
            id=token_id,
            text=text,
            origin=origin,
            position=step.first_position + offset,
            depth=offset + 1,
            p=p,
            q=None if node is None else draft.q[node],
            margin=margin,
        )
        for offset, (token_id, text, origin, p, node, margin) in enumerate(
            zip(
                step.ids,
                step.cut.texts,
                step.origins,
                step.token_p,
                step.nodes,
                step.verdict.margins,
                strict=False,
            )
        )
    )
    place = {node: at for at, node in enumerate(step.judged)}
    nodes = tuple(
        Node(
            id=draft.ids[node],
            parent=place.get(draft.parents[node], -1),
            depth=draft.depths[node],
            drafter=draft.drafters[node],
            p=p,
            q=draft.q[node],
            outcome=step.verdict.outcomes[node],
            text=spelled(draft.ids[node]),
        )
        for node, p in zip(step.judged, step.p, strict=True)
    )
    return Round(
        index=index,
        tokens=tokens,
        nodes=nodes,
        drafter=step.drafter,
        rows=step.rows,
        draft_seconds=step.draft_seconds,
        pass_seconds=step.pass_seconds,
        other_seconds=step.seconds - step.draft_seconds - step.pass_seconds,
    )
