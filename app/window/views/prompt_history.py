"""The way through what was said before: Ctrl+Up to older messages, Ctrl+Down back to what was being written."""

from collections.abc import Sequence


class PromptHistory:
    """What was being written when the way began is at its start, and so is what was changed on the way."""

    def __init__(self) -> None:
        self._place = 0
        self._shown = ""
        self._written = ""

    def step(self, by: int, said: Sequence[str], written: str) -> str | None:
        """The text to show now, -1 for an older one; None at the ends. `said` has the newest first."""
        if self._place == 0 or written != self._shown:
            self._place, self._written = 0, written
        place = self._place - by
        if not 0 <= place <= len(said):
            return None
        self._place = place
        self._shown = said[place - 1] if place else self._written
        return self._shown
