"""What the servers that people run themselves answer beside chat completions, as the real ones do."""

from collections.abc import Callable, Mapping

from errand.protocol.base import JsonObject, JsonValue
from tests.support.model_server import Page

LOADING: Page = (503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}})


def counted(pages: Mapping[str, Page], asks: list[str]) -> dict[str, Callable[[], Page]]:
    """Return the same pages, which add their path to `asks` each time that they are asked for."""

    def answering(path: str, page: Page) -> Callable[[], Page]:
        def answer() -> Page:
            asks.append(path)
            return page

        return answer

    return {path: answering(path, page) for path, page in pages.items()}


def llama_cpp(
    model: str,
    *,
    window: int = 4096,
    tools: bool = True,
    vision: bool = False,
    template: str = "{{ messages }}",
    parameters: int = 1_777_088_000,
) -> dict[str, Page]:
    """Return the pages of a llama.cpp (build 11434) that has loaded a model."""
    meta: JsonObject = {"n_ctx": window, "n_ctx_train": 32768, "n_params": parameters, "size": 1111370240}
    row: JsonObject = {
        "id": model,
        "aliases": [model],
        "object": "model",
        "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
        "created": 1795933103,
        "owned_by": "llamacpp",
        "meta": meta,
    }
    props: JsonObject = {
        "default_generation_settings": {"n_ctx": window},
        "total_slots": 1,
        "model_alias": model,
        "modalities": {"vision": vision, "video": False, "audio": False},
        "chat_template": template,
        "chat_template_caps": {"supports_tools": tools, "supports_tool_calls": tools, "supports_system_role": True},
        "build_info": "b11434-unknown",
    }
    listed: JsonObject = {"object": "list", "models": [{"name": model, "capabilities": ["completion"]}], "data": [row]}
    return {"/v1/models": (200, listed), "/props": (200, props), "/health": (200, {"status": "ok"})}


def loading_llama_cpp() -> dict[str, Page]:
    """Return the pages of a llama.cpp that loads a model: it refuses everything."""
    return dict.fromkeys(("/v1/models", "/props", "/health"), LOADING)


def ollama(
    model: str,
    *,
    abilities: tuple[str, ...] = ("completion", "tools"),
    window: int | None = None,
    parameters: str = "",
    owner: str = "library",
) -> dict[str, Page]:
    """Return the pages of an Ollama with one model, which is loaded with a `window` if that is given."""
    row: JsonObject = {"id": model, "object": "model", "created": 1735689600, "owned_by": owner}
    can: list[JsonValue] = list(abilities)
    details: JsonObject = {
        "parameters": parameters,
        "details": {"family": "qwen2", "parameter_size": "7.6B", "quantization_level": "Q4_K_M"},
        "model_info": {"general.architecture": "qwen2", "qwen2.context_length": 32768},
        "capabilities": can,
    }
    running: list[JsonValue] = (
        [] if window is None else [{"name": model, "model": model, "size_vram": 0, "context_length": window}]
    )
    return {
        "/v1/models": (200, {"object": "list", "data": [row]}),
        "/api/version": (200, {"version": "0.17.1"}),
        "/api/ps": (200, {"models": running}),
        "/api/show": (200, details),
    }


def lm_studio(*rows: JsonObject) -> dict[str, Page]:
    """Return the pages of an LM Studio with these rows of its own list."""
    data: list[JsonValue] = [{"id": row["id"], "object": "model", "owned_by": "organization_owner"} for row in rows]
    return {
        "/v1/models": (200, {"object": "list", "data": data}),
        "/api/v0/models": (200, {"object": "list", "data": list(rows)}),
    }


def vllm(model: str, window: int) -> dict[str, Page]:
    """Return the pages of a vLLM."""
    row: JsonObject = {"id": model, "object": "model", "owned_by": "vllm", "root": model, "max_model_len": window}
    return {"/v1/models": (200, {"object": "list", "data": [row]})}
