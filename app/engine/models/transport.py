"""What went wrong on the way to a server and back, in words; what the server itself says is `refusals.py`'s."""

import ssl

import aiohttp

from app.engine.errors import ConfigurationError
from app.engine.models.catalog import Provider
from app.engine.models.failure import Failure, Refused, cut, stalled
from app.engine.models.sse import LineTooLong
from app.engine.models.watch import Stalled


def failure_of(error: Exception, provider: Provider, base_url: str) -> Failure:
    """The failure of a request to `base_url`, whatever raised it."""
    match error:
        case Refused():
            return error.failure
        case ConfigurationError():
            return Failure(str(error), "key not readable", may_pass=False)
        case aiohttp.InvalidURL():
            return Failure(f"{base_url} is not a web address. Check the API base.", "bad address", may_pass=False)
        case ssl.SSLError() | aiohttp.ClientSSLError():
            text = f"No secure connection to {base_url}: {error}. Check the API base and the certificates."
            return Failure(text, "no secure connection", may_pass=False)
        case aiohttp.ClientConnectorError():
            hint = provider.start_hint or "check the network and the API base"
            return Failure(f"Cannot reach {provider.title} at {base_url}: {hint}.", "cannot connect", may_pass=True)
        case Stalled():
            return stalled(provider.title, error.limit_s)
        case LineTooLong():
            return Failure(f"{provider.title} sent an endless line.", "unreadable reply", may_pass=False)
        case _:
            return cut(provider.title)
