"""Search for a vector in the bytes of files, in every form in which the store of vectors writes it."""

import os
import random
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from errand.engine.tools.context import Vector
from tests.support.vectors import DIMENSIONS


def exact_vector(seed: int) -> Vector:
    """Return a vector of length 1 that no rounding changes: 256 numbers of ±1/16, and zeros."""
    source = random.Random(seed)
    numbers = [source.choice((-0.0625, 0.0625)) for _ in range(256)] + [0.0] * (DIMENSIONS - 256)
    source.shuffle(numbers)
    return tuple(numbers)


def forms_of(vector: Sequence[float]) -> tuple[bytes, ...]:
    """Return the vector as float32 of both byte orders, as float16, and as CBOR with numbers of 32 and 16 bits."""
    numbers = vector
    count = len(numbers)
    return (
        struct.pack(f"<{count}f", *numbers),
        struct.pack(f">{count}f", *numbers),
        struct.pack(f"<{count}e", *numbers),
        b"".join(b"\xfa" + struct.pack(">f", number) for number in numbers),
        b"".join(b"\xf9" + struct.pack(">e", number) for number in numbers),
    )


def codes_of(folder: Path, vector: Sequence[float]) -> tuple[bytes, ...]:
    """Return the quantised vector as the files of the index hold it: the codes stand in the order of the vectors."""
    needle = struct.pack(f"<{len(vector)}f", *vector)
    codes: list[bytes] = []
    for file in folder.rglob("matrix.dat"):
        data, quantised = file.read_bytes(), file.with_name("quantized.data")
        start = data.find(needle)
        if start >= 0 and quantised.exists():
            count, at = len(data) // len(needle), start // len(needle)
            record = quantised.stat().st_size // count
            codes.append(quantised.read_bytes()[at * record : (at + 1) * record])
    return tuple(codes)


def files_with(folder: Path, needles: Sequence[bytes]) -> list[str]:
    """Return the files below the folder that hold one of these bytes."""
    return [str(file.relative_to(folder)) for file, data in _contents(folder) if any(map(data.__contains__, needles))]


def _contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink():
            yield file, _written(file)


def _written(file: Path) -> bytes:
    """Return the bytes of the file without its holes, which are most of the files of an index."""
    parts: list[bytes] = []
    with file.open("rb") as stream:
        end, at = os.fstat(stream.fileno()).st_size, 0
        while at < end:
            try:
                at = os.lseek(stream.fileno(), at, os.SEEK_DATA)
            except OSError:  # nothing more
                break
            hole = os.lseek(stream.fileno(), at, os.SEEK_HOLE)
            parts.append(os.pread(stream.fileno(), hole - at, at))
            at = hole
    return b"".join(parts)
