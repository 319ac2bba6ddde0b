"""Content blocks: what a node holds, in order."""

from typing import Literal, TypeAlias

from app.protocol.base import JsonObject, Wire


class TextBlock(Wire, frozen=True, kw_only=True, tag="text"):
    """Text in Markdown."""

    text: str


class ThinkingBlock(Wire, frozen=True, kw_only=True, tag="thinking"):
    """The model's reasoning. `signature` is the provider's, sent back to it unchanged."""

    text: str
    signature: str = ""


class ImageBlock(Wire, frozen=True, kw_only=True, tag="image"):
    """A picture: `path` is the engine's own copy of an attached one, `name` its file's; or else `data` is base64."""

    media_type: str
    data: str = ""
    path: str = ""
    name: str = ""


class FileBlock(Wire, frozen=True, kw_only=True, tag="file"):
    """A file that a person attached: the model is told its `path`, not its content.

    `size` is in bytes, 0 where it is not known.
    """

    path: str
    name: str
    size: int


class ToolCallBlock(Wire, frozen=True, kw_only=True, tag="toolCall"):
    """What the model asked for. `invalid` holds the raw argument text when it was not a JSON object."""

    call_id: str
    tool: str
    arguments: JsonObject
    invalid: str | None = None


class ToolResultBlock(Wire, frozen=True, kw_only=True, tag="toolResult"):
    """What a tool call gave back: `text` as the model reads it, `summary` in one short line for people.

    `details` depends on the tool (exit code, diff, the file that holds long output). `execution_id` names the
    durable record: `execution/output` reads all that the call gave, which may be more than the text. What the text
    says already is not said again in `details`.
    """

    call_id: str
    tool: str
    text: str
    is_error: bool
    summary: str = ""
    details: JsonObject | None = None
    execution_id: str = ""
    images: tuple[ImageBlock, ...] = ()


NoticeKind = Literal["stopped", "limit", "error", "resumed", "interrupted", "model", "permission", "warning", "info"]


class NoticeBlock(Wire, frozen=True, kw_only=True, tag="notice"):
    """A remark of the engine itself, such as what a stop ended."""

    kind: NoticeKind
    text: str


class SummaryBlock(Wire, frozen=True, kw_only=True, tag="summary"):
    """What a model reads in place of the branch from its beginning to `until_id`. The newest one of a branch counts.

    `nodes` are how many it stands for; the tokens are estimates of what they took, and of what it takes.
    """

    text: str
    until_id: str
    nodes: int = 0
    tokens_before: int = 0
    tokens_after: int = 0


Block: TypeAlias = (
    TextBlock | ThinkingBlock | ImageBlock | FileBlock | ToolCallBlock | ToolResultBlock | NoticeBlock | SummaryBlock
)
