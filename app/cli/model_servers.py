"""`errand models --add-server` and `--remove-server`: model servers of one's own, under names."""

from urllib.parse import urlsplit

import msgspec

from app.cli.options import Options
from app.cli.outcome import EXIT_ERROR
from app.cli.plain import plain, wrapped
from app.cli.run import UsageError, key_of
from app.cli.terminal import Terminal
from app.client.connection import Connection
from app.client.launch import connect
from app.paths import Paths
from app.protocol.models import ModelListParams, ModelServerRemoveParams, ModelServerSaveParams, Provider
from app.protocol.wire import MODEL_LIST, MODEL_SERVER_REMOVE, MODEL_SERVER_SAVE


async def add_server(options: Options, paths: Paths, terminal: Terminal) -> int:
    """Add it, or change the one of that name; 1 where it is saved but gives no list of models now."""
    address = options.add_server or ""
    name = options.name or _host(address)
    key = key_of(options.api_key_env)
    connection = await connect(paths, "errand models")
    try:
        known = _named(await _own(connection), name)
        params = ModelServerSaveParams(
            name=name, address=address, key=key, id=known.name if known is not None else None
        )
        result = await connection.call(MODEL_SERVER_SAVE, params)
        models = (await connection.call(MODEL_LIST, ModelListParams())).models
    finally:
        await connection.close()
    if options.json:
        terminal.line(msgspec.json.encode(result).decode())
        return 0 if result.ok else EXIT_ERROR
    style = terminal.style
    sign = style.green(style.sign("tick")) if result.ok else style.amber(style.sign("warn"))
    terminal.line(f"{sign} {wrapped(plain(f'{name}: {result.text}'), terminal.width - 2)}")
    for model in models:
        if model.provider == result.id:
            terminal.line(f"  {plain(model.id)}")
    return 0 if result.ok else EXIT_ERROR


async def remove_server(options: Options, paths: Paths, terminal: Terminal) -> int:
    """Forget it, with its key."""
    name = options.remove_server or ""
    connection = await connect(paths, "errand models")
    try:
        servers = await _own(connection)
        known = _named(servers, name)
        if known is None:
            names = ", ".join(plain(server.title) for server in servers)
            raise UsageError(f"There is no model server {name!r}. There are: {names or 'none'}.")
        result = await connection.call(MODEL_SERVER_REMOVE, ModelServerRemoveParams(id=known.name))
    finally:
        await connection.close()
    terminal.line(plain(result.text))
    return 0


def _host(address: str) -> str:
    try:
        return urlsplit(address if "://" in address else f"//{address}").hostname or ""
    except ValueError as error:
        raise UsageError(f"{address!r} is not a web address. Write one such as http://127.0.0.1:8000/v1.") from error


async def _own(connection: Connection) -> tuple[Provider, ...]:
    found = await connection.call(MODEL_LIST, ModelListParams())
    return tuple(provider for provider in found.providers if provider.own)


def _named(servers: tuple[Provider, ...], name: str) -> Provider | None:
    """By its name in any case, or its id."""
    wanted = name.casefold()
    return next((one for one in servers if wanted in (one.title.casefold(), one.name)), None)
