"""Attached files: models get pictures and the names of other files; invalid ones are refused."""

import asyncio
import base64
import os
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.errors import InvalidParams
from errand.protocol.base import JsonValue
from errand.protocol.blocks import FileBlock, ImageBlock, TextBlock
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_server import Call, ModelServer, Reply

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def picture(folder: Path, name: str = "shot.dat", size: int = 0) -> str:
    """A PNG, whatever its name; padded to a size with bytes at its end."""
    path = folder / name
    path.write_bytes(PNG.ljust(size, b"\0"))
    return str(path)


def image_part(data: bytes = PNG) -> JsonValue:
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def hello() -> ModelServer:
    return ModelServer(answer=lambda request: Reply(text="Seen."))


async def test_attached_picture_reaches_the_model_even_if_its_file_is_deleted_afterwards(tmp_path: Path) -> None:
    shot = picture(tmp_path)
    async with engine_parts(tmp_path, hello()) as engine:
        first = await engine.watcher.end((await engine.start("What is this?", attachments=(shot, shot))).id)
        os.unlink(shot)
        await engine.watcher.end((await engine.start("Sure?", conversation_id=first.conversation_id)).id)
        content = [{"type": "text", "text": "What is this?"}, image_part()]
        assert [request.messages[1]["content"] for request in engine.model.requests] == [content, content]
        text, image, _ = engine.watcher.nodes()[0].blocks
        assert text == TextBlock(text="What is this?")
        assert isinstance(image, ImageBlock)
        assert (image.media_type, image.data, image.name) == ("image/png", "", "shot.dat")
        assert Path(image.path).is_relative_to(engine.services.paths.attachments)


async def test_large_picture_is_not_stored_in_the_database(tmp_path: Path) -> None:
    shot = picture(tmp_path, size=5 * 1024 * 1024)
    async with engine_parts(tmp_path, hello()) as engine:
        task = await engine.watcher.end((await engine.start("", attachments=(shot,))).id)
        events = await engine.services.database.events.after(0)
        assert all(len(msgspec.json.encode(event)) < 5_000 for event in events)
        assert len(str(engine.model.requests[0].messages)) > 5 * 1024 * 1024
        conversation = await engine.services.database.conversations.get(task.conversation_id)
        assert conversation is not None and conversation.title == "shot.dat"


async def test_other_attached_files_are_named_to_the_model(tmp_path: Path) -> None:
    report = tmp_path / "report.csv"
    report.write_text("a,b\n")
    async with engine_parts(tmp_path, hello()) as engine:
        await engine.watcher.end((await engine.start("Sum it up.", attachments=(str(report),))).id)
        assert engine.model.requests[0].messages[1]["content"] == f"Sum it up.\n\n[Attached: `{report}`, 4 bytes]"
        assert engine.watcher.nodes()[0].blocks[1] == FileBlock(path=str(report), name="report.csv", size=4)


async def test_attached_file_is_inspected_once_when_it_is_attached(tmp_path: Path) -> None:
    gate, report = asyncio.Event(), tmp_path / "report.csv"
    report.write_text("a,b\n")
    update = Reply(calls=(Call("send_update", {"message": "hi"}),), gate=gate)
    async with engine_parts(tmp_path, ModelServer(replies=[update, Reply(text="Seen.")])) as engine:
        started = await engine.start()
        await engine.model.request(0)
        await engine.say(started.id, "sum it up", attachments=(str(report),))
        report.unlink()
        gate.set()
        await engine.watcher.end(started.id)
        blocks = [block for node in engine.watcher.nodes() for block in node.blocks]
        assert FileBlock(path=str(report), name="report.csv", size=4) in blocks


async def test_message_to_a_running_task_can_have_pictures(tmp_path: Path) -> None:
    gate = asyncio.Event()
    update = Reply(calls=(Call("send_update", {"message": "hi"}),), gate=gate)
    async with engine_parts(tmp_path, ModelServer(replies=[update, Reply(text="Seen.")])) as engine:
        started = await engine.start()
        await engine.model.request(0)
        shot = picture(tmp_path)
        (entry,) = (await engine.say(started.id, "like this", attachments=(shot,))).queue
        os.unlink(shot)
        assert Path(entry.attachments[0]).name == "shot.dat"
        gate.set()
        await engine.watcher.end(started.id)
        content = [{"type": "text", "text": "like this"}, image_part()]
        assert engine.model.requests[1].messages[-1]["content"] == content


async def test_model_is_told_that_a_picture_is_missing(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, hello()) as engine:
        first = await engine.watcher.end((await engine.start("Look", attachments=(picture(tmp_path),))).id)
        (image,) = (block for block in engine.watcher.nodes()[0].blocks if isinstance(block, ImageBlock))
        os.unlink(image.path)
        await engine.watcher.end((await engine.start("Again", conversation_id=first.conversation_id)).id)
        assert engine.model.requests[1].messages[1]["content"] == (
            "Look\n\n[A picture was here, shot.dat; its file is gone.]"
        )


async def test_model_that_accepts_no_pictures_is_reported(tmp_path: Path) -> None:
    refused = Reply(status=400, error="Invalid content type. image_url is only supported by certain models.")
    async with engine_parts(tmp_path, ModelServer(replies=[refused])) as engine:
        task = await engine.watcher.end((await engine.start("Look", attachments=(picture(tmp_path),))).id)
        assert (
            task.outcome.error is not None
            and "does not take pictures" in task.outcome.error
            and "edit the message" in task.outcome.error
        )


async def test_invalid_attachment_is_refused_with_a_reason_and_nothing_is_stored(tmp_path: Path) -> None:
    many = tuple(picture(tmp_path, f"{number}.png") for number in range(21))
    wrong: list[tuple[tuple[str, ...], str]] = [
        (("shot.png",), "absolute path"),
        ((str(tmp_path / "none.png"),), "not there any more"),
        ((str(tmp_path),), "is a folder"),
        (("/dev/null",), "not a file"),
        (("/tmp/a\0b",), "no name of a file"),
        (("/tmp/" + "a" * 300,), "File name too long"),
        (many, "at most 20"),
        ((picture(tmp_path, "huge.png", 10 * 1024 * 1024 + 1),), "10.0 MB; at most 10 MB"),
    ]
    async with engine_parts(tmp_path, hello()) as engine:
        for attachments, reason in wrong:
            with pytest.raises(InvalidParams, match=reason):
                await engine.start("Look", attachments=attachments)
        assert await _stored(engine) == 0
        assert list(engine.services.paths.attachments.iterdir()) == []


async def _stored(engine: EngineParts) -> int:
    return len((await engine.services.database.tasks.page()).tasks)
