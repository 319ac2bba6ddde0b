"""All kinds of rows, one line each."""

from typing import cast

from errand.client.conversation.rows import Row
from errand.window.rows.asks.ask import ASK
from errand.window.rows.attachments import FILE, IMAGE
from errand.window.rows.base import RowKind
from errand.window.rows.edit import EDIT_MESSAGE
from errand.window.rows.fork import BRANCH_END, BRANCH_SWITCH
from errand.window.rows.recall import RECALL
from errand.window.rows.reply import REPLY, SPEAKER, STEP
from errand.window.rows.summary import SUMMARY
from errand.window.rows.task_end import NOTICE, TASK_END
from errand.window.rows.thinking import THINKING
from errand.window.rows.tools.tool_call import TOOL_CALL
from errand.window.rows.user import USER

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
    STEP,
)

# Each kind is only given rows of its own type, since `kind_of` looks it up by that type.
ROW_KINDS = cast("tuple[RowKind[Row], ...]", _ALL)

_BY_ROW = {kind.row: kind for kind in ROW_KINDS}


def kind_of(row: Row) -> RowKind[Row]:
    return _BY_ROW[type(row)]


def row_text(row: Row) -> str:
    """Return the text of a row that find in page searches."""
    return kind_of(row).text(row)
