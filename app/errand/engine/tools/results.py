"""What a tool gives back: `ToolResult`, or a `ToolError`."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import msgspec

from errand.engine.core.errors import EngineError
from errand.engine.core.messages import Text, UserContent
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import FileEdit, Location, ResultMark
from errand.text.redaction import Redactor

_MAX_SUMMARY_LENGTH = 120  # characters
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")

OnUpdate: TypeAlias = Callable[["ToolResult"], None]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool. The model reads `content`; people and the record also get `details` and `summary`.

    `summary` is one short line ("12 passed", "+3 −1"), without the time. Clients show these `details`, if there are
    any: `diff` (unified) with `added` and `removed`, `edits`, `locations`, `duration_ms`, `last_lines`, `stdout_file`
    and `stderr_file`.
    `terminate` requests that no further model call follows; it applies if every result of the batch sets it.
    """

    content: tuple[UserContent, ...]
    details: JsonObject | None = None
    summary: str = ""
    is_error: bool = False
    terminate: bool = False
    marks: tuple[ResultMark, ...] = ()


def text_result(text: str, summary: str = "", details: JsonObject | None = None) -> ToolResult:
    return ToolResult((Text(text),), details, summary)


def hidden(result: ToolResult, redactor: Redactor) -> ToolResult:
    """Return the result without the app's own keys."""
    content = tuple(Text(redactor.hide(block.text)) if isinstance(block, Text) else block for block in result.content)
    details = {name: _without_keys(value, redactor) for name, value in (result.details or {}).items()}
    return replace(result, content=content, details=details or result.details, summary=redactor.hide(result.summary))


def _without_keys(value: JsonValue, redactor: Redactor) -> JsonValue:
    match value:
        case str():
            return redactor.hide(value)
        case list():
            return [_without_keys(item, redactor) for item in value]
        case dict():
            return {name: _without_keys(item, redactor) for name, item in value.items()}
        case _:
            return value


def hidden_edit(edit: FileEdit, redactor: Redactor) -> FileEdit:
    """Return the edit without the app's own keys."""
    parts = tuple(
        msgspec.structs.replace(part, old_text=redactor.hide(part.old_text), new_text=redactor.hide(part.new_text))
        for part in edit.parts
    )
    return msgspec.structs.replace(edit, parts=parts)


def facts_of_files(*locations: Location, edits: tuple[FileEdit, ...] = ()) -> JsonObject:
    """Return the details of a result that say which files a call worked on, and what it changed in them."""
    facts = {"locations": locations, "edits": edits} if edits else {"locations": locations}
    return msgspec.json.decode(msgspec.json.encode(facts), type=JsonObject)


def short_text(text: str) -> str:
    """Return the first sentence or line of a text, of at most 120 characters."""
    sentence = _SENTENCE_END.split(text.partition("\n")[0], maxsplit=1)[0]
    return sentence[:_MAX_SUMMARY_LENGTH]


class ToolError(EngineError):
    """A tool failed: `str(error)` is the text for the model, `summary` the short one for people.

    Without a summary it is the first sentence: later ones tell the model what to do instead.
    """

    code = "tool_failed"

    def __init__(self, text: str, summary: str = "", details: JsonObject | None = None) -> None:
        super().__init__(text)
        self.summary = summary or short_text(text)
        self.details = details
