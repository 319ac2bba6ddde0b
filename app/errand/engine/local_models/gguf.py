"""Reads what a GGUF file says of its model: architecture, layers, context, chat template. The weights are not read.

The format is that of `docs/gguf.md` in ggml: magic, version, counts, then pairs of a name and a typed value.
"""

import struct
from dataclasses import dataclass
from functools import lru_cache
from os import SEEK_CUR
from pathlib import Path
from typing import BinaryIO, TypeAlias

from errand.text.printable import printable

_MAGIC = b"GGUF"
_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_MAX_PAIRS = 10_000
_MAX_NAME_BYTES = 1_000
_MAX_TITLE_LENGTH = 100
_MAX_STRING_BYTES = 1_000_000
_MAX_ARRAY_LENGTH = 1_000_000  # of the words of a tokenizer
_TEMPLATE = "tokenizer.chat_template"
# Models that do something else than to write text.
_NOT_FOR_CHAT = frozenset(
    {"bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "t5encoder", "clip", "wavtokenizer-dec"}
)
_Value: TypeAlias = "int | float | bool | str | tuple[_Value, ...]"
# Bytes of a number in the cache of keys and values.
_CACHE_NUMBER_BYTES = 2


class NotGguf(ValueError):
    """The file is not a GGUF file, or is damaged."""


@dataclass(frozen=True, slots=True)
class GgufFacts:
    """`cache_bytes` is what a token of context takes in memory; `context_tokens` is 0 if the file does not say.

    `calls_tools`: its chat template has a place for tools. Without one llama.cpp leaves tools out and does not say so.
    """

    name: str
    architecture: str
    context_tokens: int
    cache_bytes: int
    calls_tools: bool = True

    @property
    def is_for_chat(self) -> bool:
        return self.architecture not in _NOT_FOR_CHAT


def read_facts(file: Path) -> GgufFacts:
    """Return what the file says; it is read again when it has changed. Raises `NotGguf` or OSError."""
    status = file.stat()
    return _read_facts(file, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=512)
def _read_facts(file: Path, size_bytes: int, changed: int) -> GgufFacts:
    """Read a file of this size and time of change."""
    with file.open("rb") as stream:
        values = _values(stream)
    architecture = str(values.get("general.architecture", ""))

    def number(name: str) -> int:
        value = values.get(f"{architecture}.{name}", 0)
        if isinstance(value, tuple):  # one for each layer
            value = max((entry for entry in value if isinstance(entry, int)), default=0)
        return int(value) if isinstance(value, int | float) else 0

    layers, heads = number("block_count"), number("attention.head_count")
    width = number("embedding_length") // heads if heads else 0
    cached_heads = number("attention.head_count_kv") or heads
    key_length = number("attention.key_length") or width
    value_length = number("attention.value_length") or width
    return GgufFacts(
        name=printable(" ".join(str(values.get("general.name", "")).split()))[:_MAX_TITLE_LENGTH],
        architecture=architecture,
        context_tokens=number("context_length"),
        cache_bytes=layers * cached_heads * (key_length + value_length) * _CACHE_NUMBER_BYTES,
        calls_tools="tools" in str(values.get(_TEMPLATE, "")),
    )


def _values(stream: BinaryIO) -> dict[str, _Value]:
    """Return the pairs; of the tokenizer only the chat template, since its lists are long."""
    if _exactly(stream, 4) != _MAGIC:
        raise NotGguf("it does not begin with GGUF")
    version = _unpack(stream, "<I")
    if version not in (2, 3):
        raise NotGguf(f"version {version} of the format is not known")
    _unpack(stream, "<Q")
    count = int(_unpack(stream, "<Q"))
    if count > _MAX_PAIRS:
        raise NotGguf("it has too many values")
    values: dict[str, _Value] = {}
    for _ in range(count):
        name = _string(stream, _MAX_NAME_BYTES)
        kind = int(_unpack(stream, "<I"))
        if kind == _ARRAY and name.startswith("tokenizer."):
            _skip_array(stream)
        else:
            values[name] = _value(stream, kind)
    return values


def _value(stream: BinaryIO, kind: int) -> _Value:
    if kind == _STRING:
        return _string(stream, _MAX_STRING_BYTES)
    if kind == _ARRAY:
        inner, length = int(_unpack(stream, "<I")), int(_unpack(stream, "<Q"))
        if length > _MAX_ARRAY_LENGTH:
            raise NotGguf("it has a list that is too long")
        return tuple(_value(stream, inner) for _ in range(length)) if inner != _ARRAY else ()
    if kind not in _NUMBERS:
        raise NotGguf(f"it has a value of the unknown kind {kind}")
    return _unpack(stream, _NUMBERS[kind])


def _skip_array(stream: BinaryIO) -> None:
    inner, length = int(_unpack(stream, "<I")), int(_unpack(stream, "<Q"))
    if length > _MAX_ARRAY_LENGTH:
        raise NotGguf("it has a list that is too long")
    if inner in _NUMBERS:
        stream.seek(length * struct.calcsize(_NUMBERS[inner]), SEEK_CUR)
        return
    if inner != _STRING:
        raise NotGguf(f"it has a list of the unknown kind {inner}")
    for _ in range(length):
        stream.seek(int.from_bytes(_exactly(stream, 8), "little"), SEEK_CUR)


def _string(stream: BinaryIO, max_bytes: int) -> str:
    size = int(_unpack(stream, "<Q"))
    if size > max_bytes:
        raise NotGguf("it has a text that is too long")
    return _exactly(stream, size).decode("utf-8", "replace")


def _unpack(stream: BinaryIO, form: str) -> int | float | bool:
    (value,) = struct.unpack(form, _exactly(stream, struct.calcsize(form)))
    return value


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise NotGguf("it ends too early")
    return data
