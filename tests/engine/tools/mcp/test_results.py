"""What servers send as results, in the protocol's form and in others: nothing of it is lost."""

import base64
from pathlib import Path

import pytest

from errand.engine.core.messages import Image
from errand.engine.tools.mcp.messages import Answer, RpcFailure, messages_in
from errand.engine.tools.mcp.results import ContentReader, result_of
from errand.protocol.base import JsonObject, JsonValue
from tests.support.loop_parts import text_of

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256))).decode()


def answered(result: JsonValue) -> JsonObject:
    (message,) = messages_in({"jsonrpc": "2.0", "id": "1", "result": result})
    assert isinstance(message, Answer) and message.id == 1 and isinstance(message.outcome, dict)
    return message.outcome


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"content": [{"type": "text", "text": "hello"}]}, "hello"),
        ({"content": "hello"}, "hello"),
        ("hello", "hello"),
        ({"content": {"type": "text", "text": "hello"}}, "hello"),
        ({"content": ["hello", None, "you"]}, "hello\nyou"),
        ({"content": [{"text": "hello"}]}, "hello"),
        ({"content": [{"type": "text", "text": 3.5}]}, "3.5"),
        ({"content": 42}, "42"),
        (42, "42"),
        ([1, 2], "1\n2"),
        ({"content": {"city": "Rome"}}, '{\n "city": "Rome"\n}'),
        ({"content": [], "structuredContent": [1]}, "[\n 1\n]"),
        ({"structuredContent": {"sum": 3}}, '{\n "sum": 3\n}'),
        ({"toolResult": {"sum": 3}}, '{\n "toolResult": {\n  "sum": 3\n }\n}'),
        ({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "hello"}}]}, "[a:b]\nhello"),
        ({"content": None}, "(no output)"),
        (None, "(no output)"),
    ],
)
def test_a_result_in_any_form_becomes_its_text(tmp_path: Path, result: JsonValue, text: str) -> None:
    assert text_of(result_of(answered(result), ContentReader(tmp_path, "call_1"))) == text


@pytest.mark.parametrize(
    "data",
    [
        PNG,
        "\r\n".join(PNG[at : at + 76] for at in range(0, len(PNG), 76)),
        PNG.rstrip("="),
        PNG.translate(str.maketrans("+/", "-_")),
        f"data:image/png;base64,{PNG}",
        f" {PNG}\n",
    ],
)
def test_a_picture_in_any_form_of_base64_is_displayed(tmp_path: Path, data: str) -> None:
    content: JsonObject = {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}
    (picture,) = result_of(content, ContentReader(tmp_path, "call_1")).content
    assert isinstance(picture, Image) and picture.data == PNG


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        ({"code": -1, "message": "no"}, RpcFailure("no", -1)),
        ("no", RpcFailure("no")),
        ({"code": "E1", "message": {"a": 1}}, RpcFailure('{"a":1}')),
        ({"code": 1e300}, RpcFailure("an error without a text")),
    ],
)
def test_an_error_in_any_form_is_an_error(error: JsonValue, failure: RpcFailure) -> None:
    assert list(messages_in([{"id": 7.0, "result": None, "error": error}])) == [Answer(7, failure)]


def test_an_error_that_is_null_leaves_the_result() -> None:
    assert list(messages_in({"id": "7", "result": {"a": 1}, "error": None})) == [Answer(7, {"a": 1})]
