"""Iterates over the JSON documents of a file: its lines, or the elements of its top-level array.

Only one document at a time is in memory, whatever the size of the file.
"""

import re
from collections.abc import Iterator
from typing import IO, Literal, TypeAlias

from errand.engine.core.errors import InvalidParams
from errand.engine.core.input_limits import MAX_RECORD_BYTES, MAX_VALUES, check_record, too_large, too_many

Documents: TypeAlias = Iterator[bytes]
Shape = Literal["lines", "whole"]

# A file of lines is one conversation, which is held in memory as a whole.
_MAX_LINES_FILE_BYTES = 128 * 1024 * 1024
_PIECE = 1024 * 1024
_MAX_PIECE_BYTES = 4 * _PIECE
# Irrelevant text and complete strings, then one bracket. Has no ambiguity, so it never backtracks.
_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+([\[\]{}])', re.DOTALL)
_FIRST = re.compile(rb"[^\s\xef\xbb\xbf]")


def documents(file: IO[bytes], shape: Shape) -> Documents:
    """Yield the documents. Raises `InvalidParams` if the file ends within one, or if one exceeds the limits."""
    return _lines(file) if shape == "lines" else _elements(file)


def _lines(file: IO[bytes]) -> Documents:
    size = 0
    while line := file.readline(MAX_RECORD_BYTES + 1):
        check_record(line, "one of its lines")
        size += len(line)
        if size > _MAX_LINES_FILE_BYTES:
            raise InvalidParams(f"it has more than {_MAX_LINES_FILE_BYTES // _PIECE} MB in one conversation")
        if line.strip():
            yield line


def _elements(file: IO[bytes]) -> Documents:
    text = b""
    depth = position = outer = opened = 0
    start: int | None = None
    is_begun = False
    # Read more at a time if there was no bracket: a long string is scanned again with each piece.
    while piece := file.read(min(max(_PIECE, len(text) - position), _MAX_PIECE_BYTES)):
        done = position if start is None else start
        text, position = text[done:] + piece, position - done
        start = None if start is None else 0
        if len(text) > MAX_RECORD_BYTES + _MAX_PIECE_BYTES:
            raise too_large("one of its conversations")
        if not is_begun and (first := _FIRST.search(text)) is not None:
            # A file with an object instead of an array is one document.
            is_begun, outer = True, 0 if first[0] == b"{" else 1
        while (bracket := _TO_BRACKET.match(text, position)) is not None:
            position = bracket.end()
            if bracket[1] in b"[{":
                start, opened = (position - 1, 0) if depth == outer else (start, opened + 1)
                depth += 1
                if opened > MAX_VALUES:
                    raise too_many("one of its conversations")
                continue
            depth -= 1
            if depth == outer and start is not None:
                document = text[start:position]
                check_record(document, "one of its conversations")
                yield document
                start = None
            if depth <= 0:
                return
    raise InvalidParams("it ends in the middle")
