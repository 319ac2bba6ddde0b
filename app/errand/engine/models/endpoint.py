"""The address, API key and timeouts of one provider."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from errand.engine.models.catalog.providers import Provider
from errand.engine.models.failures import AttemptFailure, FailureKind, ProviderError
from errand.redaction import Redactor


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds without data that count as a stall: before the first content, and between chunks."""

    first_byte_s: float = 120.0
    between_s: float = 60.0


def _unknown() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """`key` is called for each request.

    `base_url` may be empty if the library knows the address. Everything that the server sends passes the `redactor`,
    which knows each sent key: some servers quote it. `origin` says where the newest key was set, empty if that is not
    known.
    """

    provider: Provider
    base_url: str
    key: Callable[[], Awaitable[str | None]]
    redactor: Redactor = field(default_factory=Redactor)
    origin: Callable[[], str] = _unknown

    @property
    def key_help(self) -> str:
        """Where the key was set, or is to be set."""
        if origin := self.origin():
            return origin
        if self.provider.own:
            return f"Check the key of {self.provider.title} in the settings, under Models and keys."
        if not self.provider.key_variables:
            return "Check the settings of that server: it requires a key."
        if not self.provider.needs_key:
            return f"Check the key given with --api-key-env, or {self.provider.key_variables[0]}."
        return f"Check the variable {self.provider.key_variables[0]}, or store a key in the settings."

    async def key_for(self, given: str | None) -> str | None:
        """The key to send: the one given for this call, else the stored one. Raises `ProviderError` for none."""
        key = given or await self.key()
        if key is None and self.provider.needs_key:
            text = f"There is no key for {self.provider.title}. {self.key_help.replace('Check', 'Set', 1)}"
            raise ProviderError(AttemptFailure(text, "no key", FailureKind.NOT_AUTHORISED))
        if key is not None and (not key.isascii() or not key.isprintable()):
            text = f"The key holds characters that no key has (a line break, perhaps). {self.key_help}"
            raise ProviderError(AttemptFailure(text, "bad key", FailureKind.NOT_AUTHORISED))
        if key is not None:
            self.redactor.add(key)
        return key

    def redacted(self, failure: AttemptFailure) -> AttemptFailure:
        """The failure with keys redacted, as it may be stored and shown."""
        return replace(failure, text=self.redactor.hide(failure.text), short=self.redactor.hide(failure.short))
