"""All kinds of rows, one line each."""

from typing import cast

from app.window.rows.asks.ask import ASK
from app.window.rows.attachments import FILE, IMAGE
from app.window.rows.base import RowKind
from app.window.rows.edit import EDIT_MESSAGE
from app.window.rows.fork import BRANCH_END, BRANCH_SWITCH
from app.window.rows.recall import RECALL
from app.window.rows.reply import REPLY, SPEAKER
from app.window.rows.row import Row
from app.window.rows.summary import SUMMARY
from app.window.rows.task_end import NOTICE, TASK_END
from app.window.rows.thinking import THINKING
from app.window.rows.tool import TOOL_CALL
from app.window.rows.user import USER

_ALL = (
    USER,
    REPLY,
    THINKING,
    TOOL_CALL,
    IMAGE,
    FILE,
    NOTICE,
    SUMMARY,
    RECALL,
    ASK,
    TASK_END,
    EDIT_MESSAGE,
    BRANCH_SWITCH,
    BRANCH_END,
    SPEAKER,
)

# Each kind is only given rows of its own type, since `kind_of` looks it up by that type.
ROW_KINDS = cast("tuple[RowKind[Row], ...]", _ALL)

_BY_ROW = {kind.row: kind for kind in ROW_KINDS}


def kind_of(row: Row) -> RowKind[Row]:
    return _BY_ROW[type(row)]


def row_text(row: Row) -> str:
    """The text of a row that find in page searches."""
    return kind_of(row).text(row)
