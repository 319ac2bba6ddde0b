"""A row as Markdown, for copying it with others: texts as they were written, cards as the line they show."""

from typing import assert_never

from app.client.characters import output_text, plain
from app.client.context_words import summary_words
from app.protocol.asks import Ask
from app.window.blocks.ask_card import outcome
from app.window.blocks.end_block import ending_words
from app.window.blocks.tool_block import line_words
from app.window.blocks.tool_card import diff_of
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


def row_markdown(row: Row, *, is_open: bool) -> str:
    """The whole row; of a card that is closed only its line."""
    match row:
        case UserRow(text=text) | TextRow(markdown=text):
            return text.strip("\n")
        case ThinkingRow(text=text):
            return _thought(text, is_open)
        case ToolRow():
            return _call(row, is_open)
        case ImageRow() | FileRow():
            return _attached(row)
        case NoticeRow() | SummaryRow():
            return _remark(row, is_open)
        case AskRow(ask=ask):
            return _ask(ask)
        case EndRow(task=task, remarks=remarks):
            said = task.summary or task.error
            return "\n\n".join(text for text in (ending_words(task), said, " ".join(remarks)) if text)
        case SpeakerRow(speaker=speaker):
            return f"**{plain(speaker.name)}**"
        case EditRow() | ForkRow() | OpenEndRow():
            return ""
        case _:
            assert_never(row)


def fenced(code: str, language: str = "") -> str:
    """With a fence that is longer than any in the code."""
    mark = "```"
    while mark in code:
        mark += "`"
    return f"{mark}{language}\n{code.rstrip()}\n{mark}"


def _attached(row: ImageRow | FileRow) -> str:
    return plain(row.file.path) if isinstance(row, FileRow) else "(a picture)"


def _remark(row: NoticeRow | SummaryRow, is_open: bool) -> str:
    if isinstance(row, NoticeRow):
        return plain(row.notice.text).strip()
    words = summary_words(row.summary)
    return "\n".join((words, *_quoted(plain(row.summary.text)))) if is_open else words


def _ask(ask: Ask) -> str:
    return plain(ask.text) if ask.status == "waiting" else f"{plain(ask.text)}\n{outcome(ask)}"


def _thought(text: str, is_open: bool) -> str:
    return "\n".join(("Thought", *_quoted(text))) if is_open else "Thought"


def _call(row: ToolRow, is_open: bool) -> str:
    if not is_open:
        return line_words(row)
    diff = diff_of(row)
    output = output_text(row.result.text if row.result else row.output)
    body = fenced(diff, "diff") if diff else fenced(output) if output.strip() else ""
    return f"{line_words(row)}\n\n{body}".rstrip()


def _quoted(text: str) -> list[str]:
    return [f"> {line}".rstrip() for line in text.strip("\n").split("\n")]
