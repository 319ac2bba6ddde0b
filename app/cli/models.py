"""`errand models`: providers and models that were found, and what to do when there is none."""

import msgspec

from app.cli.options import Options
from app.cli.plain import plain
from app.cli.style import Style
from app.cli.terminal import Terminal
from app.client.launch import connect
from app.paths import Paths
from app.protocol.models import Model, ModelListParams, ModelListResult, Provider
from app.protocol.wire import MODEL_LIST

NOTHING_FOUND = (
    "No model is set up. Set a key such as OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY in your environment,\n"
    "or start a local server (Ollama, LM Studio, llama.cpp, vLLM), or try: errand tour"
)


async def list_models(options: Options, paths: Paths, terminal: Terminal) -> int:
    connection = await connect(paths, "errand models")
    try:
        found = await connection.call(MODEL_LIST, ModelListParams(refresh=True))
    finally:
        await connection.close()
    if options.json:
        terminal.line(msgspec.json.encode(found).decode())
        return 0
    for line in [*provider_lines(found, terminal.style), "", *model_lines(found, terminal.style)]:
        terminal.line(line)
    return 0


def provider_lines(found: ModelListResult, style: Style) -> list[str]:
    """What is ready, in a line each; the rest with what it lacks."""
    ready = [provider for provider in found.providers if provider.ready]
    missing = [provider for provider in found.providers if not provider.ready and provider.key_variable]
    lines = [f"{style.green(style.sign('tick'))} {plain(provider.title)}  {_source(provider)}" for provider in ready]
    wanted = ", ".join(provider.key_variable for provider in missing)
    return [*lines, style.dim(f"not set: {wanted}")] if wanted else lines


def model_lines(found: ModelListResult, style: Style) -> list[str]:
    if found.default is None:
        return [*NOTHING_FOUND.splitlines()]
    names = {provider.name for provider in found.providers if provider.ready}
    rows = [_row(model, style) for model in found.models if model.provider in names]
    return [*rows, f"default: {style.bold(plain(found.default))}"]


def _source(provider: Provider) -> str:
    if provider.local:
        return f"answers at {plain(provider.api_base)}"
    where = {
        "environment": f"key in {provider.key_variable}",
        "keyring": "key in the keyring",
        "file": "key in Errand's encrypted file",
        "none": "no key",
        "not_needed": "needs no key",
    }
    return where[provider.key_source]


def _row(model: Model, style: Style) -> str:
    size = f"{model.context_tokens:,} tokens" if model.context_tokens else ""
    price = ""
    if model.input_price is not None and model.output_price is not None:
        price = f"${model.input_price:g} in, ${model.output_price:g} out for a million tokens"
    return f"  {plain(model.id):<44} {style.dim(style.join(size, price))}".rstrip()
