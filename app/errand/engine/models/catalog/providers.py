"""The providers, one row each; used by key store, model lists, discovery and router."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["openai_compatible", "anthropic", "litellm", "proxy", "scripted", "local"]


CallIdForm = Literal["plain", "nine", "gemini"]


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider.

    An empty `base_url` is known to the library or given by the user. `price_prefix` is the provider's name in litellm's
    price file. `reasoning_field` is set if a model requires its own reasoning to be sent back with its tool calls;
    `cache_field` takes the session id; `call_ids` is the accepted form of call ids; `list_url` is the address of its
    model list, if that is not beside `base_url`. `own` marks one that the person added: its key is a stored one and is
    sent only to its `base_url`; `added_as` is the name of the row that it is another one of, if it is.
    """

    name: str
    title: str
    kind: Kind
    key_variables: tuple[str, ...] = ()
    base_url: str = ""
    base_variable: str = ""
    local_port: int | None = None
    start_hint: str = ""
    default_model: str = ""
    price_prefix: str = ""
    asks_usage: bool = True
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    reasoning_field: str = ""
    cache_field: str = ""
    call_ids: CallIdForm = "plain"
    list_url: str = ""
    key_optional: bool = False
    own: bool = False
    added_as: str = ""

    @property
    def family(self) -> str:
        """The name in this table, also for one that the person added."""
        return self.added_as or self.name

    @property
    def needs_key(self) -> bool:
        return bool(self.key_variables) and not self.key_optional

    @property
    def takes_key(self) -> bool:
        return bool(self.key_variables) or self.own

    @property
    def is_custom(self) -> bool:
        """A server that a person knows by its address alone, with the OpenAI-compatible interface."""
        is_unnamed = self.name == "openai_compatible" or (self.own and not self.added_as)
        return self.kind == "openai_compatible" and is_unnamed

    @property
    def is_local(self) -> bool:
        return self.local_port is not None


# Models in files of this machine, which the engine runs itself.
LOCAL = "local"

# In the order in which the default model is searched: the user's keys first, then local servers.
PROVIDERS = (
    Provider(
        "anthropic",
        "Anthropic",
        "anthropic",
        ("ANTHROPIC_API_KEY",),
        "https://api.anthropic.com",
        "ANTHROPIC_BASE_URL",
        default_model="claude-sonnet-5-5",
        price_prefix="anthropic",
    ),
    Provider(
        "openai",
        "OpenAI",
        "openai_compatible",
        ("OPENAI_API_KEY",),
        "https://api.openai.com/v1",
        "OPENAI_BASE_URL",
        default_model="gpt-5.4",
        price_prefix="openai",
        max_tokens_field="max_completion_tokens",
        cache_field="prompt_cache_key",
    ),
    Provider(
        "gemini",
        "Google Gemini",
        "litellm",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        default_model="gemini-3.8-flash",
        list_url="https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000",
        price_prefix="gemini",
        call_ids="gemini",
    ),
    Provider(
        "openrouter",
        "OpenRouter",
        "openai_compatible",
        ("OPENROUTER_API_KEY",),
        "https://openrouter.ai/api/v1",
        default_model="openrouter/auto",
        reasoning_field="reasoning",
    ),
    Provider(
        "mistral",
        "Mistral",
        "openai_compatible",
        ("MISTRAL_API_KEY",),
        "https://api.mistral.ai/v1",
        default_model="mistral-medium-latest",
        price_prefix="mistral",
        asks_usage=False,
        call_ids="nine",
    ),
    Provider(
        "deepseek",
        "DeepSeek",
        "openai_compatible",
        ("DEEPSEEK_API_KEY",),
        "https://api.deepseek.com/v1",
        default_model="deepseek-v4-pro",
        price_prefix="deepseek",
        reasoning_field="reasoning_content",
    ),
    Provider(
        "xai",
        "xAI",
        "openai_compatible",
        ("XAI_API_KEY",),
        "https://api.x.ai/v1",
        default_model="grok-4.5",
        price_prefix="xai",
    ),
    Provider(
        "groq",
        "Groq",
        "openai_compatible",
        ("GROQ_API_KEY",),
        "https://api.groq.com/openai/v1",
        default_model="openai/gpt-oss-120b",
        price_prefix="groq",
    ),
    Provider(
        "together",
        "Together",
        "openai_compatible",
        ("TOGETHER_API_KEY", "TOGETHERAI_API_KEY"),
        "https://api.together.xyz/v1",
        default_model="zai-org/GLM-5.3",
        price_prefix="together_ai",
    ),
    Provider(
        "ollama",
        "Ollama",
        "openai_compatible",
        base_url="http://127.0.0.1:11434/v1",
        base_variable="OLLAMA_HOST",
        local_port=11434,
        start_hint="start it with `ollama serve`",
    ),
    Provider(
        "lm_studio",
        "LM Studio",
        "openai_compatible",
        base_url="http://127.0.0.1:1234/v1",
        base_variable="LM_STUDIO_API_BASE",
        local_port=1234,
        start_hint="start its server on the Developer page or with `lms server start`",
    ),
    Provider(
        "llama_cpp",
        "llama.cpp",
        "openai_compatible",
        base_url="http://127.0.0.1:8080/v1",
        base_variable="LLAMA_CPP_API_BASE",
        local_port=8080,
        start_hint="start it with `llama-server --jinja -m MODEL.gguf`",
    ),
    Provider(
        "vllm",
        "vLLM",
        "openai_compatible",
        base_url="http://127.0.0.1:8000/v1",
        base_variable="VLLM_API_BASE",
        local_port=8000,
        start_hint="start it with `vllm serve MODEL`",
    ),
    Provider(
        "openai_compatible",
        "OpenAI-compatible server",
        "openai_compatible",
        ("OPENAI_COMPATIBLE_API_KEY",),
        key_optional=True,
    ),
    Provider(
        "proxy",
        "Shared models",
        "proxy",
        ("ERRAND_PROXY_API_KEY",),
        base_variable="ERRAND_PROXY_URL",
        start_hint="start `errand share-models` there, and check the address and the network",
    ),
    Provider(LOCAL, "This machine", "local"),
    Provider("scripted", "scripted replies, real tools", "scripted"),
)

# Prefix of an id: `react/PROVIDER/MODEL` is that model with tool calls as XML text.
REACT = "react/"
# The end of an address whose models are all asked over OpenAI's Responses API.
RESPONSES_PATH = "/responses"
CHAT_PATH = "/chat/completions"
# Prefix of a model on another machine.
SHARED = "proxy/"


# What a person adds by an address: servers that speak one of the two interfaces.
BY_ADDRESS = {"openai_compatible": "OpenAI-compatible", "anthropic_compatible": "Anthropic-compatible"}


def addable(name: str) -> Provider | None:
    """Return the row with this name, if a person can add another one of it."""
    row = find(name)
    return None if row is None or row.is_local or name in (*BY_ADDRESS, "proxy", "local", "scripted") else row


def find(name: str) -> Provider | None:
    return next((row for row in PROVIDERS if row.name == name), None)


def asked_address(address: str) -> str:
    """Return the base of an address, which may be that of one interface of the server."""
    return address.rstrip("/").removesuffix(RESPONSES_PATH).removesuffix(CHAT_PATH)


def may_be_ollama(provider: Provider, address: str) -> bool:
    """Return True if there may be an Ollama at the address, whose own interface takes the place of the compatible one.

    An address that names the interface is used as it is.
    """
    is_open = asked_address(address) == address.rstrip("/")
    return is_open and (provider.family == "ollama" or provider.is_custom)


def provider_name(model_id: str) -> str:
    """Return the provider of an id, however the model is reached: anthropic for `proxy/anthropic/x`."""
    return bare_id(model_id).partition("/")[0]


def bare_id(model_id: str) -> str:
    """Return the id without the prefixes that say how the model is reached."""
    return model_id.removeprefix(REACT).removeprefix(SHARED)


def served_name(model_id: str) -> str:
    """Return the model's name at its provider: `anthropic/x` for `proxy/anthropic/x`."""
    return model_id.removeprefix(REACT).partition("/")[2]
