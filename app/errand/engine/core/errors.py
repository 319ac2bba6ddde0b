"""The engine's error tree: one class for each error that callers handle differently, with its wire code."""

from typing import ClassVar

from errand.protocol.engine import Trouble


class EngineError(Exception):
    """Base class. `str(error)` says what happened and what to do; `code` is the error code on the wire."""

    code: ClassVar[str] = "engine_error"


class InvalidParams(EngineError):
    """The caller's input is wrong; the text names the field."""

    code = "invalid_params"


class NotFound(EngineError):
    code = "not_found"


class IllegalMove(EngineError):
    """The task's status does not allow the requested transition."""

    code = "illegal_move"


class Conflict(EngineError):
    """Another change came first: a head moved, an ask was answered."""

    code = "conflict"


class AgentBusy(EngineError):
    """An agent runs one task at a time."""

    code = "agent_busy"


class Busy(EngineError):
    """A bounded queue is full; the same call may work later."""

    code = "busy"


class StorageError(EngineError):
    """The database cannot be read or written; the text says what was saved."""

    code = "storage_error"


class CannotSave(StorageError):
    """The disk is full, the database locked, damaged or its server away: writes fail until that is fixed.

    Reads still work, unless the server is away.
    """

    code = "cannot_save"

    def __init__(self, text: str, kind: Trouble | None = None) -> None:
        """`kind` is that of a failed attempt, None for what is not even tried."""
        super().__init__(text)
        self.kind: Trouble | None = kind


class EngineRunning(EngineError):
    """Another engine uses this data directory."""

    code = "engine_running"


class UnconfirmedWorkspace(EngineError):
    """A file names the folder to work in, and no user has confirmed it on this machine."""

    code = "unconfirmed_workspace"


class FolderNotAnswering(EngineError):
    """A disk or network drive hangs: the operation timed out."""

    code = "folder_not_answering"

    def __init__(self, folder: str, waited_s: float) -> None:
        state = f"did not answer within {waited_s:g} s" if waited_s else "still does not answer"
        super().__init__(
            f"{folder} {state}: the disk or network drive it is on hangs. Check it and try again, or choose another."
        )


class ConfigurationError(EngineError):
    """A setting, a key or a model id is missing or wrong; the text says where to set it."""

    code = "configuration_error"
