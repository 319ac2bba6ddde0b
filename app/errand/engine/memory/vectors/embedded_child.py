"""The process that holds the embedded index. The only user of qdrant_edge.

Qdrant's engine keeps Python's lock in every call, for seconds while it optimises, and a damaged file can end it.

Standard input is a socket with length-prefixed JSON both ways, answered in order; vectors are float32 in base64. The
argument is the folder of the index. The first message says what to open; `{}` goes out once it is open, and a refusal
as `{"kind": …, "error": …}`. It ends with the socket, and imports nothing else of the app.
"""

import base64
import fcntl
import json
import os
import shutil
import socket
import struct
import sys
import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import qdrant_edge as edge

_LOCK_WAIT_S = 3.0
# Files are mapped and sparse: a full disk would end the process in the middle of a write.
_MIN_FREE_BYTES = 200 * 1024 * 1024
# Of the files: an index of another one is made again.
_FORMAT = 2
_KEYWORDS = ("conversation", "folder", "kind")
# Searches scan codes of 4 bits and rank this many times the hits by their real vectors: recall@10 is 1.0 on 100,000.
_OVERSAMPLING = 4.0
# Fewer vectors than about 1,300 are compared one by one.
_MIN_QUANTIZED_KB = 2_000
# No graph: one for 100,000 vectors takes a minute of a core, the codes take five seconds and are as fast to search.
_NO_GRAPH = edge.HnswIndexConfig(m=0, ef_construct=64, full_scan_threshold=10)


class _Condition(TypedDict, total=False):
    key: str
    match: dict[str, list[str]]
    range: dict[str, float]


class _Stored(TypedDict):
    id: int
    vector: str
    conversation: str
    folder: str
    kind: str
    at: float


class _Request(TypedDict, total=False):
    op: str
    dimensions: int
    model: str
    clear: bool
    points: list[_Stored]
    vector: str
    limit: int
    where: dict[str, list[_Condition]]
    ids: list[int]
    start: int | None


class _Refused(Exception):
    """`kind` says to the engine which error it is."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class _Index:
    """The open index. The file `purged` stands beside it while no vector of a deleted point is left on the disk."""

    def __init__(self, folder: Path, shard: edge.EdgeShard, dimensions: int) -> None:
        self._folder = folder
        self._shard = shard
        self._dimensions = dimensions
        self._purged = folder / "purged"

    def answer(self, request: _Request) -> dict[str, object]:
        match request.get("op"):
            case "search":
                return {"hits": self._search(request)}
            case "upsert":
                self._upsert(request.get("points", []))
            case "delete":
                self._delete(request.get("ids", []))
            case "flush":
                self._shard.flush()
            case "purge":
                self._purge()
            case "ids":
                page = edge.ScrollRequest(
                    offset=request.get("start"), limit=request.get("limit"), with_payload=False, with_vector=False
                )
                records, following = self._shard.scroll(page)
                return {"ids": [record.id for record in records], "following": following}
            case "count":
                return {"count": self._shard.count(edge.CountRequest(exact=True))}
            case "optimise":
                _require_space(self._folder, _used(self._folder))
                self._shard.optimize()
            case unknown:
                raise ValueError(f"there is no operation {unknown}")
        return {}

    def close(self) -> None:
        self._shard.flush()
        self._shard.close()

    def _upsert(self, points: list[_Stored]) -> None:
        _require_space(self._folder, 0)
        self._shard.update(edge.UpdateOperation.upsert_points([_point(stored) for stored in points]))

    def _delete(self, ids: list[int]) -> None:
        records = self._shard.retrieve([*ids], with_payload=False, with_vector=False)
        stored_ids = [record.id for record in records]
        if not stored_ids:
            return
        self._purged.unlink(missing_ok=True)
        _sync(self._folder)
        self._shard.update(edge.UpdateOperation.delete_points(stored_ids))
        self._shard.flush()

    def _purge(self) -> None:
        """Write the parts of the index anew that hold vectors of deleted points, which are only marked until then."""
        if self._purged.exists():
            return
        shard = self._folder / "shard"
        if self._shard.count(edge.CountRequest(exact=True)):
            _require_space(self._folder, _used(self._folder))
            self._shard.flush()
            self._shard.optimize()
            self._shard.flush()
        else:
            self._shard.close()
            shutil.rmtree(shard)
            self._shard = _created(shard, self._dimensions)
        for part in ("segments", "."):
            _sync(shard / part)
        _note_purged(self._folder)

    def _search(self, request: _Request) -> "list[tuple[edge.PointId, float]]":  # a name of the stubs alone
        codes = edge.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING)
        hits = self._shard.search(
            edge.SearchRequest(
                query=edge.Query.Nearest(_numbers(request.get("vector", ""))),
                limit=request.get("limit", 0),
                filter=_filter(request.get("where", {})),
                params=edge.SearchParams(quantization=codes),
                with_payload=False,
            )
        )
        return [(hit.id, hit.score) for hit in hits]


def main(arguments: Sequence[str]) -> int:
    (folder,) = arguments
    with socket.socket(fileno=0) as connection:
        request = _receive(connection)
        if request is None:
            return 0
        try:
            index = _opened(Path(folder), request)
            _send(connection, {})
            while (request := _receive(connection)) is not None:
                try:
                    _send(connection, index.answer(request))
                except _Refused as refused:
                    _send(connection, {"kind": refused.kind, "error": str(refused)})
            index.close()
        except _Refused as refused:
            _send(connection, {"kind": refused.kind, "error": str(refused)})
        except BrokenPipeError:
            return 0
        except OSError as error:
            _send(connection, {"kind": "failed", "error": str(error)})
        except BaseException as error:  # noqa: BLE001 -- a panic of the library is no Exception
            _send(connection, {"kind": "damaged", "error": f"{type(error).__name__}: {error}"[:2_000]})
            os._exit(1)  # a library that has panicked may hang at its end
    return 0


def _opened(folder: Path, request: _Request) -> _Index:
    """Return the index, made if there is none. Raises `_Refused`, or whatever the library raises for a damaged one."""
    _lock(folder / "lock")
    shard, about = folder / "shard", folder / "index.json"
    dimensions = request.get("dimensions", 0)
    expected = {"format": _FORMAT, "dimensions": dimensions, "model": request.get("model", "")}
    if request.get("clear"):
        (folder / "purged").unlink(missing_ok=True)
        about.unlink(missing_ok=True)
        _sync(folder)
        if shard.exists():
            shutil.rmtree(shard)
    if about.exists():
        stored = json.loads(about.read_bytes())
        if stored != expected:
            raise _Refused("mismatch", f"it was made by {stored['model']} with {stored['dimensions']} numbers")
        return _Index(folder, _loaded(shard, dimensions), dimensions)
    if shard.exists():
        raise _Refused("damaged", "it is half written")
    _require_space(folder, 0)
    index = _Index(folder, _created(shard, dimensions), dimensions)
    written = folder / "index.json.new"
    written.write_text(json.dumps(expected), encoding="utf-8")
    written.replace(about)
    _note_purged(folder)
    return index


def _note_purged(folder: Path) -> None:
    (folder / "purged").touch(mode=0o600)
    _sync(folder)


def _sync(folder: Path) -> None:
    """Make sure that what was created, replaced and removed in the folder stays so after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock(path: Path) -> None:
    """Hold the folder until the process ends; its predecessor may still be ending."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise _Refused("in_use", "another process has it open") from None
            time.sleep(0.05)


def _created(path: Path, dimensions: int) -> edge.EdgeShard:
    """Return an empty index. Mapped indexes of the fields open in a third of the time that those in memory take."""
    path.mkdir(mode=0o700)
    shard = edge.EdgeShard.create(str(path), _config(dimensions))
    for name in _KEYWORDS:
        mapped = edge.KeywordIndexParams(memory=edge.Memory.Cached)
        shard.update(edge.UpdateOperation.create_field_index(name, mapped))
    shard.update(edge.UpdateOperation.create_field_index("at", edge.FloatIndexParams(memory=edge.Memory.Cached)))
    return shard


def _config(dimensions: int) -> edge.EdgeConfig:
    """Return the configuration. With these thresholds an optimisation removes every deleted vector.

    There is no log of changes (WAL): it would keep vectors, and a shard whose log was removed ignores new changes.
    """
    return edge.EdgeConfig(
        vectors=edge.EdgeVectorParams(size=dimensions, distance=edge.Distance.Cosine),
        hnsw_config=_NO_GRAPH,
        optimizers=edge.EdgeOptimizersConfig(
            indexing_threshold=_MIN_QUANTIZED_KB, deleted_threshold=0.0, vacuum_min_vector_number=0
        ),
        quantization_config=edge.TurboQuantQuantizationConfig(memory=edge.Memory.Pinned),
        wal_enabled=False,
    )


def _loaded(path: Path, dimensions: int) -> edge.EdgeShard:
    """Return the index, of which each part has answered once."""
    unfinished = path / "temp_segments"  # of an optimisation that was killed: copies of vectors that nothing removes
    if unfinished.exists():
        shutil.rmtree(unfinished)
    shard = edge.EdgeShard.load(str(path), _config(dimensions))
    shard.count(edge.CountRequest(exact=True))
    shard.scroll(edge.ScrollRequest(limit=1, with_payload=True, with_vector=True))
    return shard


def _require_space(folder: Path, more: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < _MIN_FREE_BYTES + more:
        raise _Refused(
            "full", f"{free // 1_048_576} MB are free, and it needs {(_MIN_FREE_BYTES + more) // 1_048_576} MB"
        )


def _used(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def _point(stored: _Stored) -> edge.Point:
    payload = {
        "conversation": stored["conversation"],
        "folder": stored["folder"],
        "kind": stored["kind"],
        "at": stored["at"],
    }
    return edge.Point(stored["id"], _numbers(stored["vector"]), payload)


def _numbers(text: str) -> list[float]:
    numbers = array("f")
    numbers.frombytes(base64.b64decode(text))
    return numbers.tolist()


def _filter(where: dict[str, list[_Condition]]) -> edge.Filter | None:
    if not where:
        return None
    must: list[edge.ConditionType] = [_condition(condition) for condition in where.get("must", [])]
    must_not: list[edge.ConditionType] = [_condition(condition) for condition in where.get("must_not", [])]
    return edge.Filter(must=must, must_not=must_not)


def _condition(condition: _Condition) -> edge.FieldCondition:
    key = condition.get("key", "")
    if (values := condition.get("match")) is not None:
        return edge.FieldCondition(key=key, match=edge.MatchAny(values["any"]))
    times = condition.get("range", {})
    return edge.FieldCondition(key=key, range=edge.RangeFloat(gte=times.get("gte"), lt=times.get("lt")))


def _send(connection: socket.socket, message: dict[str, object]) -> None:
    data = json.dumps(message).encode()
    connection.sendall(struct.pack(">I", len(data)) + data)


def _receive(connection: socket.socket) -> _Request | None:
    """Return the next request; None at the end."""
    head = connection.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        return None
    (size,) = struct.unpack(">I", head)
    data = connection.recv(size, socket.MSG_WAITALL)
    if len(data) < size:
        return None
    return json.loads(data)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
