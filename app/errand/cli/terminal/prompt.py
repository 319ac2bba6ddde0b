"""The prompt that stays at the bottom while output appears above it (prompt-toolkit)."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from errand.cli.terminal.style import Style
from errand.cli.terminal.text import cut, visible_columns

SendMode: TypeAlias = Literal["enter", "alt_enter", "interrupt", "end"]


class OutputAbovePrompt:
    """Shows whole lines; text after the last newline waits for its end.

    prompt_toolkit's `patch_stdout` leaves raw mode for each write: keys pressed meanwhile are echoed and lost, and
    Ctrl+C kills the command.
    """

    def __init__(self, application: Application[str]) -> None:
        self._application = application
        self._tail = ""

    def write(self, text: str) -> None:
        whole, newline, self._tail = (self._tail + text).rpartition("\n")
        if not newline:
            return
        if self._application.is_running:
            self._application.renderer.erase()
        self._application.output.write_raw(whole + newline)
        self._application.output.flush()
        self._application.invalidate()


class LivePrompt:
    """Output above, then a status line while a task runs, then the input line.

    Text without a newline appears right above the prompt, so that a streaming reply is readable.
    """

    def __init__(self, style: Style, width: Callable[[], int], history: Path) -> None:
        self.style = style
        self._width = width
        self._tail = ""
        self._status = ""
        self._hint = ""
        self._question = ""
        self._queued = False
        self._session: PromptSession[str] = PromptSession(
            message=self._message,
            history=FileHistory(str(history)),
            key_bindings=self._keys(),
        )
        self._above = OutputAbovePrompt(self._session.app)

    @property
    def width(self) -> int:
        return self._width()

    @contextmanager
    def opened(self) -> Generator[None]:
        """A context in which keys pressed between two lines go to the next line instead of the shell."""
        with self._session.app.input.raw_mode():
            yield

    def write(self, text: str) -> None:
        """Show text; text after the last newline waits above the prompt until its line is full."""
        whole, newline, tail = (self._tail + text).rpartition("\n")
        self._tail = tail
        if visible_columns(tail) > self.width and " " in tail:
            # Emit a full line at a blank, so that a long paragraph does not grow above the prompt.
            head, _, self._tail = tail.rpartition(" ")
            whole, newline = whole + newline + head, "\n"
        self._above.write(self.style.printable(whole + newline))
        self._session.app.invalidate()

    @property
    def shows_status(self) -> bool:
        return True

    def line(self, text: str = "") -> None:
        self.write(text + "\n")

    def note(self, text: str) -> None:
        """On a separate line, also within a streaming reply."""
        self.write("\n" if self._tail else "")
        self.line(self.style.dim(text))

    def status(self, text: str) -> None:
        self._status = text
        self._session.app.invalidate()

    def hint(self, text: str) -> None:
        """The text before the input; may be empty."""
        self._hint = text
        self._session.app.invalidate()

    async def read(self, question: str = "") -> tuple[SendMode, str]:
        """The next line, and how it was sent. A question replaces the hint while it is read."""
        self._queued = False
        self._question = question
        try:
            text = await self._session.prompt_async(handle_sigint=False)
        except KeyboardInterrupt:
            return "interrupt", ""
        except EOFError:
            return "end", ""
        finally:
            self._question = ""
        return ("alt_enter" if self._queued else "enter"), text.strip()

    def _message(self) -> ANSI:
        prompt = f"{self._question or self._hint}{self.style.bold('> ')}"
        if self._session.app.is_done:  # only the line itself stays on the screen
            return ANSI(self.style.printable(prompt))
        tail = f"{self._tail}\n" if self._tail else ""
        # Not prompt_toolkit's toolbar: it stays hidden in terminals that do not report the cursor position.
        status = self.style.dim(cut(self._status, self.width - 1)) + "\n" if self._status else ""
        return ANSI(self.style.printable(f"{tail}{status}{prompt}"))

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            self._queued = True
            event.current_buffer.validate_and_handle()

        return keys
