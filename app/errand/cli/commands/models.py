"""`errand models`: providers, models and model servers, with advice if there are none.

What runs on this machine is in `local_models.py`.
"""

import asyncio
from typing import Annotated, Literal
from urllib.parse import urlsplit

from errand.cli.arguments import UsageError, read_api_key, wrong_arguments
from errand.cli.command import Command
from errand.cli.commands.local_models import install_local_model, list_local_models, remove_local_model
from errand.cli.exit_codes import EXIT_ERROR, CommandError
from errand.cli.options import Action, Argument, CommandOptions, Flag, Option
from errand.cli.output import CommandOutput
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import plain, wrapped
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.protocol.settings import (
    MODEL_LIST,
    MODEL_SERVER_REMOVE,
    MODEL_SERVER_SAVE,
    MODEL_TEST,
    Model,
    ModelListParams,
    ModelListResult,
    ModelServerRemoveParams,
    ModelServerSaveParams,
    ModelTestParams,
    ModelTestResult,
    Provider,
)
from errand.system.paths import Paths
from errand.text.translation import marked, tr

# Prefix of a model id whose tool calls are written as text; the provider is the same.
_AS_TEXT = "react/"
_SCRIPTED = "scripted"

NO_MODELS_TEXT = tr(
    "No model is set up. Set a key such as OPENAI_API_KEY, ANTHROPIC_API_KEY "
    "or\nGEMINI_API_KEY in your environment, start a local server (Ollama, LM "
    "Studio,\nllama.cpp, vLLM), add your own with errand models --add-server URL,\nrun a model on this machine "
    "(errand models install), or try: errand tour"
)


_ACTIONS = (
    Action("list", "list providers and models (the default)"),
    Action("install", "list the models that this machine can run itself"),
    Action("install NAME", "download a model that runs on this machine; Ctrl+C keeps what has come"),
    Action("installed", "list the models that are on this machine, also those of other programs"),
    Action("remove NAME", "delete a model that was downloaded"),
)


class ModelsOptions(CommandOptions, frozen=True, kw_only=True):
    arguments: Annotated[
        tuple[str, ...], Argument("WHAT", "list (the default), install, installed or remove, and a model")
    ] = ()
    refresh: Annotated[bool, Flag("--refresh", "fetch the model lists of all providers and store them")] = False
    test: Annotated[
        str | None, Option("--test", "test a provider or model, or all that are set up", "NAME", const="")
    ] = None
    add_server: Annotated[
        str | None,
        Option("--add-server", "add a model server, or change the one given by --name", "URL"),
    ] = None
    kind: Annotated[
        Literal["openai_compatible", "anthropic_compatible"],
        Option("--kind", "its API: openai_compatible (the default) or anthropic_compatible", "KIND"),
    ] = "openai_compatible"
    name: Annotated[str, Option("--name", "name of the server (default: its host)", "NAME")] = ""
    api_key_env: Annotated[
        str | None, Option("--api-key-env", "environment variable with its key, which is stored", "VARIABLE")
    ] = None
    remove_server: Annotated[
        str | None, Option("--remove-server", "remove a server that you added, and its key", "NAME")
    ] = None


async def models(options: ModelsOptions, paths: Paths, output: CommandOutput) -> int:
    """List models, test them, or add and remove custom servers."""
    if options.arguments and options.arguments != ("list",):
        return await _local_models(options, paths, output)
    if options.add_server is not None or options.remove_server is not None:
        return await (add_server if options.add_server is not None else remove_server)(options, paths, output)
    work = list_models if options.test is None else test_models
    return await work(options, paths, output)


MODELS = Command(ModelsOptions, models, json_help=marked("print the list as one JSON object"), actions=_ACTIONS)


async def _local_models(options: ModelsOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand models") as connection:
        match options.arguments:
            case ["install" | "installed" as which]:
                await list_local_models(connection, output, installed=which == "installed")
            case ["install", name]:
                return await install_local_model(connection, name, output)
            case ["remove", name]:
                await remove_local_model(connection, name, output)
            case _:
                raise wrong_arguments("models", _ACTIONS, options.arguments)
    return 0


async def list_models(options: ModelsOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand models") as connection:
        listing = await connection.call(MODEL_LIST, ModelListParams(refresh=True, fetch=options.refresh))
    style, width = output.style, output.width
    output.result(
        listing,
        *(*format_ready(listing, style), *format_missing(listing, style, width), ""),
        *(*format_warnings(listing, style, width), *format_models(listing, style)),
    )
    return 0


async def test_models(options: ModelsOptions, paths: Paths, output: CommandOutput) -> int:
    """Send a small real request to one provider or model, or to each ready provider; returns 1 if one failed."""
    async with await connect(paths, "errand models") as connection:
        names = [options.test] if options.test else await _ready_names(connection)
        results = await asyncio.gather(*(connection.call(MODEL_TEST, _test_params(name)) for name in names))
    if not names:
        raise CommandError(NO_MODELS_TEXT)
    for name, result in zip(names, results, strict=True):
        output.result(result, format_test(name, result, output.style))
    return 0 if all(result.ok for result in results) else EXIT_ERROR


def _test_params(name: str) -> ModelTestParams:
    """Return the parameters for a provider's name or a model's id."""
    provider, _, model = name.removeprefix(_AS_TEXT).partition("/")
    return ModelTestParams(provider=provider, model=name if model else None)


async def _ready_names(connection: Connection) -> list[str]:
    listing = await connection.call(MODEL_LIST, ModelListParams(refresh=True))
    with_models = {model.provider for model in listing.models}
    return [provider.name for provider in listing.providers if provider.ready and provider.name in with_models]


def format_test(name: str, result: ModelTestResult, style: Style) -> str:
    sign = style.green(style.sign("tick")) if result.ok else style.red(style.sign("cross"))
    return f"{sign} {plain(result.model or name)}  {plain(result.text)}"


def format_ready(found: ModelListResult, style: Style) -> list[str]:
    """Return the usable providers, one per line, without the scripts of the tour."""
    ready = [provider for provider in found.providers if provider.ready and provider.name != _SCRIPTED]
    return [
        f"{_status(provider, style)} {plain(provider.title)}  {style.join(_source(provider), _list_date(provider))}"
        for provider in ready
    ]


def _status(provider: Provider, style: Style) -> str:
    """Return the sign of a provider: one without a model list may be switched off."""
    return style.amber(style.sign("warn")) if provider.list_error else style.green(style.sign("tick"))


def format_warnings(found: ModelListResult, style: Style, width: int) -> list[str]:
    """Return the providers whose model lists could not be fetched, and those with unencrypted traffic."""
    warnings = [provider.list_error for provider in found.providers if provider.list_error]
    warnings += [
        tr("{title}: the connection to {api_base} is not encrypted.").format(
            title=provider.title, api_base=provider.api_base
        )
        for provider in found.providers
        if provider.ready and provider.in_the_clear
    ]
    return [style.amber(f"{style.sign('warn')} {wrapped(plain(text), width - 2)}") for text in warnings]


def format_missing(found: ModelListResult, style: Style, width: int) -> list[str]:
    """Return the variables that would enable other providers."""
    missing = [provider.key_variable for provider in found.providers if not provider.ready and provider.key_variable]
    text = wrapped(tr("not set: {names}").format(names=", ".join(missing)), width) if missing else ""
    return [style.dim(line) for line in text.splitlines()]


def format_models(found: ModelListResult, style: Style) -> list[str]:
    if found.default is None:
        return [*NO_MODELS_TEXT.splitlines()]
    names = {provider.name for provider in found.providers if provider.ready}
    rows = [_row(model, style) for model in found.models if model.shown and model.provider in names]
    prices = (
        [style.dim(tr("  prices in US dollars per million tokens, input / output"))]
        if any("$" in row for row in rows)
        else []
    )
    return [*rows, *prices, tr("default: {default}").format(default=style.bold(plain(found.default)))]


def _source(provider: Provider) -> str:
    if provider.loading:
        return tr("at {api_base}, is loading its model").format(api_base=plain(provider.api_base))
    if provider.local:
        return tr("answers at {api_base}").format(api_base=plain(provider.api_base))
    if provider.own:
        key = {"keyring": tr(", key in the keyring"), "file": tr(", key in Errand's encrypted file")}
        return tr("at {api_base}{key_source}").format(
            api_base=plain(provider.api_base), key_source=key.get(provider.key_source, "")
        )
    where = {
        "environment": tr("key in {key_variable}").format(key_variable=provider.key_variable),
        "keyring": tr("key in the keyring"),
        "file": tr("key in Errand's encrypted file"),
        "none": tr("no key"),
        "not_needed": tr("needs no key"),
    }
    return where[provider.key_source]


def _list_date(provider: Provider) -> str:
    return (
        tr("model list from {time:%Y-%m-%d}").format(time=provider.listed_at.astimezone()) if provider.listed_at else ""
    )


def _row(model: Model, style: Style) -> str:
    size = tr("{context_tokens:,} tokens").format(context_tokens=model.context_tokens) if model.context_tokens else ""
    price = ""
    if model.input_price is not None and model.output_price is not None:
        price = f"${model.input_price:g} / ${model.output_price:g}"
    can = [
        word for word, has in (("tools", model.tools), ("images", model.images), ("thinking", model.thinking)) if has
    ]
    state = "" if model.loaded is None else tr("loaded") if model.loaded else tr("not loaded")
    return f"  {plain(model.id):<44} {style.dim(style.join(size, price, ' '.join(can), state))}".rstrip()


async def add_server(options: ModelsOptions, paths: Paths, output: CommandOutput) -> int:
    """Add a server, or change the one with that name; returns 1 if it is saved but gives no model list."""
    address = options.add_server or ""
    name = options.name or _host(address)
    key = read_api_key(options.api_key_env)
    async with await connect(paths, "errand models") as connection:
        server = _find_server(await _custom_servers(connection), name)
        params = ModelServerSaveParams(
            name=name,
            address=address,
            key=key,
            id=server.name if server is not None else None,
            kind=options.kind,
        )
        result = await connection.call(MODEL_SERVER_SAVE, params)
        models = (await connection.call(MODEL_LIST, ModelListParams())).models
    style = output.style
    sign = style.green(style.sign("tick")) if result.ok else style.amber(style.sign("warn"))
    text = f"{sign} {wrapped(plain(f'{name}: {result.text}'), output.width - 2)}"
    output.result(result, text, *(f"  {plain(model.id)}" for model in models if model.provider == result.id))
    return 0 if result.ok else EXIT_ERROR


async def remove_server(options: ModelsOptions, paths: Paths, output: CommandOutput) -> int:
    """Remove the server and its key."""
    name = options.remove_server or ""
    async with await connect(paths, "errand models") as connection:
        servers = await _custom_servers(connection)
        server = _find_server(servers, name)
        if server is None:
            names = ", ".join(plain(server.title) for server in servers)
            raise UsageError(
                tr("There is no model server {name!r}. There are: {names}.").format(name=name, names=names or "none")
            )
        result = await connection.call(MODEL_SERVER_REMOVE, ModelServerRemoveParams(id=server.name))
    output.result(result, plain(result.text))
    return 0


def _host(address: str) -> str:
    try:
        return urlsplit(address if "://" in address else f"//{address}").hostname or ""
    except ValueError as error:
        raise UsageError(
            tr("{address!r} is not a web address. Use one such as http://127.0.0.1:8000/v1.").format(address=address)
        ) from error


async def _custom_servers(connection: Connection) -> tuple[Provider, ...]:
    listing = await connection.call(MODEL_LIST, ModelListParams())
    return tuple(provider for provider in listing.providers if provider.own)


def _find_server(servers: tuple[Provider, ...], name: str) -> Provider | None:
    """Return the server with this name, ignoring case, or id."""
    return next((server for server in servers if name.casefold() in (server.title.casefold(), server.name)), None)
