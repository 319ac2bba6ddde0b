"""Texts shared by all clients: tool calls, ends of tasks, limits, context, imports, usage."""

import re
from datetime import UTC, datetime, timedelta

from errand.client.number_format import clock_time, dollars, short_day
from errand.client.safe_text import escape_hidden, escape_hidden_line
from errand.protocol.agents import ThinkingLevel
from errand.protocol.asks import Approval, Ask, AskKind, ReachedLimit, UnknownCall
from errand.protocol.base import JsonObject
from errand.protocol.blocks import MemoryRole, SummaryBlock, TextBlock, ToolCallBlock
from errand.protocol.changes import ChangedFile
from errand.protocol.context import ContextPart, PromptPartName
from errand.protocol.conversations import Node
from errand.protocol.data import DataImportResult, FoundSessions
from errand.protocol.engine import SandboxStatus
from errand.protocol.tasks import ApproveMode, LimitKind, Task, TodoItem, TodoStatus
from errand.protocol.usage import UsageReportParams, UsageRow
from errand.translation import chosen, decimal, grouped, tr, trn

PARTS: dict[ContextPart, str] = {
    "system": tr("Instructions"),
    "tools": tr("Tools"),
    "summary": tr("Summary"),
    "kept": tr("Kept messages"),
    "history": tr("Messages"),
    "results": tr("Tool results"),
    "memory": tr("Memory"),
}

PROMPT_PARTS: dict[PromptPartName, str] = {
    "role": tr("Personality"),
    "rules": tr("How agents work"),
    "instructions": "AGENTS.md",
    "skills": tr("Skills"),
    "facts": tr("Pinned facts"),
    "workspace": tr("Working folder"),
    "plan": tr("Plan mode"),
}

THINKING_LEVELS: dict[ThinkingLevel, str] = {
    "off": tr("Off"),
    "minimal": tr("Minimal"),
    "low": tr("Low"),
    "medium": tr("Medium"),
    "high": tr("High"),
    "xhigh": tr("Highest"),
}

# Name and meaning of the approval modes, in the order in which clients show them.
APPROVAL_MODES: dict[ApproveMode, tuple[str, str]] = {
    "ask": (tr("Ask first"), tr("Asks before every action that changes something.")),
    "edits": (
        tr("Accept edits"),
        tr("Edits files in the working folder without asking. Asks before running commands."),
    ),
    "plan": (tr("Plan"), tr("Read-only: the agent makes a plan and changes nothing.")),
    "all": (
        tr("Allow everything"),
        tr("Never asks. Commands run in a sandbox that can only change the working folder."),
    ),
    "never": (tr("Deny everything"), tr("Denies everything that would need your approval.")),
}
_WITHOUT_SANDBOX = (
    tr("Allow everything, no sandbox"),
    tr("Never asks. Commands have full access to your files and the network."),
)

# What a person confirms before everything is allowed, without and with a sandbox.
ALL_WARNINGS = {
    False: tr(
        "The agent won't ask again in this conversation. Commands run without a sandbox: they can change "
        "or delete any of your files and use the network."
    ),
    True: tr(
        "The agent won't ask again in this conversation. Commands run in a sandbox and can only change "
        "the working folder."
    ),
}

# How an ask ended that nobody answered in time, and how it would end.
_TIMED_OUT: dict[AskKind, str] = {
    "question": tr("not answered: {reason}"),
    "limit": tr("stopped here: {reason}"),
    "approval": tr("denied: {reason}"),
    "unknown": tr("not repeated: {reason}"),
}
_DEADLINES: dict[AskKind, str] = {
    "question": tr("Continues without an answer at {time}."),
    "limit": tr("Stops at {time} unless you answer."),
    "approval": tr("Denied at {time} unless you answer."),
    "unknown": tr("Not repeated unless you answer by {time}."),
}

TODO_STATES: dict[TodoStatus, str] = {"pending": tr("To do"), "in_progress": tr("In progress"), "done": tr("Done")}

# What an agent does while a call of the tool runs; others are named.
_TOOL_ACTIVITIES = {
    "shell": tr("running a command"),
    "code": tr("working with files"),
    "web_fetch": tr("fetching a page"),
    "python": tr("running Python"),
    "python_inference": tr("asking a model"),
    "search_memory": tr("searching memory"),
    "propose_memory": tr("proposing a fact"),
    "browser": tr("using the browser"),
    "task": tr("waiting for sub-agents"),
}

_MOST = 1e12
_NUMBER = re.compile(r"(\d+|\d{1,3}(,\d{3})+)(\.\d*)?|\.\d+", re.ASCII)
_LIMIT_NAMES: dict[LimitKind, str] = {
    "turns": tr("turns"),
    "minutes": tr("minutes"),
    "money": tr("money"),
    "tokens": tr("tokens"),
    "day_money": tr("today's budget"),
    "day_tokens": tr("today's tokens"),
}
_MONEY: tuple[LimitKind, ...] = ("money", "day_money")


def part_items_text(part: ContextPart, items: int) -> str:
    """The number of items of a part; empty if there is only one."""
    match part:
        case "tools":
            return trn("{n} tool", "{n} tools", items)
        case "kept" | "history":
            return trn("{n} message", "{n} messages", items)
        case "results":
            return trn("{n} result", "{n} results", items)
        case "memory":
            return trn("{n} text", "{n} texts", items)
        case "system" | "summary":
            return ""


def approve_mode(word: str) -> ApproveMode | None:
    """The approval mode with that word; None if there is none."""
    return next((mode for mode in APPROVAL_MODES if mode == word), None)


def is_bounded(sandbox: SandboxStatus) -> bool:
    """True if commands run in a sandbox."""
    return sandbox.form != "none" and sandbox.mode != "off"


def sandbox_text(sandbox: SandboxStatus) -> str:
    """What bounds commands on this machine. The rarer cases have reasons that only the engine knows."""
    if sandbox.mode == "off":
        return tr("Commands run without a sandbox: the setting command_sandbox is off. They can do what you can do.")
    if sandbox.form != "bubblewrap":
        return sandbox.text
    looks = tr("What provably only looks may run outside.") if sandbox.mode == "auto" else ""
    held = tr(
        "Commands run in a sandbox (bubblewrap): they can change only the workspace, /tmp and caches of their own, see "
        "neither keys nor other processes, and have the network only through Errand, if they have it."
    )
    return f"{held} {looks}".rstrip()


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
            return (
                tr("allowed by the new approval mode")
                if ask.allowed
                else tr("denied by the new approval mode: {reason}").format(reason=reason)
            )
        case "timeout":
            if ask.kind == "unknown":
                reason = tr("nobody answered in time")
            return _TIMED_OUT[ask.kind].format(reason=reason)


def deadline_text(ask: Ask) -> str:
    """When an open ask is settled without an answer; empty if it has no time limit."""
    if ask.expires_at is None or ask.status != "waiting":
        return ""
    at = ask.expires_at.astimezone()
    is_today = at.date() == datetime.now(UTC).astimezone().date()
    when = clock_time(at) if is_today else tr("{time} on {day}").format(time=clock_time(at), day=short_day(at))
    return _DEADLINES[ask.kind].format(time=when)


def subject_text(ask: Approval | UnknownCall) -> str:
    """The subject of an approval: the exact command, or a description of a call that runs none."""
    return escape_hidden(ask.text if ask.command is None else ask.command)


def tool_activity(tool: str | None) -> str:
    """What an agent does that waits for this tool: `running a command`."""
    if not tool:
        return tr("using a tool")
    return _TOOL_ACTIVITIES.get(tool) or tr("using {tool}").format(tool=escape_hidden_line(tool))


def text_of(arguments: JsonObject, key: str) -> str:
    """A text argument; empty if it is missing or has another type."""
    value = arguments.get(key)
    return value if isinstance(value, str) else ""


def content_of(call: ToolCallBlock) -> str:
    """The text of a message or question, or the code of a call; empty if the tool names none."""
    return text_of(call.arguments, call.display.content)


def uncapitalised(text: str) -> str:
    """A label as a part of a longer line; as it is in German, whose nouns keep their capital."""
    return text if chosen() == "de" else f"{text[:1].lower()}{text[1:]}"


def without_file_names(diff: str) -> str:
    """Remove the two header lines of a diff. Similar lines further down are changes and stay."""
    lines = diff.split("\n", 2)
    return lines[2] if len(lines) == 3 and lines[0].startswith("--- ") and lines[1].startswith("+++ ") else diff


def speaker_text(role: MemoryRole, speaker: str) -> str:
    """Who said an entry of memory, to the person who reads it."""
    return tr("You") if role == "user" else " ".join(escape_hidden_line(speaker).split())


def summary_text(summary: SummaryBlock) -> str:
    """The number of summarised entries and the saved tokens, in one line."""
    entries = trn("Summary of {n} earlier entry", "Summary of {n} earlier entries", summary.nodes)
    if not summary.tokens_before:
        return entries
    saved = tr("{before} → {after} tokens").format(
        before=_short_count(summary.tokens_before), after=_short_count(summary.tokens_after)
    )
    return f"{entries} · {saved}"


def _short_count(tokens: int) -> str:
    if tokens < 1_000:
        return f"{tokens}"
    return decimal(f"{tokens / 1_000:.1f}k" if tokens < 9_950 else f"{tokens / 1_000:,.0f}k")


def is_unfinished(task: Task) -> bool:
    """True if the task ended without evidence that the work is done."""
    return task.stop_reason == "completed" and task.completion in ("undeclared", "refused", "cut")


def unfinished_text(task: Task) -> str:
    """The reason, for a task that `is_unfinished`."""
    match task.completion:
        case "cut":
            return tr("Ended: the last reply was cut off")
        case "refused":
            return tr("Ended: nothing it tried was allowed")
        case _:
            return tr("Ended without confirming that it's done")


def refused_text(task: Task) -> str:
    """The number of refused calls; empty if there are none."""
    return trn("{n} call not allowed", "{n} calls not allowed", task.refused_calls) if task.refused_calls else ""


def engine_message_text(node: Node) -> str:
    text = " ".join(block.text.strip() for block in node.blocks if isinstance(block, TextBlock))
    return tr("Errand told the agent: “{text}”").format(text=text)


def import_text(done: DataImportResult) -> tuple[str, ...]:
    """Sentences about imported, existing and skipped content."""
    parts = [
        trn("{n} conversation", "{n} conversations", done.conversations),
        trn("{n} message", "{n} messages", done.nodes),
        trn("{n} tool call", "{n} tool calls", done.calls) if done.calls else "",
        trn("{n} picture", "{n} pictures", done.pictures) if done.pictures else "",
    ]
    what = ", ".join(part for part in parts if part)
    if done.source in ("", "Errand"):
        words = [tr("Imported: {what}.").format(what=what)]
    else:
        words = [tr("Imported from {source}: {what}.").format(source=done.source, what=what)]
    if done.grown:
        words.append(
            trn("{n} conversation here got new messages.", "{n} conversations here got new messages.", done.grown)
        )
    if done.present:
        words.append(
            trn(
                "{n} was here already and was not changed.", "{n} were here already and were not changed.", done.present
            )
        )
    if done.left:
        left = ", ".join(f"{one.kind} ({grouped(one.count)})" for one in done.left)
        words.append(tr("Skipped: {what}.").format(what=left))
    return tuple(words)


def found_counts_text(found: FoundSessions) -> str:
    """`12 new, 3 with new messages, 40 here already`."""
    counts = (
        trn("{n} new", "{n} new", found.new) if found.new else "",
        trn("{n} with new messages", "{n} with new messages", found.grown) if found.grown else "",
        trn("{n} here already", "{n} here already", found.present) if found.present else "",
    )
    return ", ".join(words for words in counts if words)


def limit_unit(kind: LimitKind) -> str:
    return "$" if kind in _MONEY else limit_name(kind)


def limit_amount_text(kind: LimitKind, amount: float) -> str:
    """An amount of a limit: `$2.50`, `50 turns`."""
    if kind in _MONEY:
        return dollars(amount)
    number = round(amount)
    match kind:
        case "turns":
            return trn("{n} turn", "{n} turns", number)
        case "minutes":
            return trn("{n} minute", "{n} minutes", number)
        case "tokens":
            return trn("{n} token", "{n} tokens", number)
        case _:
            return trn("{n} token today", "{n} tokens today", number)


def limit_name(kind: LimitKind) -> str:
    return _LIMIT_NAMES[kind]


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
            return tr("{money} more").format(money=dollars(amount))
        case "day_money":
            return tr("{money} more today").format(money=dollars(amount))
        case "day_tokens":
            return tr("{number} more tokens today").format(number=decimal(f"{amount:,.10g}"))
        case "turns":
            return trn("{n} more turn", "{n} more turns", int(amount))
        case "minutes":
            return tr("{number} more minutes").format(number=decimal(f"{amount:,.10g}"))
        case "tokens":
            return tr("{number} more tokens").format(number=decimal(f"{amount:,.10g}"))


def number_of(text: str) -> float | None:
    """Parse a number that has only one reading.

    Commas separate thousands, a dollar sign may precede or follow it; `2,50` is rejected, since it could be 2.5 or
    250. In languages with the other marks it is the other way round.
    """
    typed = text.strip().removeprefix("$").removesuffix("$").strip()
    readings = (decimal(typed), typed)
    found = next((reading for reading in readings if _NUMBER.fullmatch(reading)), None)
    return float(found.replace(",", "")) if found is not None else None


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
    return trn(
        "The price of {n} turn is unknown and not included.",
        "The prices of {n} turns are unknown and not included.",
        row.unpriced_turns,
    )


def is_all_done(items: tuple[TodoItem, ...]) -> bool:
    return all(item.status == "done" for item in items)


def todo_text(items: tuple[TodoItem, ...]) -> str:
    """How much of a to-do list is done: `3 of 7 done`."""
    done = sum(item.status == "done" for item in items)
    if done == len(items):
        return trn("{n} done", "All {n} done", done)
    return tr("{done} of {total} done").format(done=done, total=len(items))


def current_item(items: tuple[TodoItem, ...]) -> TodoItem | None:
    """The step in progress, else the next one; None if all are done."""
    found = next((item for item in items if item.status == "in_progress"), None)
    return found or next((item for item in items if item.status == "pending"), None)


CHANGES_NOT_SEEN = tr(
    "Changes that commands make to files they do not name, and changes by Python code, are not listed."
)


REDO_PREVIEW = tr("All changes to this file are undone. Redo brings them back as shown.")


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
