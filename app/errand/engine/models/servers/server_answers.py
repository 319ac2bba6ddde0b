"""Reads what model servers answer of their models, of each kind its own; fields of other types count as missing."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from errand.engine.core.input_limits import window_size
from errand.engine.core.json_input.foreign_json import flag_or_none, object_or_empty, objects_in
from errand.engine.models.servers.served_models import ServedModel, ServerKind
from errand.protocol.base import JsonObject, JsonValue

# What each server writes as the owner of its models.
_OWNERS: Mapping[str, ServerKind] = {
    "llamacpp": "llama_cpp",
    "library": "ollama",
    "organization_owner": "lm_studio",
    "vllm": "vllm",
}
_MAX_MODELS = 500
# In tokens: instructions, tools and some work. Twice that takes gigabytes of memory for models of eight billion.
_ASKED_WINDOW = 16_384
_MAX_PARAMETERS = 1e15
_PARAMETERS = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*([BM])", re.IGNORECASE)
_NUM_CTX = re.compile(r"^num_ctx\s+(\d{1,12})\b", re.MULTILINE)


def listed_rows(answer: JsonObject) -> list[JsonObject]:
    """Return the rows with a name of a list of models; ValueError for another answer."""
    if not isinstance(answer.get("data"), list):
        raise ValueError("no list of models")
    return [row for row in objects_in(answer["data"])[:_MAX_MODELS] if isinstance(row.get("id"), str) and row["id"]]


def kind_of(rows: Iterable[JsonObject], otherwise: ServerKind) -> ServerKind:
    """Return the kind of the server with this list of models; `otherwise` if the list does not say it."""
    for row in rows:
        owner = row.get("owned_by")
        if isinstance(owner, str) and owner in _OWNERS:
            return _OWNERS[owner]
    return otherwise


def model_of_row(row: JsonObject, kind: ServerKind) -> ServedModel:
    """Return a model as the list of an OpenAI-compatible interface has it."""
    meta, inputs = object_or_empty(row.get("meta")), object_or_empty(row.get("architecture")).get("input_modalities")
    state = object_or_empty(row.get("status")).get("value")  # of a llama.cpp that serves several models
    is_loaded = state == "loaded" if isinstance(state, str) else True if kind in ("llama_cpp", "vllm") else None
    return ServedModel(
        name=str(row["id"]),
        server=kind,
        context_tokens=window_size(meta.get("n_ctx")) or window_size(row.get("max_model_len")),
        trained_tokens=window_size(meta.get("n_ctx_train")),
        sees="image" in inputs if isinstance(inputs, list) else None,
        is_loaded=is_loaded,
        parameters=_billions(meta.get("n_params")),
    )


def with_llama_cpp(model: ServedModel, props: JsonObject) -> ServedModel:
    """Return a model with what llama.cpp's `/props` says of it."""
    abilities = object_or_empty(props.get("chat_template_caps"))
    window = object_or_empty(props.get("default_generation_settings")).get("n_ctx")
    template = props.get("chat_template")
    thinks = None
    if isinstance(template, str) and template:
        thinks = "<think>" in template or "enable_thinking" in template or "reasoning_effort" in template
    sees = flag_or_none(object_or_empty(props.get("modalities")).get("vision"))
    return replace(
        model,
        context_tokens=window_size(window) or model.context_tokens,
        calls_tools=flag_or_none(abilities.get("supports_tools")),
        sees=model.sees if sees is None else sees,
        thinks=thinks,
    )


def with_ollama(model: ServedModel, running: JsonObject, details: JsonObject, *, uses_own: bool) -> ServedModel:
    """Return a model with what Ollama's `/api/ps` says of the loaded ones, and `/api/show` of this one.

    `uses_own`: requests go to its own interface, which takes a window. That is the one in the model's file, else the
    larger of the loaded one, which a person may have set, and one that has room for the work of an agent.
    """
    info, abilities = object_or_empty(details.get("model_info")), details.get("capabilities")
    loaded = [row for row in objects_in(running.get("models")) if row.get("name") == model.name]
    window = loaded_window = window_size(loaded[0].get("context_length")) if loaded else None
    trained = next((window_size(info[name]) for name in info if name.endswith(".context_length")), None)
    chosen = _window_of_file(details.get("parameters"))
    takes_window = uses_own and trained is not None
    if takes_window and chosen is None:
        window = max(window or 0, min(trained or 0, _ASKED_WINDOW))

    def can(ability: str) -> bool | None:
        return ability in abilities if isinstance(abilities, list) else None

    return replace(
        model,
        context_tokens=window or chosen,
        trained_tokens=trained,
        takes_window=takes_window,
        loaded_tokens=loaded_window,
        calls_tools=can("tools"),
        sees=can("vision"),
        thinks=can("thinking"),
        is_loaded=bool(loaded) if isinstance(running.get("models"), list) else None,
        parameters=_billions(info.get("general.parameter_count"))
        or _billions_of_text(object_or_empty(details.get("details")).get("parameter_size")),
    )


def with_lm_studio(model: ServedModel, row: JsonObject) -> ServedModel:
    """Return a model with its row of LM Studio's own list.

    LM Studio writes the tools of models that were not trained for calls into their prompt itself, so these are not
    known to be without tools.
    """
    abilities, state, kind = row.get("capabilities"), row.get("state"), row.get("type")
    return replace(
        model,
        context_tokens=window_size(row.get("loaded_context_length")),
        trained_tokens=window_size(row.get("max_context_length")),
        calls_tools=True if isinstance(abilities, list) and "tool_use" in abilities else None,
        sees=kind == "vlm" if isinstance(kind, str) else None,
        is_loaded=state == "loaded" if isinstance(state, str) else None,
    )


def _window_of_file(parameters: JsonValue) -> int | None:
    """Return the window that an Ollama model gets by the parameters in its file."""
    match = _NUM_CTX.search(parameters) if isinstance(parameters, str) else None
    return None if match is None else window_size(int(match[1]))


def _billions(count: JsonValue) -> float | None:
    if isinstance(count, bool) or not isinstance(count, int | float) or not 0 < count < _MAX_PARAMETERS:
        return None
    return round(count / 1e9, 3)


def _billions_of_text(size: JsonValue) -> float | None:
    match = _PARAMETERS.search(size) if isinstance(size, str) else None
    return None if match is None else float(match[1]) / (1 if match[2].upper() == "B" else 1000)
