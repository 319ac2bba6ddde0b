"""The JSON documents of a file, one after the other: its lines, or the elements of the one array that it is.

A file is mapped, not read: however large it is, one document at a time is in memory.
"""

import mmap
import re
from collections.abc import Iterator
from typing import IO, Literal, TypeAlias

from app.engine.errors import InvalidParams

Documents: TypeAlias = Iterator[bytes]
Shape = Literal["lines", "whole"]

_LONGEST = 256 * 1024 * 1024
# What does not matter, strings with whatever is in them, then one bracket. Nothing in it can be tried in two ways.
_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+([\[\]{}])', re.DOTALL)


def documents(file: IO[bytes], shape: Shape) -> Documents:
    """`InvalidParams` where the file ends in the middle of one, or one is larger than 256 MB."""
    return _lines(file) if shape == "lines" else _elements(file)


def _lines(file: IO[bytes]) -> Documents:
    while line := file.readline(_LONGEST + 1):
        if len(line) > _LONGEST:
            raise InvalidParams("one of its lines is longer than 256 MB")
        if line.strip():
            yield line


def _elements(file: IO[bytes]) -> Documents:
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        depth, start, position = 0, 0, 0
        # A file that is one object instead of an array is one document.
        outer = 0 if _first(data) == b"{" else 1
        while (found := _TO_BRACKET.match(data, position)) is not None:
            position = found.end()
            if found[1] in b"[{":
                start = position - 1 if depth == outer else start
                depth += 1
                continue
            depth -= 1
            if depth == outer:
                _check_size(position - start)
                yield data[start:position]
            if depth <= 0:
                return
        raise InvalidParams("it ends in the middle")


def _first(data: mmap.mmap) -> bytes:
    found = re.compile(rb"[^\s\xef\xbb\xbf]").search(data)
    return found[0] if found is not None else b""


def _check_size(size: int) -> None:
    if size > _LONGEST:
        raise InvalidParams("one of its conversations is larger than 256 MB")
