"""Vectors on a Qdrant server, by qdrant-client in a process of its own."""

import math
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from errand.engine.core.addresses import check_address, display_address, is_in_the_clear
from errand.engine.core.errors import ConfigurationError, InvalidParams
from errand.engine.core.outgoing import UnusableRoute, proxy_of, tls_context
from errand.engine.memory.vectors.base import (
    VectorsDamaged,
    VectorsError,
    VectorsMismatch,
    VectorsUnavailable,
    VectorsUntrusted,
)
from errand.engine.memory.vectors.process import (
    IDLE_S,
    ProcessVectors,
    StartedProcess,
    StoreAnswer,
    started_process,
)

CALL_S = 10.0
_PACKAGE = "qdrant_client"
_CHILD = Path(__file__).with_name("server_child.py")
# The client gives up first, and says why.
_SPARE_S = 5.0


def _no_file() -> str:
    return ""


class ServerVectors(ProcessVectors):
    """A `VectorStore` in a collection of the server at `url`, which is made if it is missing.

    Needs Qdrant 1.16, which keeps the name of the model with the collection. Raises `ConfigurationError` for an invalid
    URL, and for a key that would travel unencrypted; each call takes at most `call_s`, in whole seconds. `ca_file`
    returns the setting of that name.
    """

    def __init__(
        self,
        url: str,
        dimensions: int,
        model: str,
        *,
        api_key: str = "",
        collection: str = "errand",
        ca_file: Callable[[], str] = _no_file,
        call_s: float = CALL_S,
        idle_s: float = IDLE_S,
    ) -> None:
        _check_url(url, api_key)
        super().__init__(dimensions, model, idle_s, math.ceil(call_s) + _SPARE_S)
        self._url = url.rstrip("/")
        self._api_key = api_key
        self._collection = collection
        self._ca_file = ca_file
        self._client_s = math.ceil(call_s)

    async def start(self) -> StartedProcess:
        if sys.platform == "win32":  # where a process gets no socket as its input
            raise VectorsUnavailable("A Qdrant server is not used on Windows.")
        if find_spec(_PACKAGE) is None:
            raise VectorsUnavailable(
                "The package qdrant-client, which speaks to a Qdrant server, is not installed: install Errand again."
            )
        return await started_process("vectors", str(_CHILD))

    def opening_request(self) -> dict[str, object]:
        try:
            proxy, ca_file = proxy_of(self._url), self._ca_file()
            tls_context(ca_file)
        except UnusableRoute as error:
            raise VectorsUnavailable(f"{self._server_name} cannot be reached: {error}") from error
        return {
            "url": self._url,
            "api_key": self._api_key,
            "proxy": proxy or "",
            "ca_file": ca_file,
            "timeout_s": self._client_s,
            "collection": self._collection,
            "dimensions": self._dimensions,
            "model": self._model,
        }

    def refusal(self, answer: StoreAnswer) -> VectorsError:
        server = self._server_name
        match answer.kind:
            case "mismatch":
                return VectorsMismatch(f"The collection of vectors is of another model: {answer.error}. Rebuild it.")
            case "untrusted":
                return VectorsUntrusted(f"{server} has a collection of this name that Errand did not make.")
            case "gone":
                return VectorsDamaged("The collection of vectors is gone from the server. Rebuild the index.")
            case "key":
                return VectorsUnavailable(f"{server} refuses the key ({answer.error}). Set another in the settings.")
            case "late":
                return VectorsUnavailable(f"{server} did not answer in {self._client_s} s.")
            case "unreachable":
                return VectorsUnavailable(f"{server} cannot be reached: {answer.error}")
            case "other":
                return VectorsUnavailable("The program at the address of the Qdrant server is not Qdrant.")
            case "answered":
                return VectorsUnavailable(f"{server} answered {answer.error}")
            case _:
                return VectorsUnavailable(f"{server} cannot be used: {answer.error}")

    async def has_remains(self) -> bool:
        """Return False: the server removes deleted vectors from its disk when it next cleans up."""
        return False

    @property
    def _server_name(self) -> str:
        return f"The Qdrant server {display_address(self._url)}"


def _check_url(url: str, api_key: str) -> None:
    try:
        check_address(url)
    except InvalidParams as error:
        raise ConfigurationError(f"The address of the Qdrant server: {error}") from error
    if urlsplit(url).scheme not in ("http", "https"):
        raise ConfigurationError("The address of the Qdrant server must begin with http:// or https://.")
    if api_key and is_in_the_clear(url):
        raise ConfigurationError("The key of the Qdrant server would travel unencrypted: use an https address.")
