"""The lines of the model picker: groups, folding, search, typed ids."""

import msgspec

from errand.protocol.settings import Model
from errand.window.stores.model_choice import ModelChoice, context_text, folded_ids, price_text

PROVIDERS = (("lab", "Lab"), ("openai", "OpenAI"), ("bare", "Gateway"))


def model(model_id: str) -> Model:
    return Model(id=model_id, provider=model_id.partition("/")[0])


def choice(*ids: str, current: str = "") -> ModelChoice:
    return ModelChoice([model(name) for name in ids], PROVIDERS, current)


def names(model_choice: ModelChoice, text: str, *favourites: str) -> list[str]:
    return [line.key for line in model_choice.matches(text, favourites)]


def test_favourites_come_first_then_the_current_and_recent_models_then_all_by_provider() -> None:
    models = choice("lab/qwen3", "openai/gpt-5.4", "openai/gpt-5.4-mini", current="openai/gpt-5.4")
    lines = models.lines(("lab/qwen3", "gone/model"), ("lab/qwen3", "openai/gpt-5.4-mini"), unfolded=False)
    assert [(line.kind, line.name, line.provider) for line in lines] == [
        ("heading", "Favourites", ""),
        ("model", "qwen3", "Lab"),
        ("heading", "Recent", ""),
        ("model", "gpt-5.4", "OpenAI"),
        ("model", "gpt-5.4-mini", "OpenAI"),
        ("heading", "Lab", ""),
        ("model", "qwen3", ""),
        ("heading", "OpenAI", ""),
        ("model", "gpt-5.4", ""),
        ("model", "gpt-5.4-mini", ""),
    ]


def test_dated_versions_and_what_is_not_for_chat_are_folded() -> None:
    ids = (
        "a/opus-4-20250929",
        "a/opus-4",
        "a/haiku-20240307",
        "a/haiku-20241022",
        "a/large-latest",
        "a/large-2411",
        "a/llama-3-70b",
        "b/opus-4-20250929",
        "a/gpt-4o-2024-08-06",
        "a/gpt-4o",
    )
    embedding = msgspec.structs.replace(model("a/embed"), for_chat=False)
    folded = folded_ids((*map(model, ids), embedding))
    assert folded == {"a/opus-4-20250929", "a/haiku-20240307", "a/large-2411", "a/gpt-4o-2024-08-06", "a/embed"}


def test_folded_models_are_shown_on_request_and_found_by_a_search_after_the_others() -> None:
    models = choice("a/opus-4-20250929", "a/opus-4")
    assert [line.key for line in models.lines((), (), unfolded=False)] == ["", "a/opus-4", "more"]
    assert [line.key for line in models.lines((), (), unfolded=True)] == ["", "a/opus-4", "a/opus-4-20250929"]
    assert names(models, "opus") == ["a/opus-4", "a/opus-4-20250929"]


def test_a_search_ranks_names_before_providers_and_favourites_before_others() -> None:
    models = choice("openai/gpt-5.4", "lab/my-gpt", "lab/gpt", "lab/gpt-a", "gpt/other")
    listed = ["lab/gpt", "lab/gpt-a", "openai/gpt-5.4", "lab/my-gpt", "gpt/other"]
    assert names(models, "gpt", "lab/gpt-a")[:5] == listed
    assert names(models, "LAB gpt") == ["lab/my-gpt", "lab/gpt", "lab/gpt-a"]


def test_a_typed_id_that_is_in_no_list_can_be_used() -> None:
    models = choice("lab/qwen3")
    assert names(models, "openai/gpt-9") == ["openai/gpt-9"]
    assert names(models, "react/lab/qwen9") == ["react/lab/qwen9"]
    assert names(models, "lab/qwen3") == ["lab/qwen3"], "it is listed"
    assert names(models, "qwen9") == ["openai/qwen9", "bare/qwen9"], "at the providers that have no list"
    assert names(models, "qwen") == ["lab/qwen3"], "a listed one has the word"
    assert names(models, "two words") == names(models, "openai/") == []


def test_sizes_and_prices_are_short() -> None:
    def priced(context: int | None, into: float | None, out: float | None) -> tuple[str, str]:
        priced_model = Model(id="a/b", provider="a", context_tokens=context, input_price=into, output_price=out)
        return context_text(priced_model), price_text(priced_model)

    assert priced(200_000, 3.0, 15.0) == ("200K", "$3 / $15")
    assert priced(1_048_576, 0.15, 0.6) == ("1M", "$0.15 / $0.60")
    assert priced(40_960, 0, 0) == ("41K", "Free")
    assert priced(None, None, 1.0) == ("", "")
