"""llama.cpp's server as a peer: the same GGUF file, plain and with each of its own speculations."""

from __future__ import annotations

import re
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from engine.events import FinishReason
from engine.peers.peer import PLAIN, Answer, PeerError, PeerReply
from engine.peers.server_process import running

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

_DRAFT_MODEL = "draft model"
_PROBE_SECONDS = 60.0
_READY_SECONDS = 300.0
_ANSWER_SECONDS = 1800.0
_REASONS = {"eos": FinishReason.END_OF_TURN, "word": FinishReason.STOP_TEXT}
_DRAFT_OPTIONS = ("--spec-draft-model", "--model-draft")


class LlamaServerPeer:
    """A server for each mode, started with what its own `--help` knows.

    Speculation runs with the program's own defaults. context_tokens: the longest prompt and its
    reply. The deadlines are for tests.

    Raises:
        PeerError: the program cannot be asked, or is something else.
    """

    dtype = "the file's own"

    def __init__(
        self,
        program: Path,
        target: Path,
        draft: Path | None,
        *,
        threads: int,
        context_tokens: int,
        on_cpu: bool,
        ready_seconds: float = _READY_SECONDS,
        answer_seconds: float = _ANSWER_SECONDS,
    ) -> None:
        usage = _said_by(program, "--help")
        if not {"--model", "--port", "--threads"} <= _options(usage):
            raise PeerError(f"{program.name} does not look like llama.cpp's server.")
        self.name = f"llama.cpp {_version(_said_by(program, '--version'))}"
        self._kinds = _speculative_kinds(usage)
        self._known = _options(usage)
        self._program = program
        self._target = target
        self._draft = draft if self._known.intersection(_DRAFT_OPTIONS) else None
        self._threads = threads
        self._context_tokens = context_tokens
        self._on_cpu = on_cpu
        self._ready_seconds = ready_seconds
        self._answer_seconds = answer_seconds
        self.modes = (
            PLAIN,
            *(kind for kind in self._kinds if kind.startswith("ngram")),
            *([_DRAFT_MODEL] if self._draft else []),
        )

    @contextmanager
    def opened(self, mode: str) -> Generator[Answer]:
        """A server in this mode.

        Raises:
            PeerError: it does not come up.
        """
        with running(self._command(mode), ready_seconds=self._ready_seconds) as server:

            def answer(ids: Sequence[int], max_new_tokens: int) -> PeerReply:
                request = {
                    "prompt": list(ids),
                    "n_predict": max_new_tokens,
                    # Greedy, and no penalty in the chain.
                    "samplers": ["top_k", "temperature"],
                    "top_k": 1,
                    "temperature": 0,
                    "stream": False,
                    "cache_prompt": False,
                    "return_tokens": True,
                }
                return _reply(server.post("/completion", request, self._answer_seconds))

            yield answer

    def close(self) -> None:
        """Nothing runs between modes."""

    def _command(self, mode: str) -> list[str]:
        command = [str(self._program), "--model", str(self._target)]
        command += ["--threads", str(self._threads)]
        command += self._where_known("--threads-batch", str(self._threads))
        command += self._where_known("--ctx-size", str(self._context_tokens))
        command += self._where_known("--parallel", "1")
        command += self._where_known("--cache-ram", "0")  # no copies of old prompts between replies
        command += self._where_known("--offline")
        if self._on_cpu:
            command += self._where_known("--device", "none")
        return command + self._speculation(mode)

    def _speculation(self, mode: str) -> list[str]:
        if mode == PLAIN:
            return []
        if mode != _DRAFT_MODEL:
            return ["--spec-type", mode]
        option = next(option for option in _DRAFT_OPTIONS if option in self._known)
        kind = ["--spec-type", "draft-simple"] if "draft-simple" in self._kinds else []
        threads = self._where_known("--threads-draft", str(self._threads))
        return [option, str(self._draft), *kind, *threads]

    def _where_known(self, option: str, *value: str) -> list[str]:
        return [option, *value] if option in self._known else []


def _reply(answer: object) -> PeerReply:
    """The server's JSON as a reply, or what is wrong with it."""
    try:
        fields = cast("dict[str, Any]", answer)
        timings = cast("dict[str, Any]", fields["timings"])
        ids = tuple(int(token) for token in fields["tokens"])
        reply = PeerReply(
            ids=ids,
            text=str(fields["content"]),
            first_tokens=min(1, len(ids)),
            prefill_seconds=float(timings["prompt_ms"]) / 1000,
            decode_seconds=float(timings["predicted_ms"]) / 1000,
            finish_reason=_REASONS.get(fields.get("stop_type", ""), FinishReason.LENGTH),
            drafted=int(timings.get("draft_n", 0)),
            accepted=int(timings.get("draft_n_accepted", 0)),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PeerError(
            "the server's answer lacks the tokens or timings that it should have."
        ) from error
    if not ids or reply.prefill_seconds <= 0:
        raise PeerError("the server's answer holds no tokens or no timings.")
    return reply


def _said_by(program: Path, option: str) -> str:
    try:
        run = subprocess.run(
            [str(program), option],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except OSError as error:
        raise PeerError(f"{program} can't be started: {error.strerror}.") from error
    except subprocess.TimeoutExpired as error:
        raise PeerError(f"{program} does not answer to {option}.") from error
    return (run.stdout + run.stderr).decode("utf-8", "replace")


def _options(usage: str) -> frozenset[str]:
    return frozenset(re.findall(r"(?<![\w-])--[a-z][\w-]*", usage))


def _speculative_kinds(usage: str) -> tuple[str, ...]:
    """The values that `--spec-type` takes, as the help lists them."""
    found = re.search(r"--spec-type\s+\[?([\w|,-]+)", usage)
    return tuple(re.split(r"[|,]", found[1])) if found else ()


def _version(said: str) -> str:
    """The version, with the build's number where the program tells both."""
    found = re.search(r"version:\s*([^\s(]+)(?:\s*\((build \d+))?", said)
    return " ".join(filter(None, found.groups())) if found else "of unknown version"
