"""A stand-in for llama.cpp's server: the same options and answers, without a model. Run as a program.

Beside the usual options: `--gate FILE` lets replies wait until the file exists, `--log FILE` gets a line for each
start. A model file with the word BROKEN cannot be loaded; one with AMX ends it by SIGSEGV, unless `--no-repack` is
given.
"""

import argparse
import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_LOOK_S = 0.01


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("-m", "--alias", "--host", "-np", "-c", "-t", "-ngl", "--gate", "--log"):
        parser.add_argument(name, default="")
    parser.add_argument("--port", type=int)
    parser.add_argument("--jinja", action="store_true")
    parser.add_argument("--no-repack", action="store_true")
    return parser.parse_args()


def main() -> None:
    options = _options()
    weights = Path(options.m).read_bytes()
    if b"BROKEN" in weights:
        sys.stderr.write("loading\nllama_model_load: error loading model: tensor data is missing\n")
        sys.exit(1)
    if options.log:
        with Path(options.log).open("a") as file:
            file.write(json.dumps({"pid": os.getpid(), "alias": options.alias, "context": options.c}) + "\n")
    if b"AMX" in weights and not options.no_repack:
        os.kill(os.getpid(), signal.SIGSEGV)
    looks = 0

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            nonlocal looks
            looks += 1
            self.send_response(503 if looks == 1 else 200)
            self.end_headers()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Authorization") != f"Bearer {os.environ['LLAMA_API_KEY']}":
                self.send_response(401)
                self.end_headers()
                return
            while options.gate and not Path(options.gate).exists():
                time.sleep(_LOOK_S)  # a file of another process sets no event
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            delta = {"role": "assistant", "content": f"I am {options.alias}."}
            chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]}
            usage = '{"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}}'
            for data in (json.dumps(chunk), usage, "[DONE]"):
                self.wfile.write(f"data: {data}\n\n".encode())

    ThreadingHTTPServer((options.host, options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
