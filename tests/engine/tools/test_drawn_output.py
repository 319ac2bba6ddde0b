"""What a terminal would show of output, and limits that apply to that alone."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errand.engine.tools.drawn_output import DrawnOutput, drawn
from errand.engine.tools.mcp.server_log import ServerLog
from errand.engine.tools.output_capture import LIMIT, OutputCapture
from errand.engine.tools.python.session import PythonSession
from errand.text.redaction import Redactor
from tests.support.loop_parts import detail, make_tool_context, run, text_of, tool_of

# Each draws 9,000 states around an error, with what stays of it.
_BARS = {
    r"for i in $(seq 1 9000); do printf 'objects: %d/9000 \r' $i; done; echo": "objects: 9000/9000 ",
    r"for i in $(seq 1 9000); do printf '\033[2K\033[1Gp %d/9000' $i; done; echo": "p 9000/9000",
    r"for i in $(seq 1 9000); do printf '\r\033[Kp %d/9000' $i; done; echo": "p 9000/9000",
    r"for i in $(seq 1 9000); do printf '\033[31m%d\033[0m\033[G' $i; done; echo": "9000",
    r"printf '0000'; for i in $(seq 1000 9999); do printf '\b\b\b\b%d' $i; done; echo": "9999",
    r"echo; for i in $(seq 1 9000); do printf '\033[1A\033[2Klayer %d\n' $i; done": "layer 9000",
}


@pytest.mark.parametrize("bar", _BARS)
async def test_an_error_between_progress_is_seen_whole(tmp_path: Path, bar: str) -> None:
    command = f"echo FIRST; {bar}; echo 'error: THE CAUSE'; {bar}; echo END"
    result = await run(tool_of(make_tool_context(tmp_path), "shell"), {"command": command})
    assert text_of(result) == f"FIRST\n{_BARS[bar]}\nerror: THE CAUSE\n{_BARS[bar]}\nEND"
    assert detail(result, "stdout_file") is None


async def test_a_command_in_the_background_is_measured_as_it_is_shown(tmp_path: Path) -> None:
    context = make_tool_context(tmp_path)
    tool = tool_of(context, "shell")
    bar = next(iter(_BARS))
    command = f"echo FIRST; {bar}; echo 'error: THE CAUSE'; {bar}; echo END"
    text = text_of(await run(tool, {"command": command, "background": True}))
    while "[background 1 `" not in text and "exit 0" not in text:
        text += text_of(await run(tool, {"action": "output", "id": "1", "wait_secs": 60}))
    assert "error: THE CAUSE" in text and "left out" not in text and len(text) < LIMIT
    await context.sessions.all.close()


async def test_python_that_prints_progress_is_measured_as_it_is_shown(tmp_path: Path) -> None:
    context = make_tool_context(tmp_path)
    bar = "for i in range(9000): print(f'objects: {i}/9000', end='\\r')"
    code = f"{bar}\nprint()\nprint('error: THE CAUSE')\n{bar}\nprint('END')"
    result = await run(tool_of(context, "python"), {"code": code})
    assert text_of(result).endswith("]\nobjects: 8999/9000\nerror: THE CAUSE\nEND")
    await context.sessions.close(PythonSession)


def test_long_output_is_cut_by_what_is_shown_and_its_file_has_the_bytes(tmp_path: Path) -> None:
    capture = OutputCapture(tmp_path / "out", Redactor())
    data = b"".join(b"step %d\rline %d\n" % (number, number) for number in range(10_000))
    for at in range(0, len(data), 999):
        capture.add(data[at : at + 999])
    capture.close()
    assert capture.text().startswith("line 0\nline 1\n") and capture.text().endswith("line 9999\n")
    assert "bytes left out" in capture.text() and "step" not in capture.text()
    assert (tmp_path / "out").read_bytes() == data


def test_output_so_far_has_the_line_that_is_being_drawn(tmp_path: Path) -> None:
    capture = OutputCapture(tmp_path / "out", Redactor())
    for number in range(5_000):
        capture.add(b"\rstep %d of 5000" % number)
    assert (capture.text(), capture.tail(1_000)) == ("step 4999 of 5000", "step 4999 of 5000")


def test_the_log_of_a_server_has_the_last_state_of_its_progress() -> None:
    log = ServerLog(Redactor())
    for number in range(2_000):
        log.write(b"\rdownloading %d" % number)
    log.note("It has ended.")
    log.write(b"error: no\n")
    first, second, third = log.text().splitlines()
    assert (first, third) == ("downloading 1999", "error: no") and second.endswith("It has ended.")


_PIECES = st.sampled_from(
    [b"a", b"bc\n", b"\r", b"\r\n", b"\x1b[2K", b"\x1b[1A", b"\x1b[", b"\x1b", b"\b", b"\xc3\xa9"]
)


@given(st.lists(_PIECES, max_size=60).map(b"".join), st.integers(1, 7))
def test_the_pieces_in_which_output_comes_change_nothing(data: bytes, size: int) -> None:
    output = DrawnOutput()
    parts = [output.feed(data[at : at + size]) for at in range(0, len(data), size)]
    assert b"".join((*parts, output.finish())) == drawn(data)


@given(st.lists(st.sampled_from([b"a\n", b"b" * 90_000, b"\r", b"\x1b[9A"]), max_size=40))
def test_memory_is_bounded(pieces: list[bytes]) -> None:
    output = DrawnOutput()
    for piece in pieces:
        output.feed(piece)
        assert len(output.pending) < 200_000
