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

from app.cli.terminal.style import Style
from app.cli.terminal.text import cut, visible_columns

SendMode: TypeAlias = Literal["enter", "alt_enter", "interrupt", "end"]


class OutputAbovePrompt:
    """Shows whole lines; what follows the last newline waits for its end.

    prompt_toolkit's own way (`patch_stdout`) leaves raw mode for each write: keys pressed meanwhile are echoed and
    lost, and Ctrl+C kills the command.
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
    """Output above, then a status line while a task works, then the line that is typed.

    Text that has no newline yet stands right above the prompt, so that a reply can be read as it comes.
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
        """While this holds, keys pressed between two lines wait for the next one instead of reaching the shell."""
        with self._session.app.input.raw_mode():
            yield

    def write(self, text: str) -> None:
        """Show text; what follows the last newline waits above the prompt until its line is full."""
        whole, newline, tail = (self._tail + text).rpartition("\n")
        self._tail = tail
        if visible_columns(tail) > self.width and " " in tail:
            # Give a full line away at a blank, so that a long paragraph does not grow above the prompt.
            head, _, self._tail = tail.rpartition(" ")
            whole, newline = whole + newline + head, "\n"
        self._above.write(self.style.printable(whole + newline))
        self._session.app.invalidate()

    def line(self, text: str = "") -> None:
        self.write(text + "\n")

    def note(self, text: str) -> None:
        """On a line of its own, also amid a reply that streams in."""
        self.write("\n" if self._tail else "")
        self.line(self.style.dim(text))

    def status(self, text: str) -> None:
        self._status = text
        self._session.app.invalidate()

    def hint(self, text: str) -> None:
        """Words before the place where one types; empty for none."""
        self._hint = text
        self._session.app.invalidate()

    async def read(self, question: str = "") -> tuple[SendMode, str]:
        """The next line, and how it was sent. A question stands in place of the hint while it is read."""
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
        if self._session.app.is_done:  # what stays on the screen is the line alone
            return ANSI(self.style.printable(prompt))
        tail = f"{self._tail}\n" if self._tail else ""
        # Not prompt_toolkit's toolbar: it stays hidden in terminals that do not report the cursor's place.
        status = self.style.dim(cut(self._status, self.width - 1)) + "\n" if self._status else ""
        return ANSI(self.style.printable(f"{tail}{status}{prompt}"))

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            self._queued = True
            event.current_buffer.validate_and_handle()

        return keys
