"""What can go wrong outside our own code, each as a sentence that tells the user what to do."""


class EngineError(Exception):
    """The world's mistake, not ours; `str(error)` is shown to the user as it stands."""


class ModelError(EngineError):
    """A file or folder that cannot be used as a model."""


class DrafterMismatch(EngineError):
    """A drafter that does not fit the target; the sentence says why."""


class PromptTooLong(EngineError):
    """The conversation needs more tokens than the model's context holds."""

    def __init__(self, *, needed: int, context_length: int) -> None:
        super().__init__(
            f"This conversation needs {needed:,} tokens, and the model reads at most "
            f"{context_length:,}. Shorten the message or start a new chat."
        )
        self.needed = needed
        self.context_length = context_length


class OutOfMemory(EngineError):
    """No memory left on the device; what was taken has been given back."""


class LoadCancelled(EngineError):
    """Loading was stopped at the user's wish."""
