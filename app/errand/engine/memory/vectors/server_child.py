"""The process that speaks to a Qdrant server. The only user of qdrant_client.

The library takes a second and 130 MB to import, and its calls block: the engine never loads it.

Standard input is a socket with length-prefixed JSON both ways, answered in order; vectors are float32 in base64. The
first message says what to open; `{}` goes out once it is open, and a refusal as `{"kind": …, "error": …}`. It ends with
the socket, and imports nothing else of the app.
"""

import base64
import json
import os
import socket
import ssl
import struct
import sys
import warnings
from array import array
from collections.abc import Mapping, Sequence
from typing import TypedDict
from urllib.parse import urlsplit

import httpx
from pydantic import ValidationError
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

_KEYWORDS = ("conversation", "folder", "kind")
_MAX_ERROR_LENGTH = 300


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
    url: str
    folder: str
    api_key: str
    ca_file: str
    proxy: str
    timeout_s: float
    collection: str
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


class _Collection:
    """The collection, made when it is used and missing; one that somebody deleted meanwhile is made by the next call.

    Raises `_Refused`, and whatever the library raises.
    """

    def __init__(self, client: QdrantClient, about: _Request) -> None:
        self._client = client
        self._name = about.get("collection", "")
        self._size = about.get("dimensions", 0)
        self._model = about.get("model", "")
        self._is_open = False

    def open(self, *, clear: bool) -> None:
        existing = self._existing()
        if existing is not None and clear:
            self._client.delete_collection(self._name)
            existing = None
        if existing is None:
            vectors = models.VectorParams(size=self._size, distance=models.Distance.COSINE)
            self._client.create_collection(self._name, vectors_config=vectors, metadata={"model": self._model})
        elif existing != (self._model, self._size, models.Distance.COSINE):
            raise _Refused("mismatch", f"{existing[0]} with {existing[1]} numbers")
        for name in _KEYWORDS:  # those that exist are left alone
            self._client.create_payload_index(self._name, name, models.PayloadSchemaType.KEYWORD, wait=True)
        self._client.create_payload_index(self._name, "at", models.PayloadSchemaType.FLOAT, wait=True)
        self._is_open = True

    def answer(self, request: _Request) -> dict[str, object]:
        if not self._is_open:
            self.open(clear=False)
        try:
            return self._answer(request)
        except UnexpectedResponse as error:
            if error.status_code == 404:
                self._is_open = False
                raise _Refused("gone", "") from error
            raise

    def _existing(self) -> tuple[str, int, models.Distance] | None:
        """Return model, size and distance of the collection; None if there is none. It may belong to others."""
        try:
            config = self._client.get_collection(self._name).config
        except UnexpectedResponse as error:
            if error.status_code == 404:
                return None
            raise
        except ValueError as error:
            if "not found" in str(error):  # in a folder
                return None
            raise
        model = (config.metadata or {}).get("model", "")
        if not model or not isinstance(config.params.vectors, models.VectorParams):
            raise _Refused("untrusted", "")
        return str(model), config.params.vectors.size, config.params.vectors.distance

    def _answer(self, request: _Request) -> dict[str, object]:
        match request.get("op"):
            case "search":
                page = self._client.query_points(
                    self._name,
                    query=_numbers(request.get("vector", "")),
                    limit=request.get("limit", 0),
                    query_filter=_filter(request.get("where", {})),
                    with_payload=False,
                )
                return {"hits": [(point.id, point.score) for point in page.points]}
            case "upsert":
                self._client.upsert(self._name, [_point(stored) for stored in request.get("points", [])], wait=True)
            case "delete":
                selector = models.PointIdsList(points=[*request.get("ids", [])])
                self._client.delete(self._name, selector, wait=True)
            case "ids":
                records, following = self._client.scroll(
                    self._name,
                    offset=request.get("start"),
                    limit=request.get("limit", 0),
                    with_payload=False,
                    with_vectors=False,
                )
                return {"ids": [record.id for record in records], "following": following}
            case "count" | "optimise" | "flush" | "purge":  # the server optimises by itself
                return {"count": self._client.count(self._name, exact=True).count}
            case unknown:
                raise ValueError(f"there is no operation {unknown}")
        return {}


def main() -> int:
    warnings.simplefilter("ignore")  # standard error is for crashes
    with socket.socket(fileno=0) as connection:
        about = _receive(connection)
        if about is None:
            return 0
        client = _client(about)
        collection = _Collection(client, about)
        is_opened = False
        request: _Request | None = about
        while request is not None:
            try:
                if is_opened:
                    answer = collection.answer(request)
                else:
                    collection.open(clear=about.get("clear", False))
                    answer = {}
                is_opened = True
            except Exception as error:  # noqa: BLE001 -- whatever the library raises is told to the engine
                answer = _refusal(error)
            try:
                _send(connection, answer)
            except BrokenPipeError:
                break
            request = _receive(connection)
        client.close()
    return 0


def _client(about: _Request) -> QdrantClient:
    """Return the client of the server, or of a folder: the library's local mode, in which tests run its own code."""
    if folder := about.get("folder"):
        return QdrantClient(path=folder)
    url, timeout_s = about.get("url", ""), about.get("timeout_s", 10.0)
    tls = ssl.create_default_context()
    if ca_file := about.get("ca_file"):
        tls.load_verify_locations(ca_file)
    return QdrantClient(
        url=url,
        port=urlsplit(url).port or (443 if urlsplit(url).scheme == "https" else 80),
        api_key=about.get("api_key") or None,
        timeout=max(1, round(timeout_s)),
        check_compatibility=False,
        verify=tls,
        proxy=about.get("proxy") or None,
        trust_env=False,
        follow_redirects=False,
    )


def _refusal(error: Exception) -> dict[str, object]:
    match error:
        case _Refused():
            return {"kind": error.kind, "error": str(error)}
        case UnexpectedResponse() if error.status_code in (401, 403):
            return {"kind": "key", "error": f"HTTP {error.status_code}"}
        case UnexpectedResponse():
            content = error.content.decode(errors="replace")[:_MAX_ERROR_LENGTH]
            return {"kind": "answered", "error": f"HTTP {error.status_code}: {content}"}
        case ResponseHandlingException(source=httpx.TimeoutException()):
            return {"kind": "late", "error": ""}
        case ResponseHandlingException(source=httpx.HTTPError() | OSError() as source):
            return {"kind": "unreachable", "error": str(source)[:_MAX_ERROR_LENGTH]}
        case ResponseHandlingException() | ValidationError() | json.JSONDecodeError():
            return {"kind": "other", "error": ""}
        case _:
            return {"kind": "failed", "error": f"{type(error).__name__}: {error}"[:_MAX_ERROR_LENGTH]}


def _point(stored: _Stored) -> models.PointStruct:
    payload = {name: stored[name] for name in (*_KEYWORDS, "at")}
    return models.PointStruct(id=stored["id"], vector=_numbers(stored["vector"]), payload=payload)


def _numbers(text: str) -> list[float]:
    numbers = array("f")
    numbers.frombytes(base64.b64decode(text))
    return numbers.tolist()


def _filter(where: Mapping[str, Sequence[_Condition]]) -> models.Filter | None:
    if not where:
        return None
    must, must_not = ([_condition(condition) for condition in where.get(name, ())] for name in ("must", "must_not"))
    return models.Filter(must=[*must] or None, must_not=[*must_not] or None)


def _condition(condition: _Condition) -> models.FieldCondition:
    key = condition.get("key", "")
    if (values := condition.get("match")) is not None:
        return models.FieldCondition(key=key, match=models.MatchAny(any=values["any"]))
    times = condition.get("range", {})
    return models.FieldCondition(key=key, range=models.Range(gte=times.get("gte"), lt=times.get("lt")))


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
    code = main()
    sys.stdout.flush()
    os._exit(code)  # a client of gRPC may hang at its end
