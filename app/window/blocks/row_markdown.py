"""A row as Markdown, for copying it with others: texts as they were written, cards as the line they show."""

from typing import assert_never

from app.client.characters import output_text, plain
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
    TextRow,
    ThinkingRow,
    ToolRow,
    UserRow,
)


def row_markdown(row: Row, *, is_open: bool) -> str:
    """The whole row; of a card that is closed only its line."""
    match row:
        case UserRow(text=text):
            return text.strip("\n")
        case TextRow(markdown=markdown):
            return markdown.strip("\n")
        case ThinkingRow(text=text):
            return "\n".join(("Thought", *_quoted(text))) if is_open else "Thought"
        case ToolRow():
            return _call(row) if is_open else line_words(row)
        case ImageRow() | FileRow():
            return _attached(row)
        case NoticeRow(notice=notice):
            return plain(notice.text).strip()
        case AskRow(ask=ask):
            return plain(ask.text) if ask.status == "waiting" else f"{plain(ask.text)}\n{outcome(ask)}"
        case EndRow(task=task, remarks=remarks):
            said = task.summary or task.error
            return "\n\n".join(text for text in (ending_words(task), said, " ".join(remarks)) if text)
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


def _call(row: ToolRow) -> str:
    diff = diff_of(row)
    output = output_text(row.result.text if row.result else row.output)
    body = fenced(diff, "diff") if diff else fenced(output) if output.strip() else ""
    return f"{line_words(row)}\n\n{body}".rstrip()


def _quoted(text: str) -> list[str]:
    return [f"> {line}".rstrip() for line in text.strip("\n").split("\n")]
