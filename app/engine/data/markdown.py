"""A conversation as Markdown for people to read: one branch of it, tool calls folded."""

import html
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from app.protocol.blocks import (
    Block,
    FileBlock,
    ImageBlock,
    NoticeBlock,
    SummaryBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from app.protocol.conversations import Conversation, Node

_LONGEST_NAME = 60
_LONGEST_IN_BYTES = 200  # a name has 255 at most
_BACKTICKS = re.compile(r"`{3,}")


def page(conversation: Conversation, nodes: Sequence[Node], names: Mapping[str, str], *, others: int) -> Iterator[str]:
    """In pieces; `names` are those of the agents, `others` counts the messages on other branches, left out."""
    yield f"# {_one_line(conversation.title)}\n\n"
    day = f"{conversation.created_at.astimezone():%Y-%m-%d %H:%M}"
    yield f"*Begun {day}. Folder: `{conversation.workspace}`*\n\n"
    if others:
        yield f"*{others:,} messages on other branches are not shown here; the JSON export has them.*\n\n"
    speaker = ""
    for node in nodes:
        who = _who(node, names)
        if who and who != speaker:
            yield f"## {who}\n\n"
            speaker = who
        for block in node.blocks:
            text = _text_of(block)
            if text:
                yield f"{text}\n\n"


def file_name(conversation: Conversation, ending: str) -> str:
    """Day, title and the end of the id, so that two never share one."""
    words = re.sub(r"[^\w-]+", "-", conversation.title).strip("-_")[:_LONGEST_NAME]
    words = words.encode()[:_LONGEST_IN_BYTES].decode("utf-8", "ignore").strip("-") or "conversation"
    return f"{conversation.created_at.astimezone():%Y-%m-%d}-{words}-{conversation.id[-8:]}.{ending}"


def _who(node: Node, names: Mapping[str, str]) -> str:
    match node.role:
        case "user":
            return "You" if node.is_from_person else "Errand"
        case "assistant":
            name = _one_line(names.get(node.author, "Agent"))
            return f"{name} ({node.model})" if node.model else name
        case _:
            return ""


def _text_of(block: Block) -> str:
    match block:
        case TextBlock(text=text):
            return text
        case ThinkingBlock(text=text):
            return _folded("Thinking", text) if text.strip() else ""
        case ImageBlock(name=name):
            return f"*Picture: {name or 'without a name'}*"
        case FileBlock(path=path):
            return f"*File: `{path}`*"
        case ToolCallBlock(tool=tool, arguments=arguments):
            return _folded(f"Called {tool}", msgspec.json.format(msgspec.json.encode(arguments)).decode())
        case ToolResultBlock(tool=tool, text=text, summary=summary, is_error=is_error):
            what = summary or ("failed" if is_error else "done")
            return _folded(f"Result of {tool}: {what}", text)
        case NoticeBlock(text=text):
            return f"> {_one_line(text)}"
        case SummaryBlock(text=text, nodes=nodes):
            return _folded(f"Summary of {nodes} earlier entries, for the model", text)


def _folded(title: str, text: str) -> str:
    longest = max((len(found) for found in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"<details><summary>{html.escape(_one_line(title))}</summary>\n\n{fence}\n{text}\n{fence}\n\n</details>"


def _one_line(text: str) -> str:
    return " ".join(text.split())
