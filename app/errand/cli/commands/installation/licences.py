"""`errand licences`: the libraries that Errand is made of, and their licences."""

import asyncio
from typing import Annotated

from errand.cli.arguments import UsageError
from errand.cli.command import Command
from errand.cli.options import Argument, CommandOptions
from errand.cli.output import CommandOutput
from errand.system.licences import Library, libraries
from errand.system.paths import Paths
from errand.text.translation import marked, tr


class LicencesOptions(CommandOptions, frozen=True, kw_only=True):
    name: Annotated[str, Argument("NAME", "a library, to show the full text of its licence")] = ""


async def _licences(options: LicencesOptions, paths: Paths, output: CommandOutput) -> int:
    all_libraries = await asyncio.to_thread(libraries)
    if options.name:
        library = _named(options.name, all_libraries)
        texts = library.texts or (tr("It has no licence text."),)
        output.result(library, "  ".join(_cells(library)), *(f"\n{text}" for text in texts))
    else:
        output.table(all_libraries, _cells)
        output.line(tr("\nShow the text of one: errand licences NAME"))
    return 0


def _named(name: str, all_libraries: tuple[Library, ...]) -> Library:
    for library in all_libraries:
        if library.name.lower().replace("_", "-") == name.lower().replace("_", "-"):
            return library
    raise UsageError(tr("There is no library {name!r}. List them: errand licences").format(name=name))


def _cells(library: Library) -> tuple[str, str]:
    return f"{library.name} {library.version}".strip(), library.licence or tr("see its text")


LICENCES = Command(LicencesOptions, _licences, json_help=marked("print JSON lines, with the licence texts"))
