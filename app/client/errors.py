"""What can go wrong between a client and the engine."""


class CallError(Exception):
    """The engine refused a call. `str(error)` says why and what to do; `code` is the engine's word for it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ConnectionLost(Exception):
    """The engine is gone and did not come back in time, or the connection was closed. What was asked may be done."""


class LaunchError(Exception):
    """No connection came about; the text holds what the engine said last."""


class NoEngine(LaunchError):
    """No engine runs on this data directory."""


class EngineDied(NoEngine):
    """The engine that ran is gone without having said so: nobody has to wait for it."""


class NotOurs(NoEngine):
    """An engine seems to run, but others could have written what leads to it: nothing is sent there."""


class SocketFailed(Exception):
    """The socket could not be opened, or is closed; the text says which and why."""
