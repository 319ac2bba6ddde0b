"""Messages of a worker to the pool, one JSON object a line.

The pool answers `FileWanted` with the path of a file and a newline, or with an empty line after the last file.
"""

import msgspec


class FileWanted(msgspec.Struct, frozen=True, tag=True):
    """The worker has no further file."""


class FileDone(msgspec.Struct, frozen=True, tag=True):
    """A file whose tests have all run."""

    file: str
    seconds: float
    passed: int
    skipped: int


class TestFailed(msgspec.Struct, frozen=True, tag=True):
    """A test, its set-up or its end that failed, or a file that could not be imported; `text` is what pytest prints."""

    test: str
    text: str


Message = FileWanted | FileDone | TestFailed
