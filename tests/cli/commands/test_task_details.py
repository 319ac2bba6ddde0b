"""The context of a turn, as lines."""

import msgspec

from errand.cli.commands.task_details import format_context
from errand.cli.terminal.style import PLAIN
from errand.protocol.context import ContextExplainResult, ContextItem, ContextShare, PromptShare


def explained(*items: ContextItem, used: int = 50_000, window: int | None = 200_000) -> ContextExplainResult:
    shares = (
        ContextShare(part="system", tokens=1_000, items=1),
        ContextShare(part="summary", tokens=9_000, items=1),
        ContextShare(part="history", tokens=40_000, items=12),
    )
    return ContextExplainResult(
        task_id="t", turn=3, model="a/b", used_tokens=used, window_tokens=window, shares=shares, largest=items
    )


def test_parts_and_largest_entries_are_aligned_and_fit_the_terminal() -> None:
    items = (
        ContextItem(node_id="n", part="history", tokens=20_000, text="A long message " * 6),
        ContextItem(node_id="m", part="kept", tokens=900, text="Short"),
    )
    lines = format_context(explained(*items), PLAIN, 60)
    assert lines[:4] == [
        "Turn 3: 50,000 tokens of 200,000 of the context window of a/b, 25 %",
        "   1,000  Instructions",
        "   9,000  Summary",
        "  40,000  Messages (12 messages)",
    ]
    assert lines[4:6] == ["", "Largest entries"]
    assert lines[6].startswith("  20,000  Messages: A long message") and len(lines[6]) <= 60
    assert lines[7] == "     900  Kept messages: Short"


def test_instructions_are_followed_by_their_parts() -> None:
    prompt = (
        PromptShare(part="role", tokens=100),
        PromptShare(part="instructions", tokens=900, sources=("/work/one\nname/AGENTS.md",)),
    )
    lines = format_context(msgspec.structs.replace(explained(), prompt=prompt), PLAIN, 80)
    assert lines[1:5] == [
        "   1,000  Instructions",
        "     100  - Personality",
        "     900  - AGENTS.md · /work/one name/AGENTS.md",
        "   9,000  Summary",
    ]


def test_without_a_known_window_or_reply_only_known_values_are_shown() -> None:
    assert format_context(explained(window=None), PLAIN, 80)[0] == "Turn 3: 50,000 tokens"
    assert format_context(explained(used=0), PLAIN, 80) == ["This task has no counted replies yet."]


def test_tools_are_followed_by_those_that_are_found_when_needed() -> None:
    shares = (
        ContextShare(part="tools", tokens=2_000, items=13, findable_items=27, findable_tokens=9_100),
        ContextShare(part="services", tokens=600, items=2),
    )
    lines = format_context(msgspec.structs.replace(explained(), shares=shares), PLAIN, 80)
    assert lines[1:] == [
        "  2,000  Tools (13 tools)",
        "         - 27 more tools, found when needed: 9,100 tokens not sent",
        "    600  Tools of MCP servers (2 tools)",
    ]
