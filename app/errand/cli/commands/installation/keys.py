"""`errand keys`: where the key of each provider comes from; storing and removing keys, which are never shown."""

import sys
from collections.abc import Sequence
from typing import Annotated

from errand.cli.arguments import UsageError, wrong_arguments
from errand.cli.command import Command
from errand.cli.exit_codes import EXIT_STOPPED, CommandError
from errand.cli.options import Action, Argument, CommandOptions
from errand.cli.output import CommandOutput
from errand.cli.parser import did_you_mean
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import plain, wrapped
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.protocol.settings import KEY_SET, MODEL_LIST, KeySetParams, ModelListParams, Provider
from errand.system.paths import Paths
from errand.text.translation import tr

_ACTIONS = (
    Action("list", "show where the key of each provider comes from (the default)"),
    Action(
        "set PROVIDER", "store the key of a provider; it is asked for, or read from standard input", first="provider"
    ),
    Action("remove PROVIDER", "remove the stored key; environment variables are not changed", first="provider"),
)
_EPILOG = tr(
    "Keys are never given as arguments, which other programs can read. They are stored in "
    "the system keyring, or in an encrypted file if there is none. A key in an "
    "environment variable takes precedence. Keys of MCP servers: errand mcp set-key."
)
_MAX_KEY_LENGTH = 10_000
# Takes a key, but has no models: the server of the setting vector_server.
_WITHOUT_MODELS = ("qdrant",)


class KeysOptions(CommandOptions, frozen=True, kw_only=True):
    arguments: Annotated[tuple[str, ...], Argument("WHAT", "list (the default), set or remove, and the provider")] = ()


async def keys(options: KeysOptions, paths: Paths, output: CommandOutput) -> int:
    match options.arguments:
        case ["set", _, _, *_]:
            raise UsageError(
                tr(
                    "Do not give a key as an argument: the process list and your shell history would show "
                    "it. Type it when asked, or: errand keys set {words} < FILE"
                ).format(words=options.arguments[1])
            )
        case _:
            pass
    async with await connect(paths, "errand keys") as connection:
        providers = (await connection.call(MODEL_LIST, ModelListParams())).providers
        match options.arguments or ("list",):
            case ["list"]:
                _list(providers, output)
            case ["set", name]:
                await _set(connection, _named(providers, name), output)
            case ["remove", name]:
                await _remove(connection, _named(providers, name), output)
            case _:
                raise wrong_arguments("keys", _ACTIONS, options.arguments)
    return 0


KEYS = Command(KeysOptions, keys, epilog=_EPILOG, actions=_ACTIONS)


def _list(providers: Sequence[Provider], output: CommandOutput) -> None:
    """Print the providers with a key; for a program all of them."""
    takes_key = [provider for provider in providers if provider.key_source != "not_needed" and not provider.local]
    with_key = [provider for provider in takes_key if provider.key_source != "none"]
    output.each(
        providers if output.as_json else with_key,
        lambda provider: [key_line(provider, output.style)],
        empty=tr("No keys yet. Store one: errand keys set PROVIDER"),
    )
    without = [provider.name for provider in takes_key if provider.key_source == "none"]
    if without:
        output.line(
            output.style.dim(wrapped(tr("without a key: {names}").format(names=", ".join(without)), output.width))
        )


def key_line(provider: Provider, style: Style) -> str:
    """Return a line with the provider's name, its title and the source of its key."""
    where = {
        "environment": tr("from the variable {key_variable}").format(key_variable=provider.key_variable),
        "keyring": tr("in the system keyring"),
        "file": tr("in Errand's encrypted file"),
    }
    source = where.get(provider.key_source, provider.key_source)
    return f"{style.bold(f'{plain(provider.name):<20}')} {style.join(plain(source), plain(provider.title))}"


def _named(providers: Sequence[Provider], name: str) -> Provider | str:
    """Return the provider, or the name of a service without models that takes a key."""
    folded = name.casefold()
    for provider in providers:
        if folded in (provider.name.casefold(), provider.title.casefold()):
            return provider
    if folded in _WITHOUT_MODELS:
        return folded
    near = did_you_mean(folded, [provider.name for provider in providers])
    raise UsageError(tr("There is no provider {name!r}.{near} List them: errand keys").format(name=name, near=near))


def _name_of(provider: Provider | str) -> str:
    return provider if isinstance(provider, str) else provider.name


async def _set(connection: Connection, provider: Provider | str, output: CommandOutput) -> None:
    name = _name_of(provider)
    if output.interactive:
        try:
            key = await output.terminal.ask(
                tr("API key for {name} (not shown): ").format(name=plain(name)), hidden=True
            )
        except (EOFError, KeyboardInterrupt):
            raise CommandError(tr("Nothing was stored."), EXIT_STOPPED) from None
    else:
        key = sys.stdin.buffer.read(_MAX_KEY_LENGTH + 1).decode("utf-8", "replace")
    if not key.strip():
        raise UsageError(tr("No key was given, so nothing was stored."))
    if len(key) > _MAX_KEY_LENGTH:
        raise UsageError(tr("That is too long for a key; nothing was stored."))
    result = await connection.call(KEY_SET, KeySetParams(provider=name, key=key.strip()))
    output.result(result, plain(result.notice))
    if isinstance(provider, Provider) and provider.key_source == "environment":
        text = tr("errand: {key_variable} is set in your environment and takes precedence over the stored key.")
        output.note(text.format(key_variable=provider.key_variable))


async def _remove(connection: Connection, provider: Provider | str, output: CommandOutput) -> None:
    result = await connection.call(KEY_SET, KeySetParams(provider=_name_of(provider), key=""))
    if isinstance(provider, Provider) and provider.key_source == "none":
        output.result(result, tr("There was no stored key for {name}.").format(name=plain(provider.name)))
        return
    output.result(result, plain(result.notice))
    if isinstance(provider, Provider) and provider.key_source == "environment":
        output.note(
            tr("errand: the key in {key_variable} stays in use until the engine ends.").format(
                key_variable=provider.key_variable
            )
        )
