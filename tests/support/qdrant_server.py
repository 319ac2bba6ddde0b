"""The part of a Qdrant server's REST interface that the engine uses, with exact search; answers as 1.19 does."""

import asyncio
import math
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from operator import mul
from typing import TypedDict

import msgspec
from aiohttp import web

# Of a collection, as a server answers.
_DEFAULTS = {
    "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000},
    "optimizer_config": {"default_segment_number": 0, "flush_interval_sec": 5},
}


class _Condition(msgspec.Struct):
    key: str
    match: dict[str, list[str]] | None = None
    range: dict[str, float] | None = None


class _Filter(msgspec.Struct):
    must: list[_Condition] = []
    must_not: list[_Condition] = []


class _Vectors(msgspec.Struct):
    size: int
    distance: str


class _Create(msgspec.Struct):
    vectors: _Vectors
    metadata: dict[str, str] | None = None


class _Index(msgspec.Struct):
    field_name: str
    field_schema: str


class _Point(msgspec.Struct):
    id: int
    vector: list[float]
    payload: dict[str, str | float]


class _Upsert(msgspec.Struct):
    points: list[_Point]


class _Delete(msgspec.Struct):
    points: list[int]


class _Nearest(msgspec.Struct):
    nearest: list[float]


class _Query(msgspec.Struct):
    query: _Nearest
    limit: int = 10
    filter: _Filter | None = None


class _Scroll(msgspec.Struct):
    offset: int = 0
    limit: int = 10
    with_payload: bool = True
    with_vector: bool = False


class _Collection(TypedDict):
    about: _Create
    indexes: dict[str, str]
    points: dict[int, _Point]


@dataclass
class QdrantServer:
    """`calls` are the methods and paths so far; with `hangs` nothing is answered."""

    url: str
    api_key: str
    collections: dict[str, _Collection] = field(default_factory=dict[str, _Collection])
    calls: list[str] = field(default_factory=list[str])
    hangs: bool = False

    async def answer(self, request: web.Request) -> web.Response:
        self.calls.append(f"{request.method} {request.path}")
        if self.hangs:
            await asyncio.Event().wait()
        if self.api_key and request.headers.get("api-key") != self.api_key:
            return web.Response(status=401, text="Invalid API key or JWT")
        name, _, path = request.match_info["path"].partition("/")
        body = await request.read()
        try:
            return self._collection(request.method, name, body) if not path else self._points(name, path, body)
        except KeyError:
            return _error(404, f"Not found: Collection `{name}` doesn't exist!")
        except (msgspec.ValidationError, msgspec.DecodeError, ValueError) as error:
            return _error(400, f"Format error in JSON body: {error}")

    def _collection(self, method: str, name: str, body: bytes) -> web.Response:
        match method:
            case "GET":
                about = self.collections[name]["about"]
                config = {"params": {"vectors": about.vectors}, "metadata": about.metadata, **_DEFAULTS}
                status = {"status": "green", "optimizer_status": "ok", "segments_count": 1}
                return _result({**status, "payload_schema": {}, "config": config})
            case "PUT":
                if name in self.collections:
                    return _error(409, f"Wrong input: Collection `{name}` already exists!")
                creation = msgspec.json.decode(body, type=_Create)
                self.collections[name] = {"about": creation, "indexes": {}, "points": {}}
            case _:
                return _result(self.collections.pop(name, None) is not None)
        return _result(True)

    def _points(self, name: str, path: str, body: bytes) -> web.Response:
        collection = self.collections[name]
        points = collection["points"]
        match path:
            case "index":
                index = msgspec.json.decode(body, type=_Index)
                collection["indexes"][index.field_name] = index.field_schema
            case "points":
                for point in msgspec.json.decode(body, type=_Upsert).points:
                    size = collection["about"].vectors.size
                    if len(point.vector) != size:
                        raise ValueError(f"Vector dimension error: expected dim: {size}, got {len(point.vector)}")
                    points[point.id] = _Point(point.id, _normal(point.vector), point.payload)
            case "points/delete":
                for number in msgspec.json.decode(body, type=_Delete).points:
                    points.pop(number, None)
            case "points/query":
                query = msgspec.json.decode(body, type=_Query)
                asked = _normal(query.query.nearest)
                scores = ((sum(map(mul, asked, points[i].vector)), i) for i in _matching(points, query.filter))
                best = sorted(scores, reverse=True)[: query.limit]
                return _result({"points": [{"id": i, "version": 0, "score": score} for score, i in best]})
            case "points/scroll":
                page = msgspec.json.decode(body, type=_Scroll)
                numbers = sorted(number for number in points if number >= page.offset)
                following = numbers[page.limit] if len(numbers) > page.limit else None
                listed = [{"id": number} for number in numbers[: page.limit]]
                return _result({"points": listed, "next_page_offset": following})
            case "points/count":
                return _result({"count": len(points)})
            case _:
                return web.Response(status=404)
        return _result({"operation_id": len(self.calls), "status": "completed"})


@asynccontextmanager
async def qdrant_server(api_key: str = "", port: int = 0) -> AsyncGenerator[QdrantServer]:
    server = QdrantServer("", api_key)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/collections/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def _matching(points: dict[int, _Point], conditions: _Filter | None) -> list[int]:
    if conditions is None:
        return list(points)
    return [
        number
        for number, point in points.items()
        if all(_holds(condition, point) for condition in conditions.must)
        and not any(_holds(condition, point) for condition in conditions.must_not)
    ]


def _holds(condition: _Condition, point: _Point) -> bool:
    value = point.payload.get(condition.key)
    if condition.match is not None:
        return value in condition.match["any"]
    times = condition.range or {}
    if not isinstance(value, int | float):
        return False
    return times.get("gte", -math.inf) <= value < times.get("lt", math.inf)


def _normal(vector: Iterable[float]) -> list[float]:
    numbers = list(vector)
    length = math.hypot(*numbers)
    return [number / length for number in numbers]


def _result(value: object) -> web.Response:
    data = msgspec.json.encode({"result": value, "status": "ok", "time": 0.0})
    return web.Response(body=data, content_type="application/json")


def _error(status: int, text: str) -> web.Response:
    data = msgspec.json.encode({"status": {"error": text}, "time": 0.0})
    return web.Response(status=status, body=data, content_type="application/json")
