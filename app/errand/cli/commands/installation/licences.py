"""`errand licences`: the libraries that Errand is made of, and their licences."""

import asyncio
from typing import Annotated

import msgspec

from errand.cli.arguments import UsageError
from errand.cli.command import Command
from errand.cli.options import Argument, CommandOptions, Flag
from errand.cli.terminal.terminal import Terminal
from errand.system.licences import Library, libraries
from errand.system.paths import Paths
from errand.text.translation import tr


class LicencesOptions(CommandOptions, frozen=True, kw_only=True):
    name: Annotated[str, Argument("NAME", "a library, to show the full text of its licence")] = ""
    json: Annotated[bool, Flag("--json", "print JSON lines, with the licence texts")] = False


async def _licences(options: LicencesOptions, paths: Paths, terminal: Terminal) -> int:
    found = await asyncio.to_thread(libraries)
    if options.name:
        found = (_named(options.name, found),)
    if options.json:
        for one in found:
            terminal.line(msgspec.json.encode(one).decode())
    elif options.name:
        (one,) = found
        terminal.line(_line(one, 0))
        for text in one.texts or (tr("It has no licence text."),):
            terminal.line(f"\n{text}")
    else:
        width = max(len(f"{one.name} {one.version}") for one in found)
        for one in found:
            terminal.line(_line(one, width))
        terminal.line(tr("\nShow the text of one: errand licences NAME"))
    return 0


def _named(name: str, found: tuple[Library, ...]) -> Library:
    for one in found:
        if one.name.lower().replace("_", "-") == name.lower().replace("_", "-"):
            return one
    raise UsageError(tr("There is no library {name!r}. List them: errand licences").format(name=name))


def _line(one: Library, width: int) -> str:
    return f"{f'{one.name} {one.version}'.strip():{width}}  {one.licence or tr('see its text')}"


LICENCES = Command(LicencesOptions, _licences)
