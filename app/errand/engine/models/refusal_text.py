"""What the text of a refusal says about the request: each server has words of its own for the same reasons."""

import re
from collections.abc import Iterator

import msgspec

from errand.protocol.base import JsonValue

# Of a refusal, in characters. Servers may quote the whole request in it.
_MAX_TEXT = 4_000
_MAX_DEPTH = 5
_TEXT_FIELDS = frozenset(
    {
        "code",
        "detail",
        "details",
        "error",
        "error_message",
        "error_msg",
        "errors",
        "loc",
        "message",
        "metadata",
        "msg",
        "param",
        "raw",
        "reason",
        "type",
    }
)
# Statuses of refusals that are about who asks, or for what, whatever their words.
_ABOUT_ACCESS = frozenset({401, 402, 403, 404, 405})
_BY_SIZE = frozenset({400, 413, 422})

_TOO_LONG = re.compile(
    r"context_(length|window)_exceeded|string_above_max_length|prompt_too_long|request_too_large|input_too_long"
    r"|max(imum)? (context|prompt|model|sequence|input)[ _]length|context (window|size|limit)|maximum context"
    r"|context the overflows|context length of only|context overflow|exceeds? .{0,20}context"
    r"|too many (input |prompt )?tokens|reduce the length|exceed.{0,40}(context|token limit|number of tokens)"
    r"|(model|prompt|input|context)[ _]tokens? (limit|count|exceed)|range of input length|`?inputs?`? tokens \+"
    r"|`?inputs?`? must have less than|max(imum)? (input|message) (characters|tokens)|(prompt|input)s? exceeds? max"
    r"|(输入|上下文|prompt|长度|token).{0,20}(超长|过长|超过|超出)"
    r"|max_tokens must be (at least|greater than|>=?) ?[01],? .{0,10}-\d",
    re.IGNORECASE,
)
_LONG_STRING = re.compile(r"(?:string|array) too long.{0,60}?maximum length (\d+)", re.IGNORECASE)
_SUBJECT = r"\b(prompt|input|request|conversation|messages?|payload|body|query|history|sequence|text|content|tokens?)\b"
_TOO_LARGE = re.compile(rf"{_SUBJECT}.{{0,60}}\btoo (long|large|big|many)\b", re.IGNORECASE)
_EXCEEDS = re.compile(
    rf"{_SUBJECT}.{{0,80}}\b(exceed(s|ed|ing)?|(longer|larger|greater|more) than|over the|at most|max(imum)?|limit)\b",
    re.IGNORECASE,
)
# What may be too large or too many beside the conversation.
_OTHER_SIZE = re.compile(
    r"\b(image|picture|photo|audio|video|file|pdf|document|attachment|pixel|width|height|resolution)s?\b"
    r"|\b(tool|function|stop|logprob|schema|batch|embedding|temperature|top_p|penalty)(s|es)?\b"
    r"|max_(completion_|output_|new_)?tokens|(output|completion|generated) tokens|input should be",
    re.IGNORECASE,
)
_RATE = re.compile(
    r"rate.?limit|\bper.?(second|minute|hour|day|week|month|min)\b|\b[TR]P[MDHS]\b|quota|try again|retry|wait\b"
    r"|throttl|too many requests|requests per",
    re.IGNORECASE,
)
# Not a part of a name, and not of thousands, as in 200K.
_WINDOW = re.compile(
    r"(?:context[ _](?:size|length|window)|max_model_len|n_ctx"
    r"|(?:maximum|max) (?:model )?(?:context|sequence|input|prompt)[ _](?:size|length|tokens))\D{0,40}?"
    r"(?<![\w.-])(\d[\d,_]*)\b(?!\.\d|\s?[km]\b)",
    re.IGNORECASE,
)
_LIMIT_AND_REQUESTED = re.compile(r"limit\D{0,20}([\d,_]+)\D{1,60}requested\D{0,20}([\d,_]+)", re.IGNORECASE)
_LIMIT = re.compile(
    r"\b(?:limit|max(?:imum)?|quota|at most)\b[^\d]{0,60}?(\d[\d,_]{3,})(?!.{0,20}\brequests?\b)", re.IGNORECASE
)
_NO_QUOTA = re.compile(r"\blimit: ?0\b(?![.,]?\d)|limit of 0\b(?![.,]?\d)", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.-])\d[\d,_]*\b(?!\.\d)")
_OF_SIZE = re.compile(r"token|length|context|size|long|large|character|byte|window", re.IGNORECASE)
_MIN_SIZE = 1_000
_MIN_WINDOW = 128
# Fields of requests that some servers refuse. The last ones are words too: they count in quotes, or in a path.
_PLAIN_FIELDS = (
    "stream_options",
    "return_progress",
    "parallel_tool_calls",
    "tool_choice",
    "reasoning_effort",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "prompt_cache_key",
    "cache_control",
    "output_config",
    "reasoning_content",
    "reasoning_details",
    "reasoning_text",
    "reasoning_opaque",
    "reasoning_signature",
    "thinking_blocks",
    "encrypted_content",
    "extra_content",
    "thought_signature",
    "provider_specific_fields",
)
_WORD_FIELDS = ("reasoning", "thinking", "store", "include", "strict", "phase")
_FIELD = re.compile(
    rf"(?<!\w)(?P<plain>{'|'.join(_PLAIN_FIELDS)})(?!\w)"
    rf"|(?:['\"`“]|\.)(?P<quoted>{'|'.join(_WORD_FIELDS)})(?=['\"`”.:\[])"
    r"|(?<!\w)(?P<usage>include_usage)(?!\w)",
    re.IGNORECASE,
)
_BARE_WORD = re.compile(rf"(?<!\w)(?P<plain>{'|'.join(_WORD_FIELDS)})(?!\w)", re.IGNORECASE)
_EXTRA_INPUTS = re.compile(
    r"extra_forbidden|extra (inputs?|fields?)|unknown (name|field)|unrecogni[sz]ed", re.IGNORECASE
)
_INSTEAD = re.compile(r"\b(use|try|with)\b.{0,5}\b\w+\b.{0,5}\binstead( of)?", re.IGNORECASE)
_REFUSED = re.compile(
    r"unknown|unrecogni[sz]ed|unsupported|unexpected|(not|n't|cannot|never) (be |currently |yet )?"
    r"(support|allow|permit|recogni[sz]|accept|implement|available|enabled|use|set|include|sent)"
    r"|extra (inputs?|fields?)|extra_forbidden|cannot find field|additional propert|forbidden|no longer|deprecated"
    r"|invalid (parameter|argument|field|property|key)|only (be )?(set|allowed|supported|valid|available)|remove",
    re.IGNORECASE,
)
_REQUIRED = re.compile(
    r"missing|required|requires|lacks?\b|absent|must (be|start|contain|include|have|not be empty)|expected|without"
    r"|passed back|(not|n't) (provided|found|present|included|contain|passed)|\bneeds?\b|empty",
    re.IGNORECASE,
)
_OF_THOUGHTS = re.compile(
    r"(?<!\w)(reasoning_content|reasoning_details|reasoning_text|thinking_blocks|thought_signature)(?!\w)"
    r"|['\"`](reasoning|thinking)['\"`]",
    re.IGNORECASE,
)
_NEAR_FIELD = 120
# Numbers of a refusal are those of the request if they are this near to an estimate, at four characters a token:
# nearer if no word of the refusal is about a size. A limit is not much smaller than what it limits.
_NEAR, _NEARER = 2.0, 1.3
_MIN_SHARE = 0.1
_CHARACTERS_A_TOKEN = 4


def refusal_text(body: bytes) -> str:
    """Return all texts of a refusal that say what is wrong: gateways put those of their providers inside their own."""
    try:
        value: JsonValue = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict | list):
        return body[:_MAX_TEXT].decode("utf-8", "replace")
    return " ".join(" ".join(_texts(value, _MAX_DEPTH)).split())[:_MAX_TEXT]


def _texts(value: JsonValue, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and depth:
        for part in value[:50]:
            yield from _texts(part, depth - 1)
    elif isinstance(value, dict) and depth:
        for name, part in value.items():
            if name.lower() in _TEXT_FIELDS:
                yield from _texts(part, depth - 1)


def is_too_long(status: int, text: str) -> bool:
    """Return True if the conversation does not fit, by the words alone."""
    if status in _ABOUT_ACCESS:
        return False
    if _RATE.search(text):
        return _can_never_pass(text) or (status != 429 and _TOO_LONG.search(text) is not None)
    if status == 429 and not re.search(r"context|prompt", text, re.IGNORECASE):  # may be the tokens of many requests
        return False
    if _TOO_LONG.search(text):
        return True
    if long_string := _LONG_STRING.search(text):
        return int(long_string[1]) >= _MIN_SIZE and not re.search(r"\btools?\b", text, re.IGNORECASE)
    if _OTHER_SIZE.search(text):
        return False
    if status == 413:
        return True
    has_size = any(number >= _MIN_SIZE for number in _numbers(text))
    return status < 500 and bool(_TOO_LARGE.search(text) or (has_size and _EXCEEDS.search(text)))


def is_too_long_by_numbers(status: int, text: str, tokens: int) -> bool:
    """Return True if the numbers of a refusal are about the tokens of the request, and a limit below them."""
    if status == 429:
        limit = _LIMIT.search(text) if "token" in text.lower() else None
        return limit is not None and tokens > _number(limit[1]) > 0
    if status not in _BY_SIZE or _RATE.search(text) or _OTHER_SIZE.search(text):
        return False
    near = _NEAR if _OF_SIZE.search(text) else _NEARER
    numbers = [number for number in _numbers(text) if number >= _MIN_SIZE]
    sizes = (tokens, tokens * _CHARACTERS_A_TOKEN)
    return any(
        size / near <= number <= size * near and any(number * _MIN_SHARE <= limit < number for limit in numbers)
        for number in numbers
        for size in sizes
    )


def stated_sizes(text: str, tokens: int) -> tuple[int | None, int | None]:
    """Return the tokens of the request and of the window that a refusal names; None for what it does not name.

    `tokens` estimates the request: a count in the refusal is near to it.
    """
    match = _WINDOW.search(text)
    window = _number(match[1]) if match is not None else 0
    if not window >= _MIN_WINDOW:
        return None, None
    counts = (number for number in _numbers(text) if number > window and tokens / _NEAR <= number <= tokens * _NEAR)
    return min(counts, default=None), window


def has_no_quota(text: str) -> bool:
    """Return True if a rate limit is zero, so that no wait ends it."""
    return _NO_QUOTA.search(text) is not None


def _can_never_pass(text: str) -> bool:
    sizes = _LIMIT_AND_REQUESTED.search(text)
    return sizes is not None and 0 < _number(sizes[1]) < _number(sizes[2]) and "tokens" in text.lower()


def _numbers(text: str) -> list[int]:
    return [_number(number[0]) for number in _NUMBER.finditer(text)]


def _number(digits: str) -> int:
    return int(digits.replace(",", "").replace("_", "")[:18] or 0)


def refused_fields(text: str) -> tuple[str, ...]:
    """Return the fields of a request that a refusal names as not accepted, in the order in which it names them."""
    text = _INSTEAD.sub(" ", text)
    matches = [*_FIELD.finditer(text)]
    if _EXTRA_INPUTS.search(text):
        matches += _BARE_WORD.finditer(text)
    names = (_field_name(match) for match in matches if _has_near(_REFUSED, text, match))
    return tuple(dict.fromkeys(names))


def required_fields(text: str) -> tuple[str, ...]:
    """Return the fields of thoughts that a refusal names as missing."""
    matches = (match for match in _OF_THOUGHTS.finditer(text) if _has_near(_REQUIRED, text, match))
    return tuple(dict.fromkeys((match[1] or match[2]).lower() for match in matches))


def _field_name(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return "stream_options" if groups.get("usage") else (groups["plain"] or groups["quoted"]).lower()


def _has_near(pattern: re.Pattern[str], text: str, match: re.Match[str]) -> bool:
    return pattern.search(text[max(0, match.start() - _NEAR_FIELD) : match.end() + _NEAR_FIELD]) is not None
