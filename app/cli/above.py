"""Output above a prompt that is being edited, without taking the keyboard from it."""

from prompt_toolkit.application import Application


class AbovePrompt:
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
