"""A look at the database file without the engine: can it be read, is it whole. Changes nothing."""

import sqlite3
from pathlib import Path
from typing import Literal

_ADVICE = (
    "Nothing was changed. Keep the file, and put the newest copy from the folder copies/ in its place,\n"
    "or move it away to start with an empty one."
)


def check_database(file: Path) -> tuple[Literal["good", "bad"], str, str, str]:
    """The state, the subject `database`, what was found, and what to do."""
    if not file.exists():
        return "good", "database", "none yet; it is made at the first start", ""
    if file.is_file() and not file.stat().st_size:
        return "bad", "database", f"{file} is empty", _ADVICE
    try:
        connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=5)
    except sqlite3.Error as error:
        return "bad", "database", f"{file} cannot be opened: {error}", _ADVICE
    try:
        (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        return "bad", "database", f"{file} cannot be read: {error}", _ADVICE
    finally:
        connection.close()
    if answer != "ok":
        return "bad", "database", f"{file} is damaged: {answer}", _ADVICE
    return "good", "database", f"{file.stat().st_size / 1e6:.1f} MB, whole", ""
