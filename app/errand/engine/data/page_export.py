"""Exports conversations as Markdown or HTML files."""

import asyncio
import html
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from errand.engine.core.errors import Conflict, InvalidParams
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.data import html_page
from errand.engine.data.atomic_file import AtomicFile, check_target
from errand.engine.data.export_redaction import ExportRedaction
from errand.engine.data.html_page import SubAgentCall, sections
from errand.engine.data.json_export import check_leaf, selected_ids
from errand.engine.data.pictures import picture_of
from errand.engine.storage.database import Database
from errand.engine.tools.call_display import summary_with_time
from errand.protocol.agents import first_agent
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
from errand.protocol.data import DataExportParams, DataExportResult
from errand.system.paths import Paths
from errand.system.regular_file import check_write_path
from errand.text.notice_text import notice_text, recall_title, recalled_text
from errand.text.redaction import Redactor

_MAX_NAME_LENGTH = 60
_MAX_NAME_BYTES = 200  # a file name has 255 at most
_BACKTICKS = re.compile(r"`{3,}")

# Nodes per read, and nodes rendered to HTML before the event loop continues.
_PIECE, _STEP = 100, 2


def page(conversation: Conversation, nodes: Sequence[Node], names: Mapping[str, str], *, others: int) -> Iterator[str]:
    """Markdown in pieces; `names` are the agents', `others` counts the omitted messages on other branches."""
    yield f"# {_one_line(conversation.title)}\n\n"
    day = f"{conversation.created_at.astimezone():%Y-%m-%d %H:%M}"
    yield f"*Begun {day}. Folder: `{conversation.workspace}`*\n\n"
    if others:
        yield f"*{others:,} messages on other branches are not shown here; the JSON export has them.*\n\n"
    speaker = ""
    for node in nodes:
        who = _author(node, names)
        if who and who != speaker:
            yield f"## {who}\n\n"
            speaker = who
        for block in node.blocks:
            text = _text_of(block)
            if text:
                yield f"{text}\n\n"


def file_name(conversation: Conversation, ending: str) -> str:
    """Day, title and the end of the id, which makes the name unique."""
    title_part = re.sub(r"[^\w-]+", "-", conversation.title).strip("-_")[:_MAX_NAME_LENGTH]
    title_part = title_part.encode()[:_MAX_NAME_BYTES].decode("utf-8", "ignore").strip("-") or "conversation"
    return f"{conversation.created_at.astimezone():%Y-%m-%d}-{title_part}-{conversation.id[-8:]}.{ending}"


def _author(node: Node, names: Mapping[str, str]) -> str:
    match node.role:
        case "user" if node.task_from:
            return f"Task from {_one_line(node.task_from)}"
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
        case ToolResultBlock(tool=tool, text=text, summary=summary, is_error=is_error, details=details):
            what = summary_with_time(summary or ("failed" if is_error else "done"), details)
            return _folded(f"Result of {tool}: {what}", text)
        case NoticeBlock():
            return f"> {_one_line(notice_text(block))}"
        case SummaryBlock(text=text, nodes=nodes):
            return _folded(f"Summary of {nodes} earlier entries, for the model", text)
        case EnvironmentBlock():
            return ""
        case RecallBlock(entries=entries):
            return _folded(recall_title(block), "\n\n".join(recalled_text(entry) for entry in entries))


def _folded(title: str, text: str) -> str:
    longest = max((len(ticks) for ticks in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"<details><summary>{html.escape(_one_line(title))}</summary>\n\n{fence}\n{text}\n{fence}\n\n</details>"


def _one_line(text: str) -> str:
    return " ".join(text.split())


async def export_pages(
    database: Database, paths: Paths, redactor: Redactor, params: DataExportParams
) -> DataExportResult:
    path = Path(params.path)
    await check_leaf(database, params)
    is_single = params.conversation_ids is not None and len(set(params.conversation_ids)) == 1
    if is_single:
        await in_workspace(path.parent, lambda: check_target(path, paths, overwrite=params.overwrite))
    else:
        await in_workspace(path, lambda: _make_folder(path, paths, overwrite=params.overwrite))
    redaction = ExportRedaction(redactor, keep_secrets=params.keep_secrets)
    pages = _Pages(database, paths, redaction, params)
    conversations = size = 0
    async for conversation_id in selected_ids(database, params.conversation_ids):
        conversation = await database.conversations.get(conversation_id)
        if conversation is not None:
            conversation = redaction.record(conversation)
            name = file_name(conversation, "md" if params.format == "markdown" else "html")
            async with AtomicFile(path if is_single else path / name, overwrite=params.overwrite) as file:
                async for text in pages.texts(conversation):
                    await file.write(text)
            conversations, size = conversations + 1, size + file.size
    return DataExportResult(
        path=str(path), conversations=conversations, nodes=pages.count, bytes=size, removed=redaction.removed
    )


class _Pages:
    """`count` is the number of nodes written."""

    def __init__(self, database: Database, paths: Paths, redaction: ExportRedaction, params: DataExportParams) -> None:
        self._database = database
        self._redaction = redaction
        self._picture = partial(picture_of, attachments=paths.attachments)
        self._params = params
        self.count = 0

    def texts(self, conversation: Conversation) -> AsyncIterator[str]:
        return self._markdown(conversation) if self._params.format == "markdown" else self._html(conversation)

    async def _markdown(self, conversation: Conversation) -> AsyncIterator[str]:
        leaf_id = await self._leaf(conversation.id)
        nodes: tuple[Node, ...] = await self._database.nodes.path(leaf_id) if leaf_id else ()
        nodes = await asyncio.to_thread(self._cleaned, nodes)
        self.count += len(nodes)
        others = await self._database.storage_stats.count_nodes(conversation.id) - len(nodes)
        for text in page(conversation, nodes, await self._names(conversation), others=others):
            yield text

    async def _html(self, conversation: Conversation) -> AsyncIterator[str]:
        links = await self._database.nodes.links(conversation.id)
        names = await self._names(conversation)
        calls = await self._calls(conversation, names)
        page_sections = await asyncio.to_thread(sections, links, await self._leaf(conversation.id), calls)
        if self._params.leaf_id is not None:
            page_sections = page_sections[:1]
        yield html_page.head(conversation, len(links) - sum(len(section.node_ids) for section in page_sections))
        forks = html_page.forks(page_sections)
        yield forks.get(None, "")
        for number, section in enumerate(page_sections):
            if number:
                yield html_page.section_head(number, section)
            for first in range(0, len(section.node_ids), _PIECE):
                stored = await self._database.nodes.several(section.node_ids[first : first + _PIECE])
                nodes = await asyncio.to_thread(self._cleaned, stored)
                self.count += len(nodes)
                for start in range(0, len(nodes), _STEP):
                    step = nodes[start : start + _STEP]
                    yield await asyncio.to_thread(html_page.entries, step, names, forks, self._picture)
        yield html_page.TAIL

    def _cleaned(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        return tuple(map(self._redaction.record, nodes))

    async def _names(self, conversation: Conversation) -> dict[str, str]:
        """Return the names of all agents, including deleted ones."""
        agents = await self._database.agents.list(conversation.id)
        everyone = map(self._redaction.record, (*conversation.former, *agents))
        return {agent.id: agent.name for agent in everyone}

    async def _calls(self, conversation: Conversation, names: Mapping[str, str]) -> dict[str, SubAgentCall]:
        """Return the calls of sub-agents, by the first node of each sub-agent."""
        tasks = {task.id: task for task in await self._database.tasks.of_conversation(conversation.id)}
        if all(task.origin.parent_id is None for task in tasks.values()):
            return {}
        outline = await self._database.trees.outline(conversation.id, tasks.values())
        sub_agents = ((node, tasks.get(node.task_id or "")) for node in outline.nodes if node.task_from)
        return {
            node.id: SubAgentCall(node.parent_id, names.get(task.agent_id, task.origin.title))
            for node, task in sub_agents
            if task is not None
        }

    async def _leaf(self, conversation_id: str) -> str | None:
        """Return the requested node, else the head of the first agent; in a tree without agents its newest node."""
        if self._params.leaf_id is not None:
            return self._params.leaf_id
        agent = first_agent(await self._database.agents.list(conversation_id))
        return agent.head_id if agent is not None else await self._database.nodes.newest(conversation_id)


def _make_folder(path: Path, paths: Paths, *, overwrite: bool) -> None:
    if not path.is_absolute():
        raise InvalidParams(f"path: {str(path)!r} must be an absolute path.")
    try:
        check_write_path(path / "page", paths, overwrite=overwrite)
        path.mkdir(mode=0o700, exist_ok=True)
        if any(path.iterdir()) and not overwrite:
            raise Conflict(f"The folder {path} is not empty. Choose another, or overwrite what is in it.")
    except OSError as error:
        raise InvalidParams(f"The folder {path} cannot be used: {error.strerror}. Choose another.") from error
