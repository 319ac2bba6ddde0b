"""What is known of models besides the library's table: what people wrote in the settings, what providers listed."""

from collections.abc import Callable

from app.engine import own_models
from app.engine.models import prices
from app.engine.models.listings import Listings
from app.engine.own_models import OwnModel
from app.engine.settings import SettingValues


class KnownModels:
    """Keeps `prices` up to date: ask for `refresh` before it is read."""

    def __init__(self, settings: Callable[[], SettingValues], listings: Listings) -> None:
        self.listings = listings
        self._settings = settings
        self._own = ""
        self._own_ids: tuple[tuple[str, str, str], ...] = ()
        self.refresh(again=True)

    def refresh(self, *, again: bool = False) -> None:
        """Bring what is known of models up to date with the setting and the lists."""
        text = self._settings().own_models
        if again or text != self._own:
            self._own = text
            own = own_models.parse(text)
            self._own_ids = tuple(model.id.partition("/") for model in own)
            prices.learn({model.id: _own_facts(model) for model in own}, self.listings.facts())

    def own_names(self, provider: str) -> tuple[str, ...]:
        """The models of a provider that people described."""
        return tuple(name for of, _, name in self._own_ids if of == provider)


def _own_facts(model: OwnModel) -> prices.ModelFacts:
    def can(ability: str) -> bool | None:
        return None if model.abilities is None else ability in model.abilities

    return prices.told_facts(
        model.context_tokens, model.input_price, model.output_price, can("tools"), can("images"), can("thinking")
    )
