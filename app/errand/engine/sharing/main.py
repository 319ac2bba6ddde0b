"""`errand share-models`: lets engines on other machines use models with this machine's keys."""

import argparse
import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from importlib.resources import files
from pathlib import Path

from errand.engine.core import resources
from errand.engine.core.addresses import is_loopback
from errand.engine.core.errors import ConfigurationError, EngineError
from errand.engine.core.process_hardening import forbid_dumps
from errand.engine.core.secrets import KeyStore
from errand.engine.core.settings import Settings
from errand.engine.models.catalog.configured import ProviderDirectory
from errand.engine.models.router import ModelRouter
from errand.engine.sharing.server import SharedModelFilter, SharingServer
from errand.engine.sharing.tokens import Tokens
from errand.system import log as logs
from errand.system.paths import Paths, default_paths
from errand.text.argument_parser import Parser
from errand.text.printable import printable, reason

_PORT = 4777


def main(arguments: Sequence[str], keys: Mapping[str, str]) -> int:
    """Serve until a signal; returns 1 with a line on stderr if it cannot start."""
    options = _parser().parse_args(arguments)
    paths = default_paths()
    forbid_dumps()
    resources.raise_limit()
    store = KeyStore(paths.keys, keys)
    try:
        paths.prepare()
        logs.configure(paths, "sharing", store.redactor)
        asyncio.run(_serve(paths, options.host, options.port, options.token_file, options.models, store))
    except (EngineError, OSError) as error:
        sys.stderr.write(f"errand share-models: {printable(str(error))}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="errand share-models", description="Let other machines use the models whose keys are on this one."
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, default=_PORT, help=f"the port (default {_PORT}; 0 for any free one)")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="one token a line, after a name if you like")
    parser.add_argument("--models", default="", metavar="IDS", help="which, such as 'openai/*,ollama/qwen3' (all)")
    return parser


async def _serve(paths: Paths, host: str, port: int, token_file: Path | None, models: str, keys: KeyStore) -> None:
    file = token_file or paths.keys / "share-tokens.txt"
    tokens = Tokens.open(file, keys.redactor)
    end = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(name, end.set)
    async with AsyncExitStack() as stack:
        settings = Settings(paths.settings)
        router = ModelRouter(
            keys,
            Path(str(files("errand.resources") / "tour")),
            settings=lambda: settings.values,
            lists=paths.models,
        )
        stack.push_async_callback(router.close)
        patterns = tuple(pattern.strip() for pattern in models.split(",") if pattern.strip())
        offer = SharedModelFilter(patterns, ProviderDirectory(lambda: settings.values).own)
        listeners = await _bind(host, port)
        server = SharingServer(router, tokens, offer)
        stack.push_async_callback(server.close)
        await server.start(listeners)
        _print_address(listeners[0].getsockname()[1], host, file)
        await end.wait()


async def _bind(host: str, port: int) -> list[socket.socket]:
    """Return a socket on each address of the host."""
    loop = asyncio.get_running_loop()
    try:
        addresses = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return [
            socket.create_server((address[0], port, *address[2:]), family=family)
            for family, address in dict.fromkeys((family, address) for family, _, _, _, address in addresses)
        ]
    except (OSError, OverflowError) as error:
        raise ConfigurationError(f"{host}, port {port}, cannot be used ({reason(error)}). Give another.") from error


def _print_address(port: int, host: str, file: Path) -> None:
    lines = [
        f"Models are shared at http://{_in_url(host)}:{port} with the tokens in {file}.",
        "On the other machine: set the proxy's address in the settings (or ERRAND_PROXY_URL), store a token as the",
        "key of proxy (or ERRAND_PROXY_API_KEY), and use models such as proxy/openai/gpt-5.4. Ctrl+C ends it.",
    ]
    if not is_loopback(host):
        lines.append("It speaks plain HTTP: use it inside a network you trust, a tunnel, or behind a server with TLS.")
    sys.stdout.write(printable("\n".join(lines)) + "\n")
    sys.stdout.flush()
    logging.getLogger(__name__).info("sharing models at %s port %s", host, port)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
