"""The process that turns texts into vectors: the engine never loads a model itself. The only user of fastembed.

Standard input is a socket with length-prefixed JSON both ways. The arguments are the folder of the model, the one in
which the packages lie, the name of the model in fastembed (empty for the simple model, a table that is read here), how
many tokens of a text it reads, and its files. Once the model is loaded, `{"ready": true}` goes out; then each list of
texts is answered by `{"vectors": …}` or `{"error": …}`. It ends with the socket, and imports nothing else of the app.
"""

import json
import os
import socket
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from math import hypot, isfinite
from pathlib import Path
from typing import Protocol, cast

_MAX_THREADS = 4
_DIGITS = 6
# The token before a text in the simple model: it stands for an empty one.
_BEGINNING = 1


class _Array(Protocol):
    def tolist(self) -> list[float]: ...


class _Model(Protocol):
    def embed(self, documents: Sequence[str], batch_size: int) -> Iterable[_Array]: ...


class _Tokenizer(Protocol):
    def enable_truncation(self, max_length: int) -> None: ...


class _Session(Protocol):
    @property
    def tokenizer(self) -> _Tokenizer: ...


class _Embedding(_Model, Protocol):
    @property
    def model(self) -> _Session: ...


class _Package(Protocol):
    def TextEmbedding(
        self, model_name: str, *, threads: int, specific_model_path: str, local_files_only: bool
    ) -> _Embedding: ...


class _Table:
    """The simple model: numbers for each token, of which a text gets the mean."""

    def __init__(self, weights: Path, tokenizer: Path) -> None:
        import numpy
        from tokenizers import Tokenizer

        with weights.open("rb") as file:  # safetensors: 8 bytes with the size of a JSON header, that, and the numbers
            (size,) = struct.unpack("<Q", file.read(8))
            (about,) = (value for name, value in json.loads(file.read(size)).items() if name != "__metadata__")
        if about["dtype"] != "F16":
            raise ValueError(f"{weights.name} has numbers of the type {about['dtype']}")
        start = 8 + size + about["data_offsets"][0]
        self._rows = numpy.memmap(weights, numpy.float16, "r", start, tuple(about["shape"]))
        self._tokenizer = Tokenizer.from_file(str(tokenizer))

    def embed(self, documents: Sequence[str], batch_size: int) -> Iterator[_Array]:
        for text in documents:
            tokens = self._tokenizer.encode(text, add_special_tokens=False).ids or [_BEGINNING]
            yield self._rows[tokens].mean(axis=0, dtype="float32")


def main(arguments: Sequence[str]) -> int:
    folder, packages, name, tokens, *files = arguments
    if packages not in sys.path:  # before other packages, as in the engine, and after Python's own modules
        others = (number for number, path in enumerate(sys.path) if path.endswith("-packages"))
        sys.path.insert(next(others, len(sys.path)), packages)
    with socket.socket(fileno=0) as connection:
        try:
            if name:
                model = _loaded(folder, name, int(tokens))
            else:
                model = _Table(Path(folder, files[0]), Path(folder, files[1]))
        except Exception as error:  # noqa: BLE001 -- whatever the library raises is told to the engine
            _send(connection, {"error": f"{type(error).__name__}: {error}"[:2_000]})
            return 1
        _send(connection, {"ready": True})
        while (texts := _receive(connection)) is not None:
            _send(connection, _answer(model, texts))
    return 0


def _loaded(folder: str, name: str, tokens: int) -> _Model:
    package = cast(_Package, import_module("fastembed"))  # optional, so that no type checker finds it
    threads = max(1, min(_MAX_THREADS, (os.cpu_count() or 1) // 2))
    model = package.TextEmbedding(name, threads=threads, specific_model_path=folder, local_files_only=True)
    # The length the model was trained for: the files of its ports say others.
    model.model.tokenizer.enable_truncation(tokens)
    return model


def _answer(model: _Model, texts: list[str]) -> dict[str, object]:
    try:
        vectors = model.embed(texts, batch_size=len(texts))
        return {"vectors": [_rounded(vector.tolist()) for vector in vectors]}
    except Exception as error:  # noqa: BLE001 -- see above
        return {"error": f"{type(error).__name__}: {error}"[:2_000]}


def _rounded(vector: list[float]) -> list[float]:
    """Return the vector with a length of 1, rounded; zeros for one with NaN, which JSON cannot hold.

    The library does not do that for every model.
    """
    length = hypot(*vector)
    if not isfinite(length) or not length:
        return [0.0] * len(vector)
    return [round(number / length, _DIGITS) for number in vector]


def _send(connection: socket.socket, message: dict[str, object]) -> None:
    data = json.dumps(message).encode()
    connection.sendall(struct.pack(">I", len(data)) + data)


def _receive(connection: socket.socket) -> list[str] | None:
    """Return the next texts; None at the end."""
    head = connection.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        return None
    (size,) = struct.unpack(">I", head)
    return cast(list[str], json.loads(connection.recv(size, socket.MSG_WAITALL)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
