"""The space between rows, and how high a row is thought to be until it is measured."""

from typing import assert_never

from app.window.rows import (
    AskRow,
    EditRow,
    EndRow,
    FileRow,
    ForkRow,
    ImageRow,
    NoticeRow,
    OpenEndRow,
    Row,
    SpeakerRow,
    SummaryRow,
    TextRow,
    ThinkingRow,
    ToolRow,
    UserRow,
)
from app.window.theme.tokens import Tokens

# A character of the base size takes about half its height in width; a line one and a half of it.
_CHARACTER = 0.52
_LINE = 1.5


def gap(above: Row | None, row: Row, tokens: Tokens) -> int:
    """Pixels above a row: much where another one speaks, little inside one reply."""
    match above, row:
        case None, _:
            return 0
        case (UserRow() | ImageRow() | FileRow(), ImageRow() | FileRow()):
            return tokens.space_close
        case (UserRow() | EditRow(), ForkRow()):
            return tokens.space_tight
        case (ForkRow(is_user=False) | SpeakerRow(), _):
            return tokens.space_tight
        case (UserRow() | EditRow() | ForkRow(), _) | (_, UserRow() | EditRow() | EndRow() | AskRow()):
            return tokens.space_far
        case _, OpenEndRow() | SpeakerRow():
            return tokens.space_far
        case (ToolRow() | ThinkingRow(), ToolRow() | ThinkingRow()):
            return tokens.space_tight
        case _, TextRow() if row.step:
            return tokens.space_wide
        case _:
            return tokens.space_normal


def estimate(row: Row, width: int, tokens: Tokens) -> int:
    """A cheap guess in pixels; it only has to make the scroll bar honest."""
    match row:
        case UserRow() | EditRow():
            return tokens.space_far + 2 * tokens.space_normal + _text(row.text, width * 4 // 5, tokens)
        case TextRow():
            return tokens.space_normal + _text(row.markdown, width, tokens)
        case ToolRow() | ThinkingRow() | NoticeRow() | SummaryRow() | FileRow():
            return tokens.space_far + tokens.space_normal
        case ForkRow() | SpeakerRow():
            return tokens.space_far + tokens.space_normal
        case OpenEndRow():
            return 4 * tokens.space_far
        case EndRow() | AskRow():
            return 6 * tokens.space_far
        case ImageRow():
            return 12 * tokens.space_far
        case _:
            assert_never(row)


def _text(text: str, width: int, tokens: Tokens) -> int:
    columns = max(1, int(width / (tokens.size_reading * _CHARACTER)))
    lines = len(text) // columns + text.count("\n") + 1
    return int(lines * tokens.size_reading * _LINE)
