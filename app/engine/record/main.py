"""`errand replay`: plays a record and says where the loop of today behaves differently."""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from app.arguments import Parser
from app.engine.errors import EngineError, InvalidParams
from app.engine.record.lines import TaskRecord, read
from app.engine.record.replay import replay
from app.engine.record.told import compare, replies
from app.printable import printable
from app.regular_file import read_regular

_LARGEST = 256_000_000


def main(arguments: Sequence[str]) -> int:
    """0 where nothing differs, 1 with the difference on stdout where something does, 2 for a file that is no record."""
    parser = Parser(prog="errand replay", description="Play a task's record with the loop of today.")
    parser.add_argument("file", type=Path, metavar="FILE", help="a record, made with errand record")
    file: Path = parser.parse_args(arguments).file
    try:
        record = read(_text(file).splitlines())
        with tempfile.TemporaryDirectory(prefix="errand-replay-") as home:
            today = asyncio.run(replay(record, Path(home)))
    except TimeoutError:
        sys.stderr.write(
            "errand replay: the replay did not come to an end: the loop waits today where it did not then.\n"
        )
        return 1
    except EngineError as error:
        sys.stderr.write(f"errand replay: {printable(str(error))}\n")
        return 2
    return _say(record, today)


def _text(file: Path) -> str:
    try:
        return read_regular(file, _LARGEST).decode()
    except OSError as error:
        raise InvalidParams(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidParams(f"{file} cannot be read: it is no UTF-8 text.") from error


def _say(record: TaskRecord, today: TaskRecord) -> int:
    lines = compare(record, today)
    sys.stdout.writelines(f"{printable(line)}\n" for line in lines)
    if lines:
        return 1
    sys.stdout.write(f"{len(replies(record))} turns: the loop does today what it did then.\n")
    return 0
