"""Opens a file in the person's editor: the graphical one of VISUAL or EDITOR, else what the desktop opens it with."""

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from PySide6.QtCore import QProcess, QUrl
from PySide6.QtGui import QDesktopServices

from errand.text.translation import tr
from errand.window.views.shared.row_actions import edit_target

# How an editor is told the line. Others of these variables need a terminal, or are not known to have a window.
_AT: Mapping[str, Callable[[str, int], tuple[str, ...]]] = {
    **dict.fromkeys(
        ("code", "code-insiders", "codium", "vscodium", "cursor", "windsurf", "positron"),
        lambda path, line: ("--goto", f"{path}:{line}"),
    ),
    **dict.fromkeys(
        ("zed", "zeditor", "subl", "sublime_text", "mate", "lapce", "pulsar", "atom"),
        lambda path, line: (f"{path}:{line}",),
    ),
    **dict.fromkeys(
        ("gedit", "gnome-text-editor", "pluma", "xed", "mousepad", "geany", "gvim", "mvim", "emacsclient", "emacs"),
        lambda path, line: (f"+{line}", path),
    ),
    **dict.fromkeys(("kate", "kwrite"), lambda path, line: ("--line", str(line), path)),
    **dict.fromkeys(
        ("idea", "pycharm", "webstorm", "goland", "clion", "rubymine", "phpstorm", "rider", "rustrover"),
        lambda path, line: ("--line", str(line), path),
    ),
    **dict.fromkeys(("notepad++",), lambda path, line: (f"-n{line}", path)),
    **dict.fromkeys(("notepad",), lambda path, line: (path,)),
}
_IN_TERMINAL = frozenset(("-nw", "-t", "-tty", "--tty", "--no-window-system"))


def open_in_editor(path: str, line: int, workspace: str) -> str:
    """Open a file at a line; returns why that is not possible, in words, or `""`."""
    if not Path(path).exists():
        return tr("{name} does not exist any more.").format(name=Path(path).name)
    command = editor_command(os.environ, path, max(line, 1))
    if command is not None:
        program, *arguments = command
        started, _ = QProcess.startDetached(program, arguments, workspace or str(Path(path).parent))
        problem = tr("{program} could not be started. VISUAL or EDITOR names it as your editor.")
        return "" if started else problem.format(program=program)
    if QDesktopServices.openUrl(QUrl.fromLocalFile(str(edit_target(Path(path))))):
        return ""
    problem = tr("No program is set up to open {name}. Set VISUAL to your editor, then start Errand again.")
    return problem.format(name=Path(path).name)


def editor_command(environment: Mapping[str, str], path: str, line: int) -> tuple[str, ...] | None:
    """Return the command of the graphical editor that the environment names; None if it names none."""
    for name in ("VISUAL", "EDITOR"):
        try:
            program, *options = shlex.split(environment.get(name, ""))
        except ValueError:  # nothing, or quotes that do not end
            continue
        at = _AT.get(Path(program).name.lower().removesuffix(".exe"))
        if at is not None and _IN_TERMINAL.isdisjoint(options):
            # The window is not to wait, and each has a line of its own.
            arguments = [option for option in options if option not in ("--wait", "-w", "--block")]
            return (program, *arguments, *at(path, line))
    return None
