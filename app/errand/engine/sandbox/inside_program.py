"""How our own small programs are started inside a sandbox, where the files of Errand may be hidden."""

import os
import sys
from functools import cache
from pathlib import Path


@cache
def inside_program(subcommand: str, file: str) -> tuple[str, ...]:
    """Return the beginning of the command that runs a file, to which its arguments are added.

    An installed bundle's executable is errand itself, which has the subcommand; else the text goes along.
    """
    if getattr(sys, "frozen", False):
        return (sys.executable, subcommand)
    text = Path(file).read_text(encoding="utf-8")
    return (os.path.realpath(sys.executable), "-I", "-S", "-c", text)
