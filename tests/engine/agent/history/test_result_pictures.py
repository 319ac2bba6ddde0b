"""Pictures in tool results: stored as files, bounded, and loaded for the next request."""

import base64
from pathlib import Path

import pytest

from errand.engine.agent.history.attachments import Attachments, ResultPictures, load_images
from errand.engine.agent.history.conversion import blocks_of, result_of
from errand.engine.agent.loop.hooks import FinishedCall, PendingCall
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import (
    AssistantMessage,
    Image,
    Text,
    ToolCall,
    ToolResultMessage,
    UserContent,
    text_of,
)
from errand.engine.tools.results import ToolResult
from errand.protocol.blocks import ToolResultBlock
from tests.engine.agent.history.test_attachments import PNG
from tests.support.loop_parts import make_tool_context, tool_of

DATA = base64.b64encode(PNG).decode()


def different(number: int) -> str:
    return base64.b64encode(PNG + str(number).encode()).decode()


async def stored(folder: Path, *content: UserContent) -> ToolResult:
    call = ToolCall("c1", "shell", {})
    pending = PendingCall(AssistantMessage((call,)), call, tool_of(make_tool_context(folder), "shell"), {})
    feature = ResultPictures(Attachments(folder / "attachments"))
    return await feature.after_tool_call(FinishedCall(pending, ToolResult(content)), CancelSignal())


def message(result: ToolResult) -> ToolResultMessage:
    return ToolResultMessage("c1", "python", result.content)


async def test_picture_is_kept_as_a_file_and_sent_with_the_next_request(tmp_path: Path) -> None:
    result = await stored(tmp_path, Text("Drawn."), Image("image/png", DATA, name="Figure 1: /../sales"))
    (block,) = blocks_of(message(result))
    assert isinstance(block, ToolResultBlock)
    (image,) = block.images
    assert (image.data, image.name) == ("", "Figure 1: /../sales")
    assert Path(image.path).read_bytes() == PNG  # noqa: ASYNC240 - a tiny file
    assert Path(image.path).parent.parent == tmp_path / "attachments"
    assert result_of(block).content == result.content
    (sent,) = await load_images([message(result)])
    assert sent.content == (Text("Drawn."), Image("image/png", DATA, name="Figure 1: /../sales"))


@pytest.mark.parametrize("data", ["!", "", "ab", base64.b64encode(b"<svg/>").decode()])
async def test_what_is_no_picture_becomes_a_text(tmp_path: Path, data: str) -> None:
    result = await stored(tmp_path, Text("Drawn."), Image("image/png", data, name="plot"))
    assert text_of(message(result)) == "Drawn.\n[A picture was here (plot); it could not be read.]"


async def test_picture_beyond_10_mb_becomes_a_text(tmp_path: Path) -> None:
    large = base64.b64encode(PNG.ljust(11 * 1024 * 1024, b"\0")).decode()
    result = await stored(tmp_path, Image("image/png", large))
    assert text_of(message(result)) == "\n[A picture was here; it has more than 10 MB.]"


async def test_a_call_keeps_at_most_20_pictures(tmp_path: Path) -> None:
    result = await stored(tmp_path, *(Image("image/png", different(number)) for number in range(25)))
    assert sum(isinstance(block, Image) for block in result.content) == 20
    assert "5 more pictures" in text_of(message(result))


async def test_only_the_newest_pictures_of_tools_are_sent(tmp_path: Path) -> None:
    results = [message(await stored(tmp_path, Image("image/png", different(number)))) for number in range(25)]
    sent = [any(isinstance(block, Image) for block in result.content) for result in await load_images(results)]
    assert sent == [False] * 10 + [True] * 15
