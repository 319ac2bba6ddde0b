"""When the transcript asks for earlier messages: as the first row comes near. To load them is the store's."""

from app.window.blocks.actions import BlockActions
from app.window.transcript.source import RowSource


class Older:
    """Asks once for each number of rows; again after the person went away and back."""

    def __init__(self, rows: RowSource, actions: BlockActions) -> None:
        self._rows = rows
        self._actions = actions
        self._asked_at: int | None = None

    @property
    def is_waiting(self) -> bool:
        return self._asked_at is not None

    def reset(self) -> None:
        self._asked_at = None

    def see(self, shown: range) -> None:
        """Ask for more rows, if they are wanted now that these are in view."""
        if not self._rows.has_older or (shown.start > len(shown) and self._rows.count()):
            self._asked_at = None
        elif self._asked_at != self._rows.count():
            self._asked_at = self._rows.count()
            self._actions.load_older()
