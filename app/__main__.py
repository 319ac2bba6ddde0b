"""`errand` and `python -m app`: the engine, the window, and for everything else the command line."""

import os
import sys


def main() -> int:
    arguments = sys.argv[1:]
    # Only one of the two is imported: each has its own start time to keep.
    if arguments[:1] == ["engine"] and not {"--stop", "-h", "--help"} & set(arguments):
        from app.engine.main import main as engine

        return engine(arguments[1:])
    if arguments == ["window"]:
        return _window()
    from app.cli.main import main as command_line

    return command_line(arguments)


def _window() -> int:
    """The window, or why there is none here."""
    from app.cli.start import has_display

    if not has_display(os.environ, sys.platform):
        sys.stderr.write("errand: No display was found (DISPLAY and WAYLAND_DISPLAY are empty).\n")
        sys.stderr.write("Use the terminal: errand chat, errand run 'what to do', errand tour\n")
        return 1
    try:
        from app.window.main import main as window
    except ImportError as error:  # Qt needs libraries of the system
        sys.stderr.write(f"errand: The window cannot be opened: {error}.\n")
        sys.stderr.write("Install what it needs (sh packaging/system.sh), or use the terminal: errand chat\n")
        return 1
    return window()


if __name__ == "__main__":
    sys.exit(main())
