"""What memory remembers: one entry for each message, result of a tool, and task."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from errand.engine.core.messages import TASK_COMPLETE
from errand.engine.tools.call_display import display_of
from errand.engine.tools.control.task_messages import SendUpdate
from errand.engine.tools.control.todo import Todo
from errand.engine.tools.memory.search import SearchMemory
from errand.protocol.blocks import FileBlock, MemoryRole, SummaryBlock, TextBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Node

# Of a long output, the beginning and the end tell what it was.
_MAX_TEXT_LENGTH = 16_000
# Results that say nothing new: what was found in memory is there already, the others are the same each time.
_NOT_REMEMBERED = (SearchMemory.name, TASK_COMPLETE, SendUpdate.name, Todo.name)
_PERSON, _SUMMARY = "User", "Summary"


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """`number` identifies it in the indexes, `id` is its node. `speaker` names a person, an agent or a tool."""

    number: int
    id: str
    conversation_id: str
    speaker: str
    role: MemoryRole
    at: datetime
    text: str
    folder: str = ""
    task_id: str = ""


def entry_of(
    node: Node, number: int, folder: str, names: Mapping[str, str], redact: Callable[[str], str]
) -> MemoryEntry | None:
    """Return the entry of a finished node; None if it says nothing. `names` are those of agents by id.

    `folder` is the one in which it was said. Secrets are redacted.
    """
    role, speaker, text = _role_speaker_text(node, names)
    clean = redact(text.replace("\0", " ").encode("utf-8", "replace").decode()).strip()
    if not clean:
        return None
    return MemoryEntry(
        number,
        node.id,
        node.conversation_id,
        redact(speaker),
        role,
        node.created_at,
        _shortened(clean),
        redact(folder),
        node.task_id or "",
    )


def _role_speaker_text(node: Node, names: Mapping[str, str]) -> tuple[MemoryRole, str, str]:
    result = next((block for block in node.blocks if isinstance(block, ToolResultBlock)), None)
    if result is not None:
        return "tool", result.tool, "" if result.tool in _NOT_REMEMBERED or "forgotten" in result.marks else result.text
    summary = next((block for block in node.blocks if isinstance(block, SummaryBlock)), None)
    if summary is not None:
        return "task", _SUMMARY, summary.text
    if node.task_from:
        return "task", node.task_from, _text(node)
    if node.role == "assistant" and node.status in ("complete", "cut"):
        return "agent", names.get(node.author, "Assistant"), _text(node)
    return "user", _PERSON, _text(node) if node.is_from_person else ""


def _text(node: Node) -> str:
    return "\n".join(filter(None, map(_part, node.blocks)))


def _part(block: object) -> str:
    match block:
        case TextBlock(text=text, forgotten=is_forgotten):
            return "" if is_forgotten else text
        case FileBlock(name=name):
            return f"[file: {name}]"
        case ToolCallBlock(tool=tool, arguments=arguments):
            display = display_of(tool, arguments)
            if display.role != "call":  # what the agent says to the person
                return str(arguments.get(display.content, ""))
            return f"[{tool}: {display.target}]" if display.target else ""
        case _:
            return ""


def _shortened(text: str) -> str:
    if len(text) <= _MAX_TEXT_LENGTH:
        return text
    begin, end = text[: _MAX_TEXT_LENGTH * 2 // 3], text[-_MAX_TEXT_LENGTH // 3 :]
    return f"{begin}\n[…]\n{end}"
