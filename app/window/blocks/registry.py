"""Which block shows which row: one line each."""

from app.window.blocks.ask_block import AskBlock
from app.window.blocks.block import BlockType
from app.window.blocks.edit_block import EditBlock
from app.window.blocks.end_block import EndBlock
from app.window.blocks.file_block import FileBlock
from app.window.blocks.fork_block import ForkBlock
from app.window.blocks.image_block import ImageBlock
from app.window.blocks.notice_block import NoticeBlock
from app.window.blocks.open_end_block import OpenEndBlock
from app.window.blocks.reply_block import ReplyBlock
from app.window.blocks.speaker_block import SpeakerBlock
from app.window.blocks.summary_block import SummaryBlock
from app.window.blocks.thinking_block import ThinkingBlock
from app.window.blocks.tool_block import ToolBlock
from app.window.blocks.user_block import UserBlock
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

BLOCKS: tuple[tuple[type[Row], BlockType], ...] = (
    (UserRow, UserBlock),
    (TextRow, ReplyBlock),
    (ThinkingRow, ThinkingBlock),
    (ToolRow, ToolBlock),
    (ImageRow, ImageBlock),
    (FileRow, FileBlock),
    (NoticeRow, NoticeBlock),
    (SummaryRow, SummaryBlock),
    (AskRow, AskBlock),
    (EndRow, EndBlock),
    (EditRow, EditBlock),
    (ForkRow, ForkBlock),
    (OpenEndRow, OpenEndBlock),
    (SpeakerRow, SpeakerBlock),
)

_BY_ROW: dict[type[Row], BlockType] = dict(BLOCKS)


def block_type(row: Row) -> BlockType:
    return _BY_ROW[type(row)]
