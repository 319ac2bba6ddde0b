"""Texts shared by all clients: tool calls, ends of tasks, limits, context, imports, usage."""

import re
from datetime import UTC, datetime, timedelta

from errand.client.number_format import count
from errand.client.safe_text import escape_hidden, escape_hidden_line
from errand.protocol.asks import Approval, Ask, ReachedLimit, UnknownCall
from errand.protocol.base import JsonObject
from errand.protocol.blocks import MemoryRole, SummaryBlock, TextBlock, ToolCallBlock
from errand.protocol.changes import ChangedFile
from errand.protocol.context import ContextPart, PromptPartName
from errand.protocol.conversations import Node
from errand.protocol.data import DataImportResult, FoundSessions
from errand.protocol.engine import SandboxStatus
from errand.protocol.tasks import ApproveMode, LimitKind, Task, TodoItem, TodoStatus
from errand.protocol.usage import UsageReportParams, UsageRow
from errand.translation import tr, trn

# The name of a part, and the noun for its items; empty if there is only one.
PARTS: dict[ContextPart, tuple[str, str]] = {
    "system": ("Instructions", ""),
    "tools": ("Tools", "tool"),
    "summary": ("Summary", ""),
    "kept": ("Kept messages", "message"),
    "history": ("Messages", "message"),
    "results": ("Results of tools", "result"),
    "memory": ("Memory", "text"),
}

PROMPT_PARTS: dict[PromptPartName, str] = {
    "role": "Personality",
    "rules": "How agents work",
    "instructions": "AGENTS.md",
    "skills": "Skills",
    "facts": "Pinned facts",
    "workspace": "Workspace",
    "plan": "Plan mode",
}

# Name and meaning of the approval modes, in the order in which clients show them.
APPROVAL_MODES: dict[ApproveMode, tuple[str, str]] = {
    "ask": ("Ask me", "You are asked before anything that does more than look."),
    "edits": ("Accept edits", "Files in the workspace change unasked, commands still ask."),
    "plan": ("Plan", "Only reading: it says what it would do, and changes nothing."),
    "all": ("Allow all", "Nothing is asked. Commands run in a sandbox that can change only the workspace."),
    "never": ("Deny", "What would need your approval is denied unasked."),
}
_WITHOUT_SANDBOX = (
    "Allow all — without a sandbox",
    "Nothing is asked. Commands run as you, with all your files and the network.",
)

# What a person confirms before everything is allowed, without and with a sandbox.
ALL_WARNINGS = {
    False: "Nothing will be asked in this conversation: commands run as you, may change or delete your files and reach "
    "the network.",
    True: "Nothing will be asked in this conversation. Commands run in a sandbox: they can change only the workspace.",
}

TODO_STATES: dict[TodoStatus, str] = {"pending": "To do", "in_progress": "In progress", "done": "Done"}

# What an agent does while a call of the tool runs; others are named.
_TOOL_ACTIVITIES = {
    "shell": "running a command",
    "code": "working with files",
    "web_fetch": "fetching a page",
    "python": "running Python",
    "python_inference": "asking a model",
    "search_memory": "searching memory",
    "propose_memory": "proposing a fact",
    "browser": "using the browser",
    "task": "waiting for sub-agents",
}

_MOST = 1e12
_NUMBER = re.compile(r"(\d+|\d{1,3}(,\d{3})+)(\.\d*)?|\.\d+", re.ASCII)
_MONEY: tuple[LimitKind, ...] = ("money", "day_money")


def approve_mode(word: str) -> ApproveMode | None:
    """The approval mode with that word; None if there is none."""
    return next((mode for mode in APPROVAL_MODES if mode == word), None)


def is_bounded(sandbox: SandboxStatus) -> bool:
    """True if commands run in a sandbox."""
    return sandbox.form != "none" and sandbox.mode != "off"


def approval_mode_text(mode: ApproveMode, *, has_sandbox: bool) -> tuple[str, str]:
    """Name and meaning of an approval mode. `has_sandbox`: commands run in a sandbox on this machine."""
    return _WITHOUT_SANDBOX if mode == "all" and not has_sandbox else APPROVAL_MODES[mode]


def settled_text(ask: Ask) -> str:
    """What settled an ask instead of an answer, in words; empty if a person answered it, or a rule that they made."""
    reason = escape_hidden_line(ask.answer or "")
    match ask.settled_by:
        case "person" | "rule":
            return ""
        case "mode":
            return "allowed by the new approval mode" if ask.allowed else f"denied by the new approval mode: {reason}"
        case "timeout":
            what = {
                "question": "not answered",
                "limit": "stopped here",
                "approval": "denied",
                "unknown": "not repeated",
            }
            return f"{what[ask.kind]}: {'nobody answered in time' if ask.kind == 'unknown' else reason}"


def deadline_text(ask: Ask) -> str:
    """When an open ask is settled without an answer; empty if it has no time limit."""
    if ask.expires_at is None or ask.status != "waiting":
        return ""
    at = ask.expires_at.astimezone()
    is_today = at.date() == datetime.now(UTC).astimezone().date()
    when = f"{at:%H:%M}" if is_today else f"{at:%H:%M} on {at.day} {at:%b}"
    ends = {"question": "stays unanswered", "limit": "stops", "approval": "is denied", "unknown": "is not repeated"}
    return f"If nobody answers, it {ends[ask.kind]} at {when}."


def subject_text(ask: Approval | UnknownCall) -> str:
    """The subject of an approval: the exact command, or a description of a call that runs none."""
    return escape_hidden(ask.text if ask.command is None else ask.command)


def tool_activity(tool: str | None) -> str:
    """What an agent does that waits for this tool: `running a command`."""
    return _TOOL_ACTIVITIES.get(tool, f"using {escape_hidden_line(tool)}") if tool else "using a tool"


def text_of(arguments: JsonObject, key: str) -> str:
    """A text argument; empty if it is missing or has another type."""
    value = arguments.get(key)
    return value if isinstance(value, str) else ""


def content_of(call: ToolCallBlock) -> str:
    """The text of a message or question, or the code of a call; empty if the tool names none."""
    return text_of(call.arguments, call.display.content)


def without_file_names(diff: str) -> str:
    """Remove the two header lines of a diff. Similar lines further down are changes and stay."""
    lines = diff.split("\n", 2)
    return lines[2] if len(lines) == 3 and lines[0].startswith("--- ") and lines[1].startswith("+++ ") else diff


def speaker_text(role: MemoryRole, speaker: str) -> str:
    """Who said an entry of memory, to the person who reads it."""
    return "You" if role == "user" else " ".join(escape_hidden_line(speaker).split())


def summary_text(summary: SummaryBlock) -> str:
    """The number of summarised entries and the saved tokens, in one line."""
    entries = count(summary.nodes, "earlier entry", "earlier entries")
    saved = f"{_short_count(summary.tokens_before)} → {_short_count(summary.tokens_after)} tokens"
    return f"Summary of {entries} · {saved}" if summary.tokens_before else f"Summary of {entries}"


def _short_count(tokens: int) -> str:
    if tokens < 1_000:
        return f"{tokens}"
    return f"{tokens / 1_000:.1f}k" if tokens < 9_950 else f"{tokens / 1_000:,.0f}k"


def is_unfinished(task: Task) -> bool:
    """True if the task ended without evidence that the work is done."""
    return task.stop_reason == "completed" and task.completion in ("undeclared", "refused", "cut")


def unfinished_text(task: Task) -> str:
    """The reason, for a task that `is_unfinished`."""
    match task.completion:
        case "cut":
            return "ended, its last reply was cut short"
        case "refused":
            return "ended, nothing it wanted to do was allowed"
        case _:
            return "ended without saying that it is done"


def refused_text(task: Task) -> str:
    """The number of refused calls; empty if there are none."""
    return f"{count(task.refused_calls, 'call')} not allowed" if task.refused_calls else ""


def engine_message_text(node: Node) -> str:
    said = " ".join(block.text.strip() for block in node.blocks if isinstance(block, TextBlock))
    return f"Errand told the agent: “{said}”"


def import_text(done: DataImportResult) -> tuple[str, ...]:
    """Sentences about imported, existing and skipped content."""
    source = f" from {done.source}" if done.source not in ("", "Errand") else ""
    grown = f" and more of {done.grown:,} that {'was' if done.grown == 1 else 'were'} here" if done.grown else ""
    parts = [f"{count(done.conversations, 'conversation')}{grown} with {count(done.nodes, 'message')}"]
    parts += [count(number, noun) for number, noun in ((done.calls, "tool call"), (done.pictures, "picture")) if number]
    words = [f"{', '.join(parts)} taken in{source}."]
    if done.present:
        words.append(f"{done.present:,} {'was' if done.present == 1 else 'were'} here already and left as they are.")
    if done.left:
        words.append(f"Left: {', '.join(f'{one.kind} ({one.count:,})' for one in done.left)}.")
    return tuple(words)


def found_counts_text(found: FoundSessions) -> str:
    """`12 new, 3 grown, 40 here already`."""
    counts = ((found.new, "new"), (found.grown, "grown"), (found.present, "here already"))
    return ", ".join(f"{amount:,} {what}" for amount, what in counts if amount)


def limit_unit(kind: LimitKind) -> str:
    return "$" if kind in _MONEY else limit_name(kind)


def limit_amount_text(kind: LimitKind, amount: float) -> str:
    """An amount of a limit: `$2.50`, `50 turns`."""
    if kind in _MONEY:
        return f"${amount:.2f}"
    return f"1 {limit_unit(kind)}".replace("s", "", 1) if amount == 1 else f"{amount:,.0f} {limit_unit(kind)}"


def limit_name(kind: LimitKind) -> str:
    return {"day_money": "money of today", "day_tokens": "tokens of today"}.get(kind, kind)


def new_limit(limit: ReachedLimit, text: str) -> float | None:
    """The typed number if it is a valid new limit: above the used amount, and whole for countable kinds."""
    amount = number_of(text)
    if amount is None or not limit.used < amount < _MOST:
        return None
    return amount if limit.kind in ("minutes", *_MONEY) or amount.is_integer() else None


def limit_after(limit: ReachedLimit, text: str) -> float | None:
    """The new limit that adds the typed number to what was used, if that is valid."""
    more = number_of(text)
    return new_limit(limit, f"{limit.used + more:.12f}") if more is not None and more > 0 else None


def more_text(kind: LimitKind, amount: float) -> str:
    """How much more a limit allows: `50 more turns`, `$2.50 more`."""
    match kind:
        case "money":
            return tr("{money} more").format(money=f"${amount:.2f}")
        case "day_money":
            return tr("{money} more today").format(money=f"${amount:.2f}")
        case "day_tokens":
            return tr("{number} more tokens today").format(number=f"{amount:,.10g}")
        case "turns":
            return trn("{n} more turn", "{n} more turns", int(amount))
        case "minutes":
            return tr("{number} more minutes").format(number=f"{amount:,.10g}")
        case "tokens":
            return tr("{number} more tokens").format(number=f"{amount:,.10g}")


def number_of(text: str) -> float | None:
    """Parse a number that has only one reading.

    Commas separate thousands, a dollar sign may precede it; `2,50` is rejected, since it could be 2.5 or 250.
    """
    typed = text.strip().removeprefix("$").strip()
    return float(typed.replace(",", "")) if _NUMBER.fullmatch(typed) else None


def period_of(days: int | None, now: datetime | None = None) -> UsageReportParams:
    """The last `days` days including today, None for all; days are in this machine's time zone."""
    here = (now or datetime.now(UTC)).astimezone()
    offset = here.utcoffset() or timedelta()
    since = here.date() - timedelta(days=days - 1) if days is not None else None
    return UsageReportParams(since=since, utc_offset_minutes=round(offset.total_seconds() / 60))


def unpriced_text(row: UsageRow) -> str:
    """Empty if all prices are known."""
    if not row.unpriced_turns:
        return ""
    return f"The price is not known for {count(row.unpriced_turns, 'turn')}: the money is that of the others."


def is_all_done(items: tuple[TodoItem, ...]) -> bool:
    return all(item.status == "done" for item in items)


def todo_text(items: tuple[TodoItem, ...]) -> str:
    """How much of a to-do list is done: `3 of 7 done`."""
    done = sum(item.status == "done" for item in items)
    return f"All {done} done" if done == len(items) else f"{done} of {len(items)} done"


def current_item(items: tuple[TodoItem, ...]) -> TodoItem | None:
    """The step in progress, else the next one; None if all are done."""
    found = next((item for item in items if item.status == "in_progress"), None)
    return found or next((item for item in items if item.status == "pending"), None)


CHANGES_NOT_SEEN = tr(
    "Changes that commands make to files they do not name, and changes by Python code, are not listed."
)


REDO_PREVIEW = tr("All changes of this file are undone. This is what a redo brings.")


def file_state_text(file: ChangedFile) -> str:
    """What became of a changed file, and whether a command changed it; empty if a tool simply changed it."""
    by_command = tr("by a command") if file.command_steps else ""
    return " · ".join(part for part in (_file_state(file), by_command) if part)


def _file_state(file: ChangedFile) -> str:
    match file.state:
        case "undone":
            return tr("undone")
        case "changed_since":
            return tr("changed since")
        case "not_kept":
            return tr("cannot be undone")
        case "changed":
            undone = len(file.undone_hunks)
            hunks = trn("{n} change undone", "{n} changes undone", undone) if undone else ""
            steps = tr("partly undone") if file.undone_steps else hunks
            return steps or _whole_file_state(file)


def _whole_file_state(file: ChangedFile) -> str:
    if file.is_folder:
        return tr("new folder") if file.is_new else tr("deleted folder") if file.is_deleted else ""
    if file.renamed_from:
        return tr("renamed from {name}").format(name=escape_hidden_line(file.renamed_from))
    if file.renamed_to:
        return tr("renamed to {name}").format(name=escape_hidden_line(file.renamed_to))
    became = tr("new") if file.is_new else tr("deleted") if file.is_deleted else ""
    return ", ".join(part for part in (became, tr("binary") if file.is_binary else "") if part)
