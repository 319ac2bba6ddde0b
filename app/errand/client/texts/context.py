"""The parts of a turn's context and of a system prompt, and what a summary saved."""

from errand.protocol.blocks import SummaryBlock
from errand.protocol.context import ContextPart, ContextShare, PromptPartName
from errand.text.translation import decimal, tr, trn

CONTEXT_PARTS: dict[ContextPart, str] = {
    "system": tr("Instructions"),
    "tools": tr("Tools"),
    "services": tr("Tools of MCP servers"),
    "summary": tr("Summary"),
    "kept": tr("Kept messages"),
    "environment": tr("Working folder"),
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


def part_items_text(part: ContextPart, items: int) -> str:
    """Return the number of items of a part; empty if there is only one."""
    match part:
        case "tools" | "services":
            return trn("{n} tool", "{n} tools", items)
        case "kept" | "history":
            return trn("{n} message", "{n} messages", items)
        case "results":
            return trn("{n} result", "{n} results", items)
        case "memory":
            return trn("{n} text", "{n} texts", items)
        case "system" | "summary" | "environment":
            return ""


def findable_text(share: ContextShare) -> str:
    """Return how many tools were left out because the model finds them when it needs them; empty for none."""
    if not share.findable_items:
        return ""
    tools = trn("{n} more tool", "{n} more tools", share.findable_items)
    tokens = trn("{n} token", "{n} tokens", share.findable_tokens)
    return tr("{tools}, found when needed: {tokens} not sent").format(tools=tools, tokens=tokens)


def summary_text(summary: SummaryBlock) -> str:
    """Return the number of summarised entries and the saved tokens, in one line."""
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
