"""What a row says as it is read on the screen: what a search in the conversation looks through."""

import json
import re
from typing import assert_never

from app.client.call_words import text_of, without_file_names
from app.client.characters import exact, output_text, plain
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

_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARK = re.compile(r"\*\*|__|~~|\*(?=\w)|(?<=\w)\*|^#{1,6} |^> ?", re.MULTILINE)
_FENCE = ("```", "~~~")


def row_text(row: Row) -> str:
    """Its texts one below the other, in the order of its block."""
    match row:
        case UserRow(text=text):
            return text
        case TextRow(markdown=text) | ThinkingRow(text=text):
            return _without_marks(text)
        case ToolRow():
            return _call(row)
        case SummaryRow(summary=summary):
            return _without_marks(plain(summary.text))
        case NoticeRow(notice=notice):
            return plain(notice.text)
        case EndRow(task=task, remarks=remarks):
            said = _without_marks(task.summary or task.error or "")
            return "\n".join(text for text in (said, " ".join(remarks)) if text)
        case AskRow(ask=ask):
            return plain(ask.text)
        case ImageRow() | FileRow() | EditRow() | ForkRow() | OpenEndRow() | SpeakerRow():
            return ""
        case _:
            assert_never(row)


def _without_marks(markdown: str) -> str:
    """Code stays as it is written; a guess for the rest, which only has to find the same words."""
    if markdown.startswith(_FENCE):
        return markdown.partition("\n")[2]
    pieces = _LINK.sub(r"\1", markdown).split("`")
    return "".join(piece if number % 2 else _MARK.sub("", piece) for number, piece in enumerate(pieces))


def _call(row: ToolRow) -> str:
    details = (row.result.details or {}) if row.result else {}
    diff = details.get("diff")
    if isinstance(diff, str):
        return exact(without_file_names(diff)).rstrip("\n")
    arguments = row.call.arguments
    is_command = row.call.tool == "shell" and set(arguments) == {"command"}
    given = text_of(arguments, "command") if is_command else json.dumps(arguments, indent=2, ensure_ascii=False)
    return f"{row.call.invalid or given}\n{output_text(row.result.text if row.result else row.output)}"
