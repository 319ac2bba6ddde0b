"""One kind of row (`RowKind`), and the space between rows. `registry.py` lists all kinds."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic

from app.window.rows.base import R, RowView
from app.window.rows.row import Row
from app.window.theme.tokens import DesignTokens

# A character is about half as wide as its font size, and a line one and a half times as high.
_CHARACTER = 0.52
_LINE = 1.5


class Spacing(StrEnum):
    """The role of a row towards the rows above and below it."""

    MESSAGE = "message"
    EDIT = "edit"
    ATTACHMENT = "attachment"
    SPEAKER = "speaker"
    REPLY_START = "reply start"
    TEXT = "text"
    ACTIVITY = "call or thinking"
    CARD = "card"
    SWITCH_ABOVE = "switch above a reply"
    SWITCH_BELOW = "switch below a message"
    BRANCH_END = "branch end"


def spacing_above(above: Spacing | None, row: Spacing, tokens: DesignTokens) -> int:
    """Pixels above a row: much if the speaker changes, little within one reply."""
    match above, row:
        case None, _:
            return 0
        case (Spacing.MESSAGE | Spacing.ATTACHMENT, Spacing.ATTACHMENT):
            return tokens.space_close
        case (Spacing.MESSAGE | Spacing.EDIT, Spacing.SWITCH_ABOVE | Spacing.SWITCH_BELOW):
            return tokens.space_tight
        case (Spacing.SWITCH_ABOVE | Spacing.SPEAKER, _) | (Spacing.ACTIVITY, Spacing.ACTIVITY):
            return tokens.space_tight
        case (Spacing.MESSAGE | Spacing.EDIT | Spacing.SWITCH_BELOW, _):
            return tokens.space_far
        case (_, Spacing.MESSAGE | Spacing.EDIT | Spacing.CARD | Spacing.BRANCH_END | Spacing.SPEAKER):
            return tokens.space_far
        case (_, Spacing.REPLY_START):
            return tokens.space_wide
        case _:
            return tokens.space_normal


def text_estimate(text: str, width: int, tokens: DesignTokens) -> int:
    """The estimated height in pixels of a text of that width."""
    columns = max(1, int(width / (tokens.size_reading * _CHARACTER)))
    lines = len(text) // columns + text.count("\n") + 1
    return int(lines * tokens.size_reading * _LINE)


def line_estimate(row: Row, width: int, tokens: DesignTokens) -> int:
    """The estimated height of a row with a single line."""
    return tokens.space_far + tokens.space_normal


def card_estimate(row: Row, width: int, tokens: DesignTokens) -> int:
    """The estimated height of a card with a few lines."""
    return 6 * tokens.space_far


def _no_markdown(row: Row, is_open: bool) -> str:
    return ""


def _no_text(row: Row) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class RowKind(Generic[R]):
    """The functions of one kind of row.

    `estimate(row, width, tokens)` is an approximate height in pixels, used for the scroll bar. `markdown(row, is_open)`
    is the whole row for copying, for a collapsed card only its line. `text(row)` is the text searched by find in page:
    the row's texts in the order of its view.
    """

    row: type[R]
    view: type[RowView[R]]
    spacing: Callable[[R], Spacing]
    estimate: Callable[[R, int, DesignTokens], int]
    markdown: Callable[[R, bool], str] = _no_markdown
    text: Callable[[R], str] = _no_text
