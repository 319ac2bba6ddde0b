"""What servers that people run say of their models, and the windows that refusals named: by address and name.

Two servers may serve a model of one name under one provider.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from errand.engine.models.catalog.learned_windows import LearnedWindows
from errand.engine.models.catalog.providers import asked_address

if TYPE_CHECKING:
    from errand.engine.models.catalog.model_facts import ModelFacts


class ServedFacts:
    """The answers of one engine's servers. Names are model ids without the prefixes of `providers.bare_id`.

    Where no address is given, the last answer of any server counts. `windows` is the file of learned windows.
    """

    def __init__(self, windows: Path | None = None) -> None:
        self._facts: dict[tuple[str, str], ModelFacts] = {}
        self._newest_address: dict[str, str] = {}
        self._windows = LearnedWindows(windows)

    def register(self, facts: Mapping[str, "ModelFacts"], address: str) -> None:
        """Keep what the server at this address says of models, in place of what it said before."""
        address = asked_address(address)
        for name, model in facts.items():
            self._facts[address, name] = model
            self._newest_address[name] = address
            self._windows.check(name, address, model.context_tokens)

    def learn_window(self, name: str, tokens: int, address: str) -> None:
        """Keep the window that the server at this address named when it refused a longer request."""
        address = asked_address(address)
        stated = self._facts.get((address, name))
        self._newest_address.setdefault(name, address)
        self._windows.learn(name, tokens, address, stated.context_tokens if stated is not None else None)

    def find(self, name: str, address: str | None) -> "ModelFacts | None":
        return self._facts.get((self._address_of(name, address), name))

    def learned_window(self, name: str, address: str | None) -> int | None:
        return self._windows.tokens(name, self._address_of(name, address))

    def with_learned_window(self, name: str, address: str | None, described: "ModelFacts") -> "ModelFacts":
        window = self.learned_window(name, address)
        if window is None:
            return described
        return replace(described, context_tokens=min(window, described.context_tokens or window))

    def _address_of(self, name: str, address: str | None) -> str:
        if address is not None:
            return asked_address(address)
        return self._newest_address.get(name) or self._windows.newest_address(name)
