"""The address, API key and timeouts of one provider."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from errand.engine.core.errors import ConfigurationError
from errand.engine.models.catalog.providers import Provider
from errand.engine.models.failures import AttemptFailure, FailureKind, ProviderError
from errand.text.redaction import Redactor

# What may carry a key in place of ours.
_KEY_HEADERS = frozenset(("authorization", "x-api-key", "api-key"))


_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")  # a token of RFC 9110
_OF_A_SECRET = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)
# They belong to the connection and to the form of a request.
_OURS = frozenset(("content-type", "content-length", "host", "connection", "transfer-encoding", "accept"))


def check_headers(headers: Mapping[str, str]) -> None:
    """Check headers. Raises `ConfigurationError` for those that cannot be sent, or that only Errand sets."""
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or name.lower() in _OURS:
            raise ConfigurationError(f"The request header {name[:100]!r} cannot be set: leave it out.")
        if not value.isascii() or not value.isprintable():
            raise ConfigurationError(
                f"The request header {name!r} has characters that no header has, such as a line break."
            )


def secret_values(headers: Mapping[str, str]) -> list[str]:
    """Return the parts of headers that may be keys, which nobody may see: `Bearer` and the like are not keys."""
    return [value.rpartition(" ")[2] for name, value in headers.items() if _OF_A_SECRET.search(name)]


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
    known. `headers` are sent with each request, in place of ours of the same names.
    """

    provider: Provider
    base_url: str
    key: Callable[[], Awaitable[str | None]]
    redactor: Redactor = field(default_factory=Redactor)
    origin: Callable[[], str] = _unknown
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def server(self) -> str:
        """The host and port of the address: what came from there goes back to it alone."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2].lower()

    @property
    def key_help(self) -> str:
        """The place where the key was set, or can be set."""
        if header := self._key_header:
            return f"It is the one in the request header {header}, which a program has set: check it there."
        if origin := self.origin():
            return origin
        if self.provider.own:
            title, name = self.provider.title, self.provider.name
            return f"Check the key of {title}: `errand keys set {name}`, or the settings under Models and keys."
        if not self.provider.key_variables:
            return "Check the settings of that server: it requires a key."
        if not self.provider.needs_key:
            return f"Check the key given with --api-key-env, or {self.provider.key_variables[0]}."
        store = f"store a key with `errand keys set {self.provider.name}`"
        return f"Check the variable {self.provider.key_variables[0]}, or {store}."

    @property
    def _key_header(self) -> str:
        """The name of the given header that carries a key in place of ours; empty without one."""
        return next((name for name in self.headers if name.lower() in _KEY_HEADERS), "")

    async def key_for(self, call_key: str | None) -> str | None:
        """Return the key to send: the one given for this call, else the stored one. Raises `ProviderError` for none."""
        key = call_key or await self.key()
        if key is None and self.provider.needs_key and not self._key_header:
            text = f"There is no key for {self.provider.title}. {self.key_help.replace('Check', 'Set', 1)}"
            raise ProviderError(AttemptFailure(text, "no key", FailureKind.NOT_AUTHORISED))
        if key is not None and (not key.isascii() or not key.isprintable()):
            text = f"The key holds characters that no key has (a line break, perhaps). {self.key_help}"
            raise ProviderError(AttemptFailure(text, "bad key", FailureKind.NOT_AUTHORISED))
        if key is not None:
            self.redactor.add(key)
        return key

    def with_headers(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a request: ours, and those that were given."""
        custom_names = {name.lower() for name in self.headers}
        return {name: value for name, value in own.items() if name.lower() not in custom_names} | dict(self.headers)

    def redacted(self, failure: AttemptFailure) -> AttemptFailure:
        """Return the failure with keys redacted, as it may be stored and shown."""
        return replace(failure, text=self.redactor.hide(failure.text), short=self.redactor.hide(failure.short))
