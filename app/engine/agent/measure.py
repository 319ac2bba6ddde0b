"""How many tokens a text of some length has for the model of a conversation: learnt from what its provider counted.

No tokenizer is loaded, see docs/decisions/0013.md.
"""

from dataclasses import dataclass

# What English, code and JSON have with the tokenizers of OpenAI; it holds until the first reply was counted.
_TOKENS_A_CHARACTER = 1 / 4
# A count outside of this is not of the text that was sent: some servers leave out what they had cached.
_FEWEST, _MOST = 1 / 16, 2.0


@dataclass(frozen=True, slots=True)
class Measure:
    """`tokens` is what the provider counted for the newest request, `characters` its length; 0 before the first."""

    characters: int = 0
    tokens: int = 0

    def tokens_of(self, characters: int) -> int:
        return round(characters * self._rate)

    def characters_of(self, tokens: float) -> int:
        return round(tokens / self._rate)

    @property
    def _rate(self) -> float:
        if not self.characters or not self.tokens:
            return _TOKENS_A_CHARACTER
        return min(max(self.tokens / self.characters, _FEWEST), _MOST)
