import os
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.tools.output_capture import FILE_LIMIT, OutputCapture
from errand.engine.tools.results import ToolResult
from errand.text.redaction import Redactor
from tests.support.loop_parts import detail, kept_output, make_tool_context, run, text_of, tool_of


async def test_long_output_is_cut_in_the_middle_and_kept_whole_in_a_file(tmp_path: Path) -> None:
    result = await run(tool_of(make_tool_context(tmp_path), "shell"), {"command": "seq 1 20000"})
    text = text_of(result)
    assert kept_output(result).decode() == "".join(f"{number}\n" for number in range(1, 20001))
    assert text.startswith("1\n2\n") and text.endswith("\n20000")
    assert 25_000 < len(text) < 31_000


async def test_a_hundred_megabytes_neither_stall_the_loop_nor_stay_in_memory(tmp_path: Path) -> None:
    shell = tool_of(make_tool_context(tmp_path), "shell")
    updates: list[ToolResult] = []
    result = await run(shell, {"command": "head -c 100000000 /dev/zero | tr '\\0' x"}, on_update=updates.append)
    assert len(kept_output(result)) == 100_000_000
    assert max(len(text_of(part)) for part in [result, *updates]) < 31_000


def test_output_file_size_is_limited(tmp_path: Path) -> None:
    capture = OutputCapture(tmp_path / "out", Redactor())
    for _ in range(FILE_LIMIT // 50_000_000 + 1):
        capture.add(b"\0" * 50_000_000)
    capture.close()
    assert (tmp_path / "out").stat().st_size == FILE_LIMIT
    assert "only its first 200 MB were kept" in capture.text()


def test_output_is_kept_if_no_file_can_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    capture = OutputCapture(tmp_path / "file" / "out", Redactor())
    capture.add(b"x" * 100_000 + b"\nend")
    capture.close()
    assert capture.text().endswith("end") and "could not be kept whole" in capture.text()


async def test_binary_output_is_kept_byte_for_byte(tmp_path: Path) -> None:
    result = await run(tool_of(make_tool_context(tmp_path), "shell"), {"command": r"printf 'a\xff\x00b\n'"})
    assert kept_output(result) == b"a\xff\x00b\n"
    assert text_of(result).startswith("a\ufffd\ufffdb\n")


async def test_progress_bars_and_colours_are_removed(tmp_path: Path) -> None:
    command = r"printf '10%%\r20%%\r100%%\n\033[31mred\033[0m\r\n\033]0;title\007done'"
    assert text_of(await run(tool_of(make_tool_context(tmp_path), "shell"), {"command": command})) == "100%\nred\ndone"


async def test_updates_come_while_it_runs_and_not_for_each_line(tmp_path: Path) -> None:
    updates: list[ToolResult] = []
    command = "for i in $(seq 30); do echo line $i; sleep 0.005; done"
    await run(tool_of(make_tool_context(tmp_path), "shell"), {"command": command}, on_update=updates.append)
    assert 1 <= len(updates) <= 15
    assert text_of(updates[-1]).startswith("line 1\n")


@pytest.mark.parametrize(
    ("data", "tail"),
    [
        (b"gr\xc3", "gr"),
        (b"red \x1b[3", "red "),
        (b"10%\r20%\r", "20%"),
        (b"a\n" * 6 + "üö".encode() * 4, "a\nüöüöüöüö"),
        ("ü".encode() * 40, "ü" * 9),
        (b"x" * 1_000_000, "x" * 19),
        (b"first\n" + b"x" * 19, "x" * 19),
    ],
)
def test_partial_output_begins_and_ends_at_character_boundaries(tmp_path: Path, data: bytes, tail: str) -> None:
    capture = OutputCapture(tmp_path / "out", Redactor())
    capture.add(data)
    assert capture.tail(19) == tail


@pytest.mark.parametrize("call_id", ["../../etc/passwd", "a/b", "", "x" * 500])
async def test_a_call_id_cannot_lead_the_output_file_elsewhere(tmp_path: Path, call_id: str) -> None:
    context = make_tool_context(tmp_path)
    shell = tool_of(context, "shell")
    result = await shell.execute(call_id, {"command": "seq 1 20000"}, CancelSignal(), lambda result: None)
    file = detail(result, "stdout_file")
    assert isinstance(file, str) and os.path.dirname(file) == str(context.output_dir)


async def test_calls_under_one_id_keep_their_output_in_files_of_their_own(tmp_path: Path) -> None:
    shell = tool_of(make_tool_context(tmp_path), "shell")
    results = [await run(shell, {"command": f"echo {number}; seq 1 20000"}) for number in range(3)]
    files = [Path(str(detail(result, "stdout_file"))) for result in results]
    assert [file.name for file in files] == ["call_1-stdout.txt", "call_1-stdout-2.txt", "call_1-stdout-3.txt"]
    assert [file.read_text().splitlines()[0] for file in files] == ["0", "1", "2"]
