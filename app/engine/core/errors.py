"""The engine's error tree: one class for each thing a caller would treat differently, with its wire code."""

from typing import ClassVar


class EngineError(Exception):
    """Root of the tree. `str(error)` says what happened and what to do; `code` is what the wire carries."""

    code: ClassVar[str] = "engine_error"


class InvalidParams(EngineError):
    """The caller's input is wrong; the text names the field."""

    code = "invalid_params"


class NotFound(EngineError):
    code = "not_found"


class IllegalMove(EngineError):
    """A task cannot go from its status to the one asked for."""

    code = "illegal_move"


class Conflict(EngineError):
    """Somebody else was first: a head moved, an ask was answered."""

    code = "conflict"


class AgentBusy(EngineError):
    """An agent runs one task at a time."""

    code = "agent_busy"


class Busy(EngineError):
    """A bounded queue is full; the same call may work later."""

    code = "busy"


class StorageError(EngineError):
    """The database cannot be read or written; the text says what was kept."""

    code = "storage_error"


class CannotSave(StorageError):
    """The disk is full, the file is locked or damaged: nothing can be saved until that is mended. Reading goes on."""

    code = "cannot_save"


class EngineRunning(EngineError):
    """Another engine has this data directory."""

    code = "engine_running"


class UnconfirmedWorkspace(EngineError):
    """A file names the folder to work in, and no person has confirmed it on this machine."""

    code = "unconfirmed_workspace"


class FolderNotAnswering(EngineError):
    """A disk or network drive hangs: what was wanted of it is given up."""

    code = "folder_not_answering"

    def __init__(self, folder: str, waited_s: float) -> None:
        said = f"did not answer within {waited_s:g} s" if waited_s else "still does not answer"
        super().__init__(
            f"{folder} {said}: the disk or network drive it is on hangs. Check it and try again, or choose another."
        )


class ConfigurationError(EngineError):
    """A setting, a key or a model id is missing or wrong; the text says where to set it."""

    code = "configuration_error"
