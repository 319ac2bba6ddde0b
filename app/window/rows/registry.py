"""All row kinds, one line each: row, view, Markdown form."""

from typing import assert_never

from app.client.display_text import summary_words
from app.client.safe_text import output_text, plain
from app.protocol.asks import Ask
from app.window.rows.ask import AskView
from app.window.rows.ask_card import outcome_text
from app.window.rows.attachments import FileView, ImageView
from app.window.rows.base import RowViewType
from app.window.rows.edit import EditMessageView
from app.window.rows.fork import BranchEndView, BranchSwitchView
from app.window.rows.reply import ReplyView, SpeakerView
from app.window.rows.row import (
    AskRow,
    BranchEndRow,
    BranchSwitchRow,
    EditMessageRow,
    FileRow,
    ImageRow,
    NoticeRow,
    ReplyRow,
    Row,
    SpeakerRow,
    SummaryRow,
    TaskEndRow,
    ThinkingRow,
    ToolCallRow,
    UserRow,
)
from app.window.rows.summary import SummaryView
from app.window.rows.task_end import NoticeView, TaskEndView, ending_text
from app.window.rows.thinking import ThinkingView
from app.window.rows.tool import ToolCallView, result_diff, tool_line
from app.window.rows.user import UserView

ROW_KINDS: tuple[tuple[type[Row], RowViewType], ...] = (
    (UserRow, UserView),
    (ReplyRow, ReplyView),
    (ThinkingRow, ThinkingView),
    (ToolCallRow, ToolCallView),
    (ImageRow, ImageView),
    (FileRow, FileView),
    (NoticeRow, NoticeView),
    (SummaryRow, SummaryView),
    (AskRow, AskView),
    (TaskEndRow, TaskEndView),
    (EditMessageRow, EditMessageView),
    (BranchSwitchRow, BranchSwitchView),
    (BranchEndRow, BranchEndView),
    (SpeakerRow, SpeakerView),
)

_BY_ROW: dict[type[Row], RowViewType] = dict(ROW_KINDS)


def view_type(row: Row) -> RowViewType:
    return _BY_ROW[type(row)]


def row_markdown(row: Row, *, is_open: bool) -> str:
    """The whole row; for a collapsed card only its line."""
    match row:
        case UserRow(text=text) | ReplyRow(markdown=text):
            return text.strip("\n")
        case ThinkingRow(text=text):
            return _thought(text, is_open)
        case ToolCallRow():
            return _call(row, is_open)
        case ImageRow() | FileRow():
            return _attached(row)
        case NoticeRow() | SummaryRow():
            return _remark(row, is_open)
        case AskRow(ask=ask):
            return _ask(ask)
        case TaskEndRow(task=task, remarks=remarks):
            said = task.summary or task.error
            return "\n\n".join(text for text in (ending_text(task), said, " ".join(remarks)) if text)
        case SpeakerRow(speaker=speaker):
            return f"**{plain(speaker.name)}**"
        case EditMessageRow() | BranchSwitchRow() | BranchEndRow():
            return ""
        case _:
            assert_never(row)


def code_fence(code: str, language: str = "") -> str:
    """The fence is longer than any fence in the code."""
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
    return plain(ask.text) if ask.status == "waiting" else f"{plain(ask.text)}\n{outcome_text(ask)}"


def _thought(text: str, is_open: bool) -> str:
    return "\n".join(("Thought", *_quoted(text))) if is_open else "Thought"


def _call(row: ToolCallRow, is_open: bool) -> str:
    if not is_open:
        return tool_line(row)
    diff = result_diff(row)
    output = output_text(row.result.text if row.result else row.output)
    body = code_fence(diff, "diff") if diff else code_fence(output) if output.strip() else ""
    return f"{tool_line(row)}\n\n{body}".rstrip()


def _quoted(text: str) -> list[str]:
    return [f"> {line}".rstrip() for line in text.strip("\n").split("\n")]
