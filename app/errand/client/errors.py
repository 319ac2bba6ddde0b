"""Errors between a client and the engine."""


class CallError(Exception):
    """The engine refused a call. `str(error)` gives the reason and the remedy; `code` is the engine's error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ConnectionLost(Exception):
    """The engine did not come back in time, or the connection was closed. A sent command may have run."""


class EngineUnreachable(ConnectionLost):
    """The engine did not come back while tasks were watched. `task_id` is one that was at work; None without one."""

    def __init__(self, reason: str, task_id: str | None) -> None:
        super().__init__(reason)
        self.task_id = task_id


class LaunchError(Exception):
    """No connection could be made, for the `reason`; `details` has the engine's last output."""

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(f"{reason} {details}" if details else reason)
        self.reason = reason
        self.details = details


class NoEngine(LaunchError):
    """No engine runs on this data directory."""


class EngineDied(NoEngine):
    """The engine ended without removing its endpoint file: there is no reason to wait for it."""


class NotOurs(NoEngine):
    """An engine seems to run, but other users could have written its endpoint file: nothing is sent to it."""


class SocketFailed(Exception):
    """The socket could not be opened, or is closed; the text has the reason."""
