"""`errand` and `python -m app`: the engine for `errand engine`, the command line for everything else."""

import sys


def main() -> int:
    arguments = sys.argv[1:]
    # Only one of the two is imported: each has its own start time to keep.
    if arguments[:1] == ["engine"] and not {"--stop", "-h", "--help"} & set(arguments):
        from app.engine.main import main as engine

        return engine(arguments[1:])
    from app.cli.main import main as command_line

    return command_line(arguments)


if __name__ == "__main__":
    sys.exit(main())
