"""The terminal: capabilities, output and status line, input. All output passes through here and is sanitized."""

import os
import shutil
import sys
from typing import TYPE_CHECKING, TextIO, cast

from errand.cli.terminal.style import style_for
from errand.cli.terminal.text import cut, wrapped
from errand.text.printable import printable
from errand.text.translation import tr

if TYPE_CHECKING:
    from errand.cli.terminal.prompt import OutputAbovePrompt

_CLEAR_LINE = "\r\x1b[2K"


class OutputClosed(Exception):
    """Nothing more can be written. The text is the reason; empty, and no error, if the reader closed the pipe."""


class Terminal:
    """Standard input and output. `interactive` means that a person reads and types."""

    def __init__(self, source: TextIO, out: TextIO, errors: TextIO) -> None:
        self._source = source
        self._out = out
        self._errors = errors
        self._status = ""
        self._line_is_open = False
        self._line_is_broken = False
        self._above: OutputAbovePrompt | None = None
        self.style = style_for(os.environ, out.isatty(), out.encoding or "ascii")
        self.is_screen = out.isatty()
        self.interactive = source.isatty() and self.is_screen
        self._rewrites = out.isatty() and os.environ.get("TERM") != "dumb"
        for stream in (out, errors):
            _replace_unknown_characters(stream)
        if out.isatty() and sys.platform == "win32":
            _enable_escape_sequences()

    def on_standard_error(self) -> "Terminal":
        """Return a terminal with all output on standard error: standard output is only for the result of a command."""
        terminal = Terminal(self._source, self._errors, self._errors)
        terminal.interactive = self.interactive
        return terminal

    @property
    def width(self) -> int:
        """Columns; 80 if unknown."""
        return max(20, shutil.get_terminal_size().columns)

    @property
    def shows_status(self) -> bool:
        """True if a status line can be shown."""
        return self._rewrites

    def write(self, text: str) -> None:
        """Write text above the status line."""
        if self._line_is_broken:  # by a remark: what goes on begins a line, and an end has nothing to end
            text = text.removeprefix("\n") if text.startswith("\n") else text.removeprefix(" ")
            self._line_is_broken = not text
        if not text:
            return
        self._put(self.style.printable(text), clears=bool(self._status))
        self._status = ""
        self._line_is_open = not text.endswith("\n")

    def write_raw(self, text: str) -> None:
        """Write text unchanged to a pipe or a file; to a terminal as `write` does."""
        if self._out.isatty():
            self.write(text)
        else:
            self._put(text)

    def line(self, text: str = "") -> None:
        self.write(text + "\n")

    def note(self, text: str) -> None:
        """Print a remark for the person on standard error; it is not part of the output, and has a line of its own."""
        self.clear_status()
        if self._above is not None:
            self.line(wrapped(text, self.width))
            return
        if self._line_is_open and self._out.isatty() and self._errors.isatty():
            self._put("\n")
            self._line_is_open, self._line_is_broken = False, True
        note = wrapped(text, self.width) if self._errors.isatty() else text
        _write(self._errors, self.style.printable(note) + "\n")

    def status(self, text: str) -> None:
        """Rewrite the status line; does nothing if lines cannot be rewritten or one is open."""
        if not self._rewrites or self._line_is_open or self._above is not None or text == self._status:
            return
        line = self.style.dim(cut(printable(text), self.width - 1)) if text else ""
        self._put(self.style.printable(line), clears=True)
        self._status = text

    def clear_status(self) -> None:
        if self._status:
            self._put("", clears=True)
            self._status = ""

    async def ask(self, prompt: str, default: str = "", *, hidden: bool = False, discards_typed: bool = False) -> str:
        """Read a line at the prompt while other output continues above it; `hidden` shows nothing of what is typed.

        `default` stands there already, to be changed. `discards_typed` forgets what was typed before the prompt: it
        cannot be meant for a question that nobody had seen.

        Raises KeyboardInterrupt for Ctrl+C and EOFError for Ctrl+D.
        """
        from prompt_toolkit import PromptSession  # 90 ms, only on use
        from prompt_toolkit.formatted_text import ANSI
        from prompt_toolkit.layout.processors import PasswordProcessor

        from errand.cli.terminal.prompt import OutputAbovePrompt

        self.clear_status()
        if discards_typed and self.interactive:
            _discard_typed(self._source)
        session: PromptSession[str] = PromptSession(input_processors=[PasswordProcessor(char="")] if hidden else None)
        self._above = OutputAbovePrompt(session.app)
        try:
            message = ANSI(self.style.printable(prompt))
            return await session.prompt_async(message, default=default, handle_sigint=False)
        finally:
            self._above = None

    def _put(self, text: str, *, clears: bool = False) -> None:
        if clears:
            text = _CLEAR_LINE + text
        if self._above is not None:
            self._above.write(text)
            return
        _write(self._out, text)


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError as error:
        raise OutputClosed from error
    except OSError as error:
        raise OutputClosed(
            tr("the output cannot be written: {strerror}; a running task continues").format(strerror=error.strerror)
        ) from error


def _discard_typed(source: TextIO) -> None:
    if sys.platform != "win32":
        import termios

        termios.tcflush(source, termios.TCIFLUSH)


def standard_terminal() -> Terminal:
    """Return a terminal of the process's streams; one closed by the parent process is empty and discards output."""
    sys.stdin = _open_or_nothing(sys.stdin, "r")
    sys.stdout = _open_or_nothing(sys.stdout, "w")
    sys.stderr = _open_or_nothing(sys.stderr, "w")
    return Terminal(sys.stdin, sys.stdout, sys.stderr)


def _open_or_nothing(stream: TextIO | None, mode: str) -> TextIO:
    return stream or cast(TextIO, open(os.devnull, mode, encoding="utf-8"))


def close_output() -> None:
    """After `OutputClosed`: redirect output to the null device, so that the interpreter's last flush succeeds."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nothing, stream.fileno())
    os.close(nothing)


def _replace_unknown_characters(stream: TextIO) -> None:
    """Write `?` for a character that the encoding of the terminal does not have, instead of raising an exception."""
    import io

    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")


def _enable_escape_sequences() -> None:
    """Enable escape sequences in a Windows console (ENABLE_VIRTUAL_TERMINAL_PROCESSING)."""
    if sys.platform == "win32":
        import ctypes

        kernel = ctypes.windll.kernel32
        kernel.SetConsoleMode(kernel.GetStdHandle(-11), 7)
