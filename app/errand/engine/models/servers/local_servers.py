"""The models in files of this machine, as the router knows them: `engine/local_models` runs them."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from errand.engine.models.servers.served_models import ServerAddress, ServerStatus


class LocalModelFailed(Exception):
    """The model cannot run. `str(error)` says why, `advice` what to do."""

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(problem)
        self.advice = advice


class LocalModelServers(Protocol):
    """The models in files of this machine. Names are those behind `local/`."""

    async def names(self) -> tuple[str, ...]:
        """Return the models that can run, the one to prefer first."""
        ...

    async def status(self, name: str) -> ServerStatus | None:
        """Return what there is to know of the model, before a request for it; None for one that is not there.

        Begins to load it if no other model is in use.
        """
        ...

    def known_status(self, name: str) -> ServerStatus | None:
        """Return the same as when it was looked last."""
        ...

    def context_tokens(self, name: str) -> int | None:
        """Return the context window that the model gets or has; None for one that is not there."""
        ...

    def serve(self, name: str) -> AbstractAsyncContextManager[ServerAddress]:
        """Start the model's server if need be, and keep it for the block. Raises `LocalModelFailed`."""
        ...

    def note_speed(self, name: str, tokens_per_second: float) -> None: ...


class NoLocalModels:
    """The models of an engine that runs none."""

    async def names(self) -> tuple[str, ...]:
        return ()

    async def status(self, name: str) -> ServerStatus | None:
        return None

    def known_status(self, name: str) -> ServerStatus | None:
        return None

    def context_tokens(self, name: str) -> int | None:
        return None

    def serve(self, name: str) -> AbstractAsyncContextManager[ServerAddress]:
        raise LocalModelFailed("This engine runs no models itself.", "Choose a model of another provider.")

    def note_speed(self, name: str, tokens_per_second: float) -> None:
        pass


NO_LOCAL_MODELS = NoLocalModels()
