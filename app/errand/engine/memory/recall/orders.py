"""Tells bare orders from statements: what a person once told an agent to do is no news, and must not be done again."""

import re
from functools import cache
from importlib.resources import files

_MAX_WORDS = 12
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SENTENCE_END = re.compile(r"[.!?:;]\s")
# What stands before the verb.
_LEAD_LIST = """
please pls ok okay and now then just can could would will you also yes so alright go ahead first next
bitte und jetzt dann mal kannst könntest du doch also ja nun gut erst noch
"""
_LEADS = frozenset(_LEAD_LIST.split())


def is_bare_order(text: str) -> bool:
    """Return True for a short text that only tells an agent to do something."""
    if len(text) > 200 or _SENTENCE_END.search(text):
        return False
    word_count = len(_WORD.findall(text))
    return 0 < word_count <= _MAX_WORDS and begins_as_order(text)


def begins_as_order(text: str) -> bool:
    """Return True if the first word, without what may stand before an imperative, is one; also if there is no other."""
    lower_words = (match[0].lower() for match in _WORD.finditer(text))
    verb = next((word for word in lower_words if word not in _LEADS), "")
    return not verb or verb in _verbs()


@cache
def _verbs() -> frozenset[str]:
    """Return the imperatives that orders begin with, in English and German."""
    text = (files("errand.resources") / "orders.txt").read_text(encoding="utf-8")
    return frozenset(text.split())
