"""`errand`: starts the engine, the window or the command line. Checks for a display first."""

import gc
import os
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from errand.text.printable import printable

if TYPE_CHECKING:
    from errand.cli.commands.explain import ExplainOptions
    from errand.system.file_lock import FileLock
    from errand.system.paths import Paths


_WINDOWS: tuple[list[str], ...] = ([], ["window"], ["window", "--new"], ["quick"])


def no_window(environment: Mapping[str, str]) -> str | None:
    """Return the reason why no window can open here, as a sentence; None if one can."""
    if sys.platform in ("win32", "darwin") or environment.get("WAYLAND_DISPLAY"):
        return None
    if environment.get("QT_QPA_PLATFORM"):
        return None  # Qt uses another platform, as in tests
    display = environment.get("DISPLAY")
    if not display:
        return "No display was found"
    if not _is_display_available(display):
        return f"The display {display} does not answer"
    return None


def _is_display_available(display: str) -> bool:
    """Return True if the X server accepts a connection, or if xcb is missing and only Qt can tell."""
    import ctypes
    import ctypes.util  # 20 ms, and most commands need no display

    name = ctypes.util.find_library("xcb")
    if name is None:
        return True
    xcb = ctypes.CDLL(name)
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = (ctypes.c_char_p, ctypes.c_void_p)
    xcb.xcb_connection_has_error.argtypes = (ctypes.c_void_p,)
    xcb.xcb_disconnect.argtypes = (ctypes.c_void_p,)
    connection = xcb.xcb_connect(display.encode(), None)
    try:
        return xcb.xcb_connection_has_error(connection) == 0
    finally:
        xcb.xcb_disconnect(connection)


def main() -> int:
    sys.excepthook = _print_error
    arguments = sys.argv[1:]
    # Import only the selected program: each has its own start-up budget.
    if arguments[:1] == ["engine"] and not {"--stop", "--rotate-token", "--json", "-h", "--help"} & set(arguments):
        return _engine(arguments[1:])
    if arguments[:1] == ["replay"]:
        return _replay(arguments)
    if arguments[:1] == ["explain"]:
        return _explain(arguments)
    if arguments[:1] == ["share-models"] and "--json" not in arguments:
        return _share_models(arguments[1:])
    if arguments[:1] == ["complete"]:
        from errand.cli.complete_values import main as complete_values

        return complete_values(arguments[1:])
    if arguments[:1] == ["watchdog"]:
        from errand.engine.tools.processes.watchdog_child import main as watchdog

        return watchdog(arguments[1:])
    if arguments[:1] in (["sandbox-network"], ["sandbox-init"]):
        return _in_sandbox(*arguments)
    if arguments[:1] == ["page-markdown"]:
        from errand.engine.tools.web.markdown_child import main as page_markdown

        return page_markdown(arguments[1:])
    if arguments[:1] == ["model-library"]:
        from errand.engine.models.litellm.library_child import main as model_library

        return model_library(arguments[1:])
    if arguments[:1] == ["python-session"]:
        from errand.engine.tools.python.session_child import main as python_session

        python_session()
    _choose_language()
    if arguments in _WINDOWS:
        reason = no_window(os.environ)
        if reason is None:
            return _window(arguments)
        if arguments:
            sys.stderr.write(f"errand: {reason}. Use the terminal: errand chat, errand run 'what to do', errand tour\n")
            return 1
        sys.stdout.write(f"{reason}: Errand runs in the terminal.\n")
    from errand.cli.main import main as command_line

    return command_line(arguments)


def _choose_language() -> None:
    """Choose it before anything is imported that has texts. The processes above speak English (decision 69)."""
    from errand.system.language import chosen_language
    from errand.system.paths import default_paths
    from errand.text.translation import use_language

    use_language(chosen_language(default_paths().settings))


def _print_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """An error text may come from an untrusted source. Ctrl+C before a command has begun ends the process silently."""
    if issubclass(kind, KeyboardInterrupt):
        return
    import traceback

    from errand.text.redaction import redact

    sys.stderr.write(printable(redact("".join(traceback.format_exception(kind, error, trace)))))


def _in_sandbox(program: str, *arguments: str) -> int:
    """Run one of the programs that begin in a sandbox."""
    if program == "sandbox-init":
        from errand.engine.sandbox.init_child import main as init_child

        return init_child(arguments)
    from errand.engine.sandbox.network_child import main as network_child

    return network_child([*arguments])


def _engine(arguments: list[str]) -> int:
    from errand.engine.core.process_hardening import take_keys

    keys = take_keys()  # it may re-execute the program, so it runs before slow imports
    gc.disable()  # a tenth of the start: collections of permanent objects; engine/main.py turns it on later
    from errand.engine.main import main as engine

    return engine(arguments, keys)


def _replay(arguments: list[str]) -> int:
    """Replay a record with the agent loop itself: no engine has to run."""
    gc.disable()  # a tenth of its time: it ends before garbage matters
    from pathlib import Path

    from errand.cli.commands.start import ReplayOptions
    from errand.cli.main import report_failure
    from errand.cli.parser import parse
    from errand.cli.table import TABLE
    from errand.cli.terminal.terminal import standard_terminal
    from errand.engine.record.replay import ReplayFailed, replay_file

    invocation = parse(arguments, TABLE)
    assert isinstance(invocation.options, ReplayOptions)
    try:
        return replay_file(Path(invocation.options.file), as_json=invocation.as_json)
    except ReplayFailed as failed:
        return report_failure(invocation, standard_terminal(), str(failed), failed.exit_code)


def _explain(arguments: list[str]) -> int:
    """Answer with the policy itself, as the options of the command line say: no engine has to run."""
    from errand.cli.commands.explain import ExplainOptions
    from errand.cli.exit_codes import EXIT_ERROR
    from errand.cli.main import main, report_failure, system_error_text
    from errand.cli.parser import parse
    from errand.cli.table import TABLE
    from errand.cli.terminal.terminal import close_output, standard_terminal

    invocation = parse(arguments, TABLE)
    options = invocation.options
    if not isinstance(options, ExplainOptions) or options.subject_count + invocation.as_json != 1:
        return main(arguments)
    try:
        _answer(options, as_json=invocation.as_json)
        sys.stdout.flush()
    except BrokenPipeError:  # a pipe such as `| head` has read enough
        close_output()
        return 1
    except OSError as error:
        return report_failure(invocation, standard_terminal(), system_error_text(error), EXIT_ERROR)
    return 0


def _answer(options: "ExplainOptions", *, as_json: bool) -> None:
    from errand.engine.permissions import explain
    from errand.system.paths import default_paths

    folder, private = os.path.realpath(options.workspace or "."), default_paths().home
    if as_json:
        explain.explain_cases(sys.stdin.buffer, sys.stdout)
    elif options.address is not None:
        from errand.engine.storage.stored_grants import stored_grants

        grants = stored_grants(default_paths())
        explain.explain_address(options.address, folder, private, grants, sys.stdout)
    elif options.path is not None:
        explain.explain_path(options.path, folder, private, sys.stdout, writes=options.write)
    else:
        explain.explain_command(options.what or "", folder, private, sys.stdout)


def _share_models(arguments: list[str]) -> int:
    from errand.engine.core.process_hardening import take_keys

    keys = take_keys()
    from errand.engine.sharing.main import main as share_models

    return share_models(arguments, keys)


def _window(arguments: list[str]) -> int:
    """Activate the window that is already open, or open one."""
    from errand.system.file_lock import FileLock
    from errand.system.paths import default_paths

    paths = default_paths()
    quick = arguments == ["quick"]
    try:
        paths.prepare()
        lock = FileLock.acquire(paths.window_lock)
    except OSError as error:
        sys.stderr.write(f"errand: The data directory {printable(str(paths.home))} cannot be used ({error.strerror}). ")
        sys.stderr.write("Make it writable, or set ERRAND_HOME to another folder.\n")
        return 1
    if lock is None and "--new" not in arguments:
        from errand.system.environment import terminal_folder
        from errand.window.desktop.single_instance import wake_running_window

        token = os.environ.get("XDG_ACTIVATION_TOKEN", "")
        what = "quick" if quick else "show"
        if wake_running_window(paths.window_instance_file, what, activation=token, folder=terminal_folder()):
            return 0
    if quick and lock is not None:
        lock.release()  # windows hold the lock, a dialog alone does not
    return _open(paths, lock, quick=quick)


def _open(paths: "Paths", lock: "FileLock | None", *, quick: bool) -> int:
    """Qt needs system libraries; its ImportError names the missing one."""
    if not quick:
        gc.disable()  # saves 20 ms: a hundred collections of permanent objects; window/main.py turns it on later
    try:
        from errand.window.main import main as window
    except ImportError as error:
        sys.stderr.write(f"errand: The window cannot be opened: {printable(str(error))}.\n")
        sys.stderr.write("Install what it needs (sh packaging/system.sh), or use the terminal: errand chat\n")
        return 1
    return window(paths, lock, quick=quick)


if __name__ == "__main__":
    sys.exit(main())
