"""The prompt that stays at the bottom while output appears above it (prompt-toolkit)."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.shortcuts import CompleteStyle

from errand.cli.terminal.style import Style
from errand.cli.terminal.text import cut, wrapped

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
        complete, newline, self._tail = (self._tail + text).rpartition("\n")
        if not newline:
            return
        if self._application.is_running:
            self._application.renderer.erase()
        self._application.output.write_raw(complete + newline)
        self._application.output.flush()
        self._application.invalidate()


class _CommandCompleter(Completer):
    """Completes `/co` to a command, and the word after it to one of its words."""

    def __init__(self, commands: Mapping[str, Sequence[str]]) -> None:
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = document.text_before_cursor
        name, blank, word = typed[1:].partition(" ")
        if not typed.startswith("/") or " " in word:
            return
        prefix = word if blank else name
        for command in self._commands.get(name, ()) if blank else self._commands:
            if command.startswith(prefix):
                yield Completion(command if blank else f"{command} ", -len(prefix), display=command)


class LivePrompt:
    """Output above, then a status line while a task runs, then the input line.

    Text without a newline appears right above the prompt, so that a streaming reply is readable. What is typed and
    noted while it streams stands below it, and moves above the prompt with its end. `commands` are completed by Tab,
    each with its words.
    """

    def __init__(
        self, style: Style, width: Callable[[], int], history: Path, commands: Mapping[str, Sequence[str]]
    ) -> None:
        self.style = style
        self._width = width
        self._tail = ""
        self._status = ""
        self._hint = ""
        self._question = ""
        self._queued = False
        self._is_open = False
        self._held: list[str] = []
        self._returned = ""  # for the next line
        self._session: PromptSession[str] = PromptSession(
            message=self._message,
            history=FileHistory(str(history)),
            key_bindings=self._keys(),
            completer=_CommandCompleter(commands),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            reserve_space_for_menu=0,  # else the prompt begins eight lines higher, over what was said
            erase_when_done=True,
        )
        self._above = OutputAbovePrompt(self._session.app)

    @property
    def width(self) -> int:
        return self._width()

    @contextmanager
    def opened(self) -> Generator[None]:
        """Return a context in which keys pressed between two lines go to the next line instead of the shell.

        At its end what waits for the end of its line is shown.
        """
        with self._session.app.input.raw_mode():
            try:
                yield
            finally:
                self._is_open = False
                self.write("\n" if self._tail else "")

    def write(self, text: str) -> None:
        """Show text; text after the last newline waits above the prompt until its line is full."""
        complete, newline, tail = (self._tail + text).rpartition("\n")
        self._tail = tail
        self._is_open = not text.endswith("\n") if text else self._is_open
        lines = wrapped(tail, self.width).split("\n")
        if len(lines) > 1:  # full lines, so that a long paragraph does not grow above the prompt
            complete, newline, self._tail = complete + newline + "\n".join(lines[:-1]), "\n", lines[-1]
        held = "".join(self._held) if not self._is_open else ""
        self._held = [] if held else self._held
        self._above.write(self.style.printable(complete + newline + held))
        self._session.app.invalidate()

    @property
    def shows_status(self) -> bool:
        return True

    @property
    def unsent(self) -> str:
        """The text that was typed and not sent when reading ended."""
        return self._session.default_buffer.text.strip()

    def put_back(self, text: str) -> None:
        """Put a text that was not sent into the input line, before what is typed there."""
        self._returned = "\n".join(filter(None, (self._returned, text)))
        if self._session.app.is_running and not self._question:
            buffer = self._session.default_buffer
            typed, self._returned = "\n".join(filter(None, (self._returned, buffer.text))), ""
            buffer.set_document(Document(typed))
            self._session.app.invalidate()

    def line(self, text: str = "") -> None:
        self.write(text + "\n")

    def note(self, text: str) -> None:
        """Print on a separate line, after a reply that is streaming."""
        self._below_reply("\n".join(map(self.style.dim, wrapped(text, self.width).split("\n"))))

    def status(self, text: str) -> None:
        self._status = text
        self._session.app.invalidate()

    def hint(self, text: str) -> None:
        """Return the text before the input; may be empty."""
        self._hint = text
        self._session.app.invalidate()

    async def read(self, question: str = "") -> tuple[SendMode, str]:
        """Return the next line, and how it was sent. A question replaces the hint while it is read."""
        self._queued = False
        self._question = question
        returned = "" if question else self._returned
        self._returned = self._returned if question else ""
        try:
            text = await self._session.prompt_async(default=returned, handle_sigint=False)
        except KeyboardInterrupt:
            return "interrupt", ""
        except EOFError:
            return "end", ""
        finally:
            self._question = ""
        if text.strip():
            rows = text.strip().split("\n")
            self._below_reply("\n".join(f"{self.style.bold('>')} {row}" for row in rows))
        return ("alt_enter" if self._queued else "enter"), text.strip()

    def _below_reply(self, text: str) -> None:
        """Lines that a streaming reply does not run into."""
        if self._is_open:
            self._held.append(f"{text}\n")
            self._session.app.invalidate()
        else:
            self.write(f"{text}\n")

    def _message(self) -> ANSI:
        prompt = f"{self._question or self._hint}{self.style.bold('> ')}"
        tail = (f"{self._tail}\n" if self._tail else "") + "".join(self._held)
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
