"""One conversation as a self-contained HTML file without scripts."""

import base64
import hashlib
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from types import MappingProxyType
from typing import TypeAlias, assert_never

import msgspec
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from errand.engine.tools.call_display import summary_with_time
from errand.protocol.blocks import (
    Block,
    EnvironmentBlock,
    FileBlock,
    ImageBlock,
    NoticeBlock,
    RecallBlock,
    SummaryBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from errand.protocol.conversations import Conversation, Node
from errand.text.notice_text import notice_text, recall_title, recalled_text

# Longer texts are logs rather than prose, and parsing one takes seconds.
_MAX_MARKDOWN_LENGTH = 200_000
_ALLOWED = re.compile(r"(?:https?|mailto):", re.IGNORECASE)

_MARKS = {"cut": "cut off", "failed": "failed", "streaming": "still being written"}

# Returns the bytes of a picture and their media type, None if it is missing or not a picture.
Picture: TypeAlias = Callable[[ImageBlock], tuple[bytes, str] | None]


@dataclass(frozen=True, slots=True)
class Section:
    """Consecutive nodes, the first one after `parent_id`; None is the beginning of the conversation.

    `sub_agent` is the name of the sub-agent whose branch begins here, called by the reply `parent_id`.
    """

    parent_id: str | None
    node_ids: tuple[str, ...]
    sub_agent: str = ""


@dataclass(frozen=True, slots=True)
class SubAgentCall:
    """The reply that called a sub-agent, if it is known, and the sub-agent's name."""

    reply_id: str | None
    sub_agent: str


_NO_CALLS: Mapping[str, SubAgentCall] = MappingProxyType({})


def sections(
    links: Sequence[tuple[str, str | None]], leaf_id: str | None, calls: Mapping[str, SubAgentCall] = _NO_CALLS
) -> tuple[Section, ...]:
    """Return the complete branch that ends in `leaf_id`, then the others, each from its fork or its agent's call.

    Each node is in exactly one section. `links` are pairs of a node's id and its parent's, parents first. At a fork
    within another branch the newest child continues the section. `calls` are by the first node of a sub-agent.
    """
    parents = dict(links)
    children: dict[str | None, list[str]] = {}
    called: dict[str | None, list[str]] = {}
    for node_id, parent_id in links:
        call = calls.get(node_id)
        if call is None:
            children.setdefault(parent_id, []).append(node_id)
        else:
            called.setdefault(call.reply_id, []).append(node_id)
    chosen = _path(parents, leaf_id)
    result = [Section(None, chosen)] if chosen else []
    placed = set(chosen)
    leaving = ((parent, child) for child, parent in links if child not in placed and child not in calls)
    waiting = deque((parent, child) for parent, child in leaving if parent is None or parent in placed)
    waiting += [
        (above_id, child) for above_id in (None, *chosen) for child in called.get(above_id, ()) if child not in placed
    ]
    while waiting:
        parent_id, node_id = waiting.popleft()
        chain = [node_id]
        while following := children.get(chain[-1]):
            waiting += [(chain[-1], other) for other in following[:-1]]
            chain.append(following[-1])
        waiting += [
            (above_id, child) for above_id in chain for child in called.get(above_id, ()) if child not in placed
        ]
        call = calls.get(node_id)
        result.append(Section(parent_id, tuple(chain), call.sub_agent if call is not None else ""))
    return tuple(result)


def _path(parents: dict[str, str | None], leaf_id: str | None) -> tuple[str, ...]:
    path: list[str] = []
    while leaf_id is not None:
        path.append(leaf_id)
        leaf_id = parents[leaf_id]
    return tuple(reversed(path))


def to_html(text: str) -> str:
    """Render Markdown. Only web and mail links are kept, and external pictures become links."""
    if len(text) > _MAX_MARKDOWN_LENGTH:
        return f"<pre>{escape(text)}</pre>"
    return str(_parser().render(text))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.validateLink = _is_allowed
    parser.add_render_rule("image", _image)
    parser.add_render_rule("link_open", _link)
    return parser


def _is_allowed(url: str) -> bool:
    return _ALLOWED.match(url) is not None


def _image(renderer: RendererProtocol, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    name = escape(token.content or "picture")
    return f'<a href="{escape(str(token.attrGet("src")))}" rel="noreferrer noopener">{name}</a>'


def _link(renderer: RendererProtocol, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    return f'<a href="{escape(str(tokens[index].attrGet("href")))}" rel="noreferrer noopener">'


def head(conversation: Conversation, others: int) -> str:
    """Return the page up to the first message. `others` counts the nodes that are not in the file."""
    title = escape(" ".join(conversation.title.split()))
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    facts = f"Begun {conversation.created_at.astimezone():%Y-%m-%d %H:%M}"
    folder = f" · Folder: {escape(conversation.workspace)}" if conversation.workspace else ""
    left = f"<p class=muted>{others:,} entries on other branches are not in this file.</p>" if others else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" '
        f'content="no-referrer">\n<title>{title}</title>\n<style>{style}</style></head>\n'
        f"<body><main>\n<h1>{title}</h1>\n<p class=muted>{facts}{folder}</p>\n{left}\n"
    )


def section_head(number: int, section: Section) -> str:
    """Return the heading of another branch; `number` counts from 1."""
    where = "its call" if section.sub_agent else "its fork"
    origin = "the beginning" if section.parent_id is None else f'<a href="#{_anchor(section.parent_id)}">{where}</a>'
    title = f"Sub-agent {escape(section.sub_agent)}" if section.sub_agent else f"Other branch {number}"
    return (
        f'<h2 class=branch id="{_anchor(section.node_ids[0])}-branch">{title}</h2>\n'
        f"<p class=muted>{_entries(len(section.node_ids))}, from {origin} on</p>\n"
    )


def forks(sections: Sequence[Section]) -> dict[str | None, str]:
    """Return, for each fork, the links to its other branches; None is the beginning."""
    links: dict[str | None, list[str]] = {}
    for number, section in enumerate(sections[1:], 1):
        name = escape(f"sub-agent {section.sub_agent}") if section.sub_agent else f"branch {number}"
        link = f'<a href="#{_anchor(section.node_ids[0])}-branch">{name}</a>'
        links.setdefault(section.parent_id, []).append(f"{link} ({_entries(len(section.node_ids))})")
    return {
        fork_id: f"<p class=forks>From here also: {', '.join(branch_links)}</p>\n"
        for fork_id, branch_links in links.items()
    }


def entries(nodes: Sequence[Node], names: Mapping[str, str], links: Mapping[str | None, str], read: Picture) -> str:
    """Render several nodes; `names` are the agents'. Takes milliseconds per node, so run it in a thread."""
    return "".join(_entry(node, names, read) + links.get(node.id, "") for node in nodes)


TAIL = "</main></body></html>\n"


def _entry(node: Node, names: Mapping[str, str], read: Picture) -> str:
    body = "\n".join(_block_html(block, read) for block in node.blocks)
    error = f'<p class="mark">{escape(node.error)}</p>' if node.error else ""
    kind = "system" if node.role == "user" and not node.is_from_person else node.role
    return (
        f'<article class="{kind}" id="{_anchor(node.id)}">\n{_speaker(node, names)}'
        f"<div class=said>\n{body}\n{error}</div></article>\n"
    )


def _speaker(node: Node, names: Mapping[str, str]) -> str:
    mark = f' · <span class="mark">{_MARKS[node.status]}</span>' if node.status in _MARKS else ""
    if node.role not in ("user", "assistant"):
        return ""
    who = _name(node, names)
    model = f" · {escape(node.model)}" if node.model else ""
    at = f"{node.created_at.astimezone():%Y-%m-%d %H:%M}"
    return f"<header><b>{escape(who)}</b>{model} · {at}{mark}</header>\n"


def _name(node: Node, names: Mapping[str, str]) -> str:
    if node.task_from:
        return f"Task from {node.task_from}"
    return "You" if node.is_from_person else "Errand" if node.role == "user" else names.get(node.author, "Agent")


def _block_html(block: Block, read: Picture) -> str:
    match block:
        case TextBlock(text=text):
            return to_html(text)
        case ThinkingBlock(text=text):
            return _folded("Thinking", _pre(text)) if text.strip() else ""
        case ImageBlock():
            return _picture(block, read)
        case FileBlock(path=path):
            return f"<p class=muted>File: <code>{escape(path)}</code></p>"
        case ToolCallBlock(tool=tool, arguments=arguments, invalid=invalid):
            asked = invalid if invalid is not None else msgspec.json.format(msgspec.json.encode(arguments)).decode()
            return _folded(f"Called {tool}", _pre(asked))
        case ToolResultBlock(tool=tool, text=text, images=images):
            what = summary_with_time(block.summary or ("failed" if block.is_error else "done"), block.details)
            return _folded(f"Result of {tool}: {what}", _pre(text) + "".join(_picture(image, read) for image in images))
        case NoticeBlock():
            return f"<p class=notice>{escape(notice_text(block))}</p>"
        case SummaryBlock(text=text, nodes=nodes):
            return _folded(f"Summary of {nodes} earlier entries, for the model", to_html(text))
        case EnvironmentBlock():
            return ""
        case RecallBlock(entries=entries):
            return _folded(recall_title(block), _pre("\n\n".join(recalled_text(entry) for entry in entries)))
        case _:
            assert_never(block)


def _picture(block: ImageBlock, read: Picture) -> str:
    name = escape(block.name or "a picture")
    stored = read(block)
    if stored is None:
        return f"<p class=muted>Picture: {name}; its file is gone.</p>"
    data, media_type = stored
    source = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
    return f'<figure><img alt="{name}" src="{source}"><figcaption>{name}</figcaption></figure>'


def _folded(title: str, inside: str) -> str:
    return f"<details><summary>{escape(' '.join(title.split()))}</summary>{inside}</details>"


def _pre(text: str) -> str:
    return f"<pre class=text>{escape(text)}</pre>"


def _anchor(node_id: str) -> str:
    return f"n-{escape(node_id)}"


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count:,} entries"


@cache
def _style() -> str:
    return (files("errand.resources") / "export" / "page.css").read_text(encoding="utf-8")
