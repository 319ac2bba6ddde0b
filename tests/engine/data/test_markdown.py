"""A conversation as Markdown: authors, collapsed tool calls, arbitrary texts."""

from datetime import UTC, datetime

import msgspec

from errand.engine.data.page_export import file_name, page
from errand.protocol.blocks import NoticeBlock, TextBlock, ToolCallBlock, ToolResultBlock
from tests.support.records import conversation, node


def test_page_names_speakers_folds_tools_and_keeps_code_fences() -> None:
    asked = msgspec.structs.replace(node("n1", text="Count <them>."), role="user")
    call = ToolCallBlock(call_id="1", tool="shell", arguments={"command": "ls"})
    worked = msgspec.structs.replace(node("n2", "n1"), model="m", blocks=(TextBlock(text="I look."), call))
    tool_result = ToolResultBlock(call_id="1", tool="shell", text="```\nten", is_error=False, summary="<10 files>")
    result = msgspec.structs.replace(node("n3", "n2"), role="tool_result", blocks=(tool_result,))
    stopped = msgspec.structs.replace(
        node("n4", "n3"), role="system", blocks=(NoticeBlock(kind="stopped", text="Stopped\nhere"),)
    )
    text = "".join(page(conversation(), (asked, worked, result, stopped), {"a1": "Ada"}, others=2))
    assert "## You\n\nCount <them>.\n\n## Ada (m)\n\nI look.\n\n<details><summary>Called shell</summary>" in text
    assert "<summary>Result of shell: &lt;10 files&gt;</summary>\n\n````\n```\nten\n````\n\n</details>" in text
    assert text.endswith("> Stopped here\n\n")
    assert "2 messages on other branches" in text


def test_file_names_are_safe_and_unique() -> None:
    odd = msgspec.structs.replace(
        conversation("conv_0123456789"), title="../a/b: «ü»?", created_at=datetime(2026, 5, 6, 12, tzinfo=UTC)
    )
    assert file_name(odd, "md") == "2026-05-06-a-b-ü-23456789.md"
    blank = msgspec.structs.replace(odd, title="???")
    assert file_name(blank, "md") == "2026-05-06-conversation-23456789.md"
    long = msgspec.structs.replace(odd, title="\U00020000" * 80)  # each letter has four bytes
    assert len(file_name(long, "html").encode()) <= 255
