"""The lines of the model picker: grouped by provider without a search, ranked with one; pure data."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from errand.client.number_format import dollars
from errand.protocol.settings import Model
from errand.text.model_names import short_model_name
from errand.text.translation import tr, trn

# A version's date at the end of a name: -20250929, -2024-08-06, -0613, -05-20.
_DATE = re.compile(r"[-@](20\d{6}|20\d\d-\d\d-\d\d|\d\d-\d\d|\d{4})$")
_NEWEST_SUFFIX = "-latest"
_TEXT_TOOLS = "react/"
MORE = "more"
"""The key of the line that shows the folded models."""

LineKind = Literal["heading", "model", "typed", "more"]


@dataclass(frozen=True, slots=True)
class ModelLine:
    """One line. `key` is the id of the model; `provider` is empty where a heading says it; `model` has the facts."""

    kind: LineKind
    key: str
    name: str
    provider: str = ""
    model: Model | None = None

    @property
    def is_choice(self) -> bool:
        return self.kind != "heading"


def model_name(model_id: str) -> str:
    """Return the name without the provider, of a file without its path."""
    return short_model_name(model_id.removeprefix(_TEXT_TOOLS).partition("/")[2]) or model_id


def shown_name(model: Model) -> str:
    """Return the name that the person gave, else that of the id."""
    return model.name or model_name(model.id)


def context_text(model: Model) -> str:
    """Return the context size, such as 200K or 1M; empty if unknown."""
    tokens = model.context_tokens or 0
    if tokens >= 1_000_000:
        return f"{tokens / 1_000_000:.2g}M"
    return f"{round(tokens / 1000)}K" if tokens >= 1000 else str(tokens) if tokens else ""


def price_text(model: Model) -> str:
    """US dollars for a million tokens in and out; empty if unknown."""
    if model.input_price is None or model.output_price is None:
        return ""
    if model.input_price == 0 and model.output_price == 0:
        return tr("Free")
    return f"{_amount(model.input_price)} / {_amount(model.output_price)}"


def _amount(price: float) -> str:
    return dollars(price, 0 if round(price, 2).is_integer() else 2)


def abilities_text(model: Model) -> str:
    """Return the abilities of the model, for a tool tip and a screen reader."""
    can = ((tr("tools"), model.tools), (tr("pictures"), model.images), (tr("thinking"), model.thinking))
    return ", ".join(word for word, has in can if has)


def loaded_text(model: Model) -> str:
    """Return whether a server that people run has loaded the model; empty if that is not known."""
    return "" if model.loaded is None else tr("loaded") if model.loaded else tr("not loaded")


class ModelChoice:
    """The models to choose from. Dated versions beside an undated one, and what is not for chat, are folded away."""

    def __init__(self, models: Sequence[Model], providers: Iterable[tuple[str, str]], current: str) -> None:
        self.current = current
        self._providers = dict(providers)
        self._by_id = {model.id: model for model in models}
        folded = folded_ids(models)
        self._shown = [model for model in models if model.id not in folded]
        self._folded = [model for model in models if model.id in folded]
        self._searched: list[tuple[str, str, Model]] = []

    def lines(self, favourites: Sequence[str], recent: Sequence[str], *, unfolded: bool) -> list[ModelLine]:
        """Favourites, then the current model and recent ones, then all by provider."""
        starred = [model for name in favourites if (model := self._by_id.get(name)) is not None]
        used = dict.fromkeys((self.current, *recent))
        lately = [model for name in used if name not in favourites and (model := self._by_id.get(name)) is not None]
        lines: list[ModelLine] = []
        for title, group in ((tr("Favourites"), starred), (tr("Recent"), lately)):
            if group:
                lines.append(ModelLine("heading", "", title))
                lines += [self._line(model) for model in group]
        for provider, group in self._groups([*self._shown, *(self._folded if unfolded else ())]).items():
            lines.append(ModelLine("heading", "", self._title(provider)))
            lines += [ModelLine("model", model.id, shown_name(model), "", model) for model in group]
        if self._folded and not unfolded:
            lines.append(ModelLine("more", MORE, _more_text(len(self._folded))))
        return lines

    def matches(self, text: str, favourites: Sequence[str]) -> list[ModelLine]:
        """Return the models that have all words of a search, the best first; and what was typed, if it can be an id."""
        terms = text.lower().split()
        ranked: list[tuple[int, int, Model]] = []
        for number, (name, searched, model) in enumerate(self._search_texts()):
            if all(word in searched for word in terms):
                ranked.append((_rank(name, terms, is_favourite=model.id in favourites), number, model))
        ranked.sort(key=lambda found: found[:2])
        lines = [self._line(model) for _, _, model in ranked]
        typed = self._typed_model(text.strip(), is_found=bool(lines))
        return [*lines, *(ModelLine("typed", name, model_name(name), title) for name, title in typed)]

    def _search_texts(self) -> list[tuple[str, str, Model]]:
        """Name and searched text of each model, in lower case; the folded ones last. Made with the first search."""
        if not self._searched:
            for model in (*self._shown, *self._folded):
                searched = f"{self._title(model.provider)} {model.id} {model.name}".lower()
                self._searched.append((shown_name(model).lower(), searched, model))
        return self._searched

    def _typed_model(self, text: str, *, is_found: bool) -> list[tuple[str, str]]:
        """Return the typed text as the id of a model that is in no list, with its provider's title.

        A name alone is meant for a provider without a list, if no listed model has it.
        """
        provider, slash, name = text.removeprefix(_TEXT_TOOLS).partition("/")
        if not text or " " in text or text in self._by_id:
            return []
        if slash and name and provider:
            return [(text, self._title(provider))]
        if slash or is_found:
            return []
        listed = {model.provider for model in self._shown}
        return [(f"{own}/{text}", title) for own, title in self._providers.items() if own not in listed]

    def _groups(self, models: Iterable[Model]) -> dict[str, list[Model]]:
        groups: dict[str, list[Model]] = {}
        for model in models:
            groups.setdefault(model.provider, []).append(model)
        return groups

    def _line(self, model: Model) -> ModelLine:
        return ModelLine("model", model.id, shown_name(model), self._title(model.provider), model)

    def _title(self, provider: str) -> str:
        return self._providers.get(provider, provider)


def folded_ids(models: Iterable[Model]) -> frozenset[str]:
    """Return the models that are not for chat, and dated versions beside an undated or a newer one of the same name."""
    models = tuple(models)
    ids = {model.id for model in models}
    folded = {model.id for model in models if not model.for_chat}
    newest: dict[str, str] = {}
    for model in models:
        dated = _DATE.search(model.id)
        if dated is None:
            continue
        stem = model.id[: dated.start()]
        if stem in ids or f"{stem}{_NEWEST_SUFFIX}" in ids:
            folded.add(model.id)
        elif stem in newest:
            folded.add(min(newest[stem], model.id))
            newest[stem] = max(newest[stem], model.id)
        else:
            newest[stem] = model.id
    return frozenset(folded)


def _rank(name: str, words: Sequence[str], *, is_favourite: bool) -> int:
    """Lower is better: the name itself, then names that begin so, then the others; favourites before others."""
    query = " ".join(words)
    kind = 0 if name == query else 1 if name.startswith(query) else 2 if words[-1] in name else 3
    return 2 * kind + (0 if is_favourite else 1)


def _more_text(count: int) -> str:
    return trn("Show {n} more (dated or not for chat)", "Show {n} more (dated versions, embeddings)", count)
