"""`errand memory folders`: which folders share what memory has of them."""

from errand.cli.arguments import UsageError, workspace_path
from errand.cli.output import CommandOutput
from errand.client.connection import Connection
from errand.client.texts.recall import folder_text
from errand.protocol.memory import (
    MEMORY_FOLDERS,
    MEMORY_SHARE,
    MemoryFoldersParams,
    MemoryShareParams,
    SharedFolders,
    ShareMode,
)
from errand.protocol.settings import SETTINGS_SET, SettingsSetParams
from errand.text.translation import tr

_MODES: dict[ShareMode, str] = {
    "ask": tr("Other folders: you are asked once for each pair of folders."),
    "share": tr("Other folders: all share what memory has of them."),
    "apart": tr("Other folders: all are kept apart."),
}


async def folders(connection: Connection, words: list[str], output: CommandOutput) -> None:
    """List the decisions, or change them. Raises `UsageError`."""
    match words:
        case []:
            pass
        case ["share" | "apart" as choice, first, second]:
            params = MemoryShareParams(choice=choice, folder=workspace_path(first), other=workspace_path(second))
            await connection.call(MEMORY_SHARE, params)
        case ["ask" | "share" | "apart" as mode]:
            await connection.call(SETTINGS_SET, SettingsSetParams(name="other_folders", value=mode))
        case _:
            raise UsageError(
                tr("errand memory folders; folders share A B; folders apart A B; folders ask, share or apart for all")
            )
    result = await connection.call(MEMORY_FOLDERS, MemoryFoldersParams())
    output.result(result, _MODES[result.mode], *map(_line, result.pairs))


def _line(pair: SharedFolders) -> str:
    text = tr("{first} and {second}: shared") if pair.shares else tr("{first} and {second}: kept apart")
    return text.format(first=folder_text(pair.first), second=folder_text(pair.second))
