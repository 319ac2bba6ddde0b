"""The state of files that a task changed."""

from errand.client.safe_text import escape_hidden_line
from errand.protocol.changes import ChangedFile
from errand.text.translation import tr, trn

CHANGES_NOT_SEEN = tr(
    "Not listed: changed permissions and links, and folders that programs make again, such as node_modules. "
    "In very large folders, only files that a command names are listed."
)
REDO_PREVIEW = tr("All changes to this file are undone. Redo brings them back as shown.")


def file_state_text(file: ChangedFile) -> str:
    """Return the state of a changed file, and if a command changed it; empty if a tool simply changed it."""
    by_command = tr("by a command") if file.command_steps else ""
    return " · ".join(part for part in (_file_state(file), by_command) if part)


def _file_state(file: ChangedFile) -> str:
    match file.state:
        case "undone":
            return tr("undone")
        case "changed_since":
            return tr("changed since")
        case "not_kept":
            return tr("cannot be undone")
        case "changed":
            undone = len(file.undone_hunks)
            hunks = trn("{n} change undone", "{n} changes undone", undone) if undone else ""
            steps = tr("partly undone") if file.undone_steps else hunks
            return steps or _whole_file_state(file)


def _whole_file_state(file: ChangedFile) -> str:
    if file.is_folder:
        return tr("new folder") if file.is_new else tr("deleted folder") if file.is_deleted else ""
    if file.renamed_from:
        return tr("renamed from {name}").format(name=escape_hidden_line(file.renamed_from))
    if file.renamed_to:
        return tr("renamed to {name}").format(name=escape_hidden_line(file.renamed_to))
    became = tr("new") if file.is_new else tr("deleted") if file.is_deleted else ""
    return ", ".join(part for part in (became, tr("binary") if file.is_binary else "") if part)
