"""Files of other programs that are large, damaged, packed or hostile."""

import base64
import zipfile
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.errors import InvalidParams
from errand.engine.data.importers.import_context import ImportContext
from errand.engine.data.importers.json_documents import documents
from errand.engine.data.importers.registry import FORMATS
from errand.protocol.blocks import ImageBlock, NoticeBlock, TextBlock
from tests.engine.data.importers.test_formats import CASES, FILES, every_node
from tests.engine.data.test_round_trip import PICTURE, home


def packed(path: Path, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


async def test_zip_is_imported_with_its_pictures(tmp_path: Path) -> None:
    chats = (FILES / "chatgpt.json").read_bytes()
    names = {"chats/conversations.json": chats, "file-Picture1-red.png": PICTURE, "user.json": b"{}", "chat.html": b""}
    path = packed(tmp_path / "export.zip", **names)
    async with home(tmp_path / "home") as data_home:
        done = await data_home.take(path)
        assert (done.source, done.conversations, done.pictures) == ("ChatGPT", 2, 1)
        assert {left.kind: left.count for left in done.left}["other files"] == 3
        (pixels,) = [
            c for c in (await data_home.database.conversations.page()).conversations if c.title == "Red pixels"
        ]
        (asked, *_) = await every_node(data_home, pixels.id)
        assert isinstance(asked.blocks[0], ImageBlock)
        assert [file.read_bytes() for file in data_home.paths.attachments.glob("*/*")] == [PICTURE]
        assert str(data_home.paths.attachments) in asked.blocks[0].path
        files = {
            file.name for file in data_home.paths.home.iterdir() if file.is_file() and "errand.db" not in file.name
        }
        assert files <= {"settings.json"}


async def test_empty_encrypted_or_invalid_zips_are_refused_with_a_reason(tmp_path: Path) -> None:
    broken = packed(tmp_path / "broken.zip", **{"conversations.json": (FILES / "claude.json").read_bytes()})
    data = bytearray(broken.read_bytes())
    data[60:90] = bytes(30)
    broken.write_bytes(data)
    async with home(tmp_path / "home") as data_home:
        with pytest.raises(InvalidParams, match="neither is any file in the zip"):
            await data_home.take(packed(tmp_path / "none.zip", **{"a.txt": b"x", "../../b.json": b"{}"}))
        with pytest.raises(InvalidParams, match="cannot be unpacked"):
            await data_home.take(broken)
        assert not (tmp_path / "b.json").exists()


async def test_truncated_file_reports_what_was_imported_before(tmp_path: Path) -> None:
    content = (FILES / "chatgpt.json").read_bytes()
    cut = tmp_path / "conversations.json"
    async with home(tmp_path / "home") as data_home:
        cut.write_bytes(content[: content.index(b'"title": "Nothing in it"')])
        with pytest.raises(InvalidParams, match=r"it ends in the middle\. 2 conversations before that were imported"):
            await data_home.take(cut)
        cut.write_bytes(b"")
        with pytest.raises(InvalidParams, match="it is not a file that Errand exported, nor conversations of Codex"):
            await data_home.take(cut)


async def test_truncated_or_corrupted_files_only_cause_refusals(tmp_path: Path) -> None:
    """Each is either imported or refused with a clear error."""
    odd = tmp_path / "odd.json"
    async with home(tmp_path / "home") as data_home:
        for name, *_ in CASES:
            content = (FILES / name).read_bytes()
            for offset in range(0, len(content), max(1, len(content) // 12)):
                for data in (content[:offset], content[:offset] + b"[" + content[offset + 1 :], content[offset:]):
                    odd.write_bytes(data)
                    try:
                        await data_home.take(odd)
                    except InvalidParams as error:
                        assert str(odd) in str(error)


async def test_links_in_a_folder_are_counted_and_not_followed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "sessions", tmp_path / "outside.jsonl"
    folder.mkdir()
    outside.write_bytes((FILES / "pi.jsonl").read_bytes())
    (folder / "own.jsonl").write_bytes((FILES / "codex.jsonl").read_bytes())
    (folder / "link.jsonl").symlink_to(outside)
    async with home(tmp_path / "home") as data_home:
        done = await data_home.take(folder)
        assert (done.source, done.conversations) == ("Codex", 1)
        assert {left.kind: left.count for left in done.left}["links to files"] == 1


async def test_records_of_wrong_types_are_counted_and_skipped(tmp_path: Path) -> None:
    lines = (FILES / "claude_code.jsonl").read_bytes().splitlines(keepends=True)
    deep = b'{"type":"assistant","uuid":"q","message":{"content":[{"type":"tool_use","input":' + b"[" * 5000 + b"\n"
    odd = [
        deep,
        b'{"type":5}\n',
        b'"x"\n',
        b"[" * 5000 + b"\n",
        b'{"uuid":"q","parentUuid":"q","message":{"content":7}}\n',
    ]
    path = tmp_path / "session.jsonl"
    path.write_bytes(lines[2] + b"".join(odd) + b"".join(lines))
    async with home(tmp_path / "home") as data_home:
        done = await data_home.take(path)
        assert (done.conversations, done.nodes) == (1, 7)
        assert {left.kind: left.count for left in done.left}["records that cannot be read"] == len(odd)


async def test_program_generated_user_messages_are_not_imported_as_user_text(tmp_path: Path) -> None:
    def said(text: str, **more: object) -> bytes:
        message = {"role": "user", "content": text}
        line = {"parentUuid": None, "isSidechain": False, "type": "user", "message": message, "uuid": text, **more}
        return msgspec.json.encode({**line, "sessionId": "s"}) + b"\n"

    def codex(text: str) -> bytes:
        content = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": content}
        return msgspec.json.encode({"type": "response_item", "payload": item}) + b"\n"

    one_file, other = tmp_path / "claude.jsonl", tmp_path / "codex.jsonl"
    lines = [
        said("Mend it" + "!" * 300_000, origin={"kind": "human"}),
        said("This session is being continued", isCompactSummary=True),
        said("<task-notification>done</task-notification>", origin={"kind": "task-notification"}),
    ]
    one_file.write_bytes(b"".join(lines))
    injected = ("<turn_aborted>x</turn_aborted>", "<skill>\nx</skill>", "<subagent_notification>x", "List the files")
    head = b'{"type":"session_meta","payload":{"id":"x","cwd":"/"}}\n'
    other.write_bytes(head + b"".join(map(codex, injected)))
    async with home(tmp_path / "home") as data_home:
        first, second = await data_home.take(one_file), await data_home.take(other)
        assert (first.source, first.nodes, second.source, second.nodes) == ("Claude Code", 1, "Codex", 1)
        assert {left.kind: left.count for left in first.left} == {
            "summaries for the model": 1,
            "messages of the program": 1,
        }
        assert {left.kind: left.count for left in second.left} == {"instructions to the model": 3}


_RAN = "I ran the following shell command:\n```sh\ncat a"
_PRODUCED = "\n```\n\nThis produced the following result:\n```\n"


@pytest.mark.parametrize(
    ("message_text", "texts"),
    [
        (
            f"{_RAN}{_PRODUCED}# a\n```\ncode\n```\n```",
            ["The person ran `cat a`", "Output of the person's command:\n# a\n```\ncode\n```"],
        ),
        (f"{_RAN}{_PRODUCED}```\n", ["The person ran `cat a`"]),
        (f"{_RAN}{_PRODUCED * 2_000}none", [f"{_RAN}{_PRODUCED * 2_000}none"]),
    ],
    ids=["with a block of code", "without output", "that repeats"],
)
async def test_shell_command_in_gemini_cli_is_found_in_time_that_does_not_grow_with_its_blocks(
    tmp_path: Path, message_text: str, texts: list[str]
) -> None:
    path = tmp_path / "session-1.jsonl"
    head = {"sessionId": "one", "projectHash": "none", "startTime": "2026-01-01T00:00:00Z", "kind": "main"}
    lines = (
        head,
        {"id": "1", "type": "user", "content": message_text},
        {"id": "2", "type": "gemini", "content": "I see."},
    )
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    async with home(tmp_path / "home") as data_home:
        await data_home.take(path)
        (conversation,) = (await data_home.database.conversations.page()).conversations
        nodes = await every_node(data_home, conversation.id)
        imported_texts = [
            block.text for node in nodes for block in node.blocks if isinstance(block, TextBlock | NoticeBlock)
        ]
    assert imported_texts == [*texts, "I see."]


async def test_cyclic_messages_and_missing_parents_do_not_hang_the_import(tmp_path: Path) -> None:
    def line(uuid: str, parent: str | None) -> bytes:
        message = {"role": "user", "content": f"I am {uuid}"}
        record = {"type": "user", "sessionId": "s", "uuid": uuid, "parentUuid": parent, "message": message}
        return msgspec.json.encode(record) + b"\n"

    circle, lost = tmp_path / "circle.jsonl", tmp_path / "lost.jsonl"
    circle.write_bytes(line("a", "b") + line("b", "a"))
    lost.write_bytes(line("a", "nowhere") + line("b", "a") + line("b", "a"))
    async with home(tmp_path / "home") as data_home:
        refused = await data_home.take(circle)
        assert (refused.conversations, [left.count for left in refused.left]) == (0, [1])
        assert (await data_home.take(lost)).nodes == 2


def test_a_large_array_is_read_one_element_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    element = msgspec.json.encode({"mapping": {}, "text": 'a \\" [b] {c' * 2000})
    path.write_bytes(b"[" + b",\n".join([element] * 500) + b"]")
    with path.open("rb") as file:
        assert sum(document == element for document in documents(file, "whole")) == 500


def test_every_supported_program_is_documented() -> None:
    text = (Path(__file__).parents[4] / "docs" / "export.md").read_text(encoding="utf-8")
    assert [file_format.program for file_format in FORMATS if file_format.program not in text] == []


def test_picture_with_a_too_long_name_is_kept(tmp_path: Path) -> None:
    context = ImportContext(tmp_path, lambda beginning: None, Counter())
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    (block,) = context.picture(picture, "\U00020000" * 300 + ".png")
    assert block.name.endswith("\U00020000.png") and Path(block.path).read_bytes() == b"\x89PNG\r\n\x1a\n"
