"""Finds sentences of people that should bind later too: "always run the tests first", "from now on, use tabs"."""

import re
from collections.abc import Iterator

from errand.engine.memory.recall.orders import begins_as_order

MAX_INSTRUCTIONS = 3
_MAX_MESSAGE_LENGTH = 4_000
_MAX_LENGTH = 300
_MIN_WORDS, _MAX_WORDS = 3, 40
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
# What stands before the instruction itself.
_LEADS = r"(?:(?:please|and|also|but|so|ok|okay|bitte|und|aber)[,:]? ){0,3}"
_ALWAYS = r"(?:always|never|do not ever|don['’]t ever)"
# "Never mind", "always been like this" and "always a pleasure" are no instructions.
_NO_VERB = (
    r"(?!(?:mind|again|been|had|was|were|is|are|has|the|an?|my|your|this|that|it|in|on|at|so|too|i|we|you|he|she|they|"
    r"wanted|liked|loved|thought|knew|heard|seen|got|happened|works?|worked|fails?|failed)\b)"
)
_BIND = rf"{_ALWAYS} {_NO_VERB}\w"
_FROM_NOW_ON = "(?:from now on|going forward|in future|ab jetzt|ab sofort|von nun an|von jetzt an|künftig|in zukunft)"
_NO_PLAN = r"(?!,? ?(?:i|it|they|he|she|the|there|ich|es|sie|er|die|der|das|wird|werden|werde)\b)"
_TO_AGENT = (
    r"(?:you (?:should|must|can|may)|make sure (?:you|to|that you)|remember to|i(?:['’]d like| want) you to|we|"
    r"(?:whenever|when|if|every time|each time) [^,]{3,120},(?: please)?)"
)
_TO_AGENT_IN_GERMAN = r"(?:du (?:sollst|musst|darfst)|wir \w+|ich möchte, dass du)"
_IMMER = r"(?:immer|stets|nie|niemals)"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"^{_LEADS}{_BIND}",
        rf"^{_LEADS}{_FROM_NOW_ON}\b{_NO_PLAN}",
        rf"^{_LEADS}{_TO_AGENT} {_BIND}",
        rf"^{_LEADS}{_TO_AGENT_IN_GERMAN} (?:\w+ ){{0,3}}{_IMMER}\b",
    )
)
# In a sentence that begins as an order: "Nutze immer Tabs", "Run the tests every time you change a file".
_ORDER_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"^{_LEADS}\w+ (?:\w+ )?{_IMMER}\b",
        rf"\b(?:every time|each time|whenever(?! possible)|jedes mal|{_FROM_NOW_ON})\b",
    )
)


def standing_instructions(text: str) -> list[str]:
    """Return the sentences of a message that are meant for later messages too, at most three, as they are written."""
    instructions: list[str] = []
    for sentence in _sentences(text[:_MAX_MESSAGE_LENGTH]):
        if _binds(sentence) and sentence not in instructions:
            instructions.append(sentence)
    return instructions[:MAX_INSTRUCTIONS]


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences outside of code blocks and quotations."""
    is_code = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.lstrip().startswith(">"):
            yield from (part for part in (part.strip(" -*•\t") for part in _SENTENCE_END.split(line)) if part)


def _binds(sentence: str) -> bool:
    word_count = len(_WORD.findall(sentence))
    if sentence.endswith("?") or len(sentence) > _MAX_LENGTH or not _MIN_WORDS <= word_count <= _MAX_WORDS:
        return False
    if any(form.search(sentence) for form in _FORMS):
        return True
    return begins_as_order(sentence) and any(form.search(sentence) for form in _ORDER_FORMS)
