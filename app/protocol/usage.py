"""Tokens, money and time, counted for each turn and each task."""

from app.protocol.struct import Wire


class Usage(Wire, frozen=True, kw_only=True):
    """Sums. `input_tokens` includes the cached ones; `cost_usd` is null when the model's price is not known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
