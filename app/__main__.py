"""`errand` and `python -m app`: the engine, the window, and for everything else the command line."""

import os
import sys

from app.display import no_window


def main() -> int:
    arguments = sys.argv[1:]
    # Only one of the three is imported: each has its own start time to keep.
    if arguments[:1] == ["engine"] and not {"--stop", "-h", "--help"} & set(arguments):
        from app.engine.main import main as engine

        return engine(arguments[1:])
    if arguments in ([], ["window"]):
        reason = no_window(os.environ)
        if reason is None:
            return _window()
        if arguments:
            sys.stderr.write(f"errand: {reason}. Use the terminal: errand chat, errand run 'what to do', errand tour\n")
            return 1
        sys.stdout.write(f"{reason}: Errand runs in the terminal.\n")
    from app.cli.main import main as command_line

    return command_line(arguments)


def _window() -> int:
    """The window; Qt needs libraries of the system, and says which one is missing."""
    try:
        from app.window.main import main as window
    except ImportError as error:
        sys.stderr.write(f"errand: The window cannot be opened: {error}.\n")
        sys.stderr.write("Install what it needs (sh packaging/system.sh), or use the terminal: errand chat\n")
        return 1
    return window()


if __name__ == "__main__":
    sys.exit(main())
