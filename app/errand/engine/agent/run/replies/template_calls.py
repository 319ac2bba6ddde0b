"""Reads calls in the tokens of a model's chat template, which a server passes on as text if it does not know them.

People do not write these tokens, so that words may stand before the calls, as the models write them: Kimi K2, DeepSeek
V3 to V3.1, and gpt-oss (harmony). Calls in other forms after words are no calls: they may be examples. So are quoted
ones in these forms.
"""

import re

from errand.engine.agent.run.replies.quotations import ends_in_quotation
from errand.engine.agent.run.replies.written_calls import MAX_CALL_CHARACTERS, WrittenCall
from errand.engine.core.json_input.lenient_json import read_object

_MAX_CALLS = 20
_NAME = r"(?:functions\.)?(?P<name>[A-Za-z_][\w.-]{0,99})"
# Each pattern stops at the next call, so that calls without an end take no more time.
_CALLS = (
    re.compile(
        rf"<\|tool_call_begin\|>\s*{_NAME}(?::\d+)?\s*<\|tool_call_argument_begin\|>"
        r"(?P<arguments>(?:[^<]|<(?!\|tool_call))*+)<\|tool_call_end\|>"
    ),
    re.compile(
        rf"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?{_NAME}(?:<｜tool▁sep｜>|\s*```json\s)"
        r"(?P<arguments>(?:[^<]|<(?!｜tool▁))*+)<｜tool▁call▁end｜>"
    ),
    re.compile(
        r"(?:<\|start\|>assistant)?(?:<\|channel\|>(?:commentary|analysis))? ?"
        rf"to={_NAME}(?: ?<\|channel\|>(?:commentary|analysis))?(?: ?(?:<\|constrain\|>)? ?json)?<\|message\|>"
        r"(?P<arguments>(?:[^<]|<(?!\|(?:call|end|start|channel|message)\|>))*+)(?:<\|call\|>|<\|end\|>|\Z)"
    ),
)
_SECTION = re.compile(r"<\|tool_calls_section_(?:begin|end)\|>|<｜tool▁calls▁(?:begin|end)｜>|<｜end▁of▁sentence｜>")
_HARMONY = re.compile(r"<\|(?:start|end|channel|message|return)\|>(?:assistant|analysis|commentary|final)?")
_FENCE = "```"


def template_calls(text: str) -> tuple[str, tuple[WrittenCall, ...]]:
    """Return the words of a reply that ends with calls in such tokens, and the calls; no calls for any other text."""
    if len(text) > MAX_CALL_CHARACTERS:
        return text, ()
    for pattern in _CALLS:
        matches = list(pattern.finditer(text))
        if not matches or len(matches) > _MAX_CALLS:
            continue
        preamble, tail = text[: matches[0].start()], text[matches[0].start() :]
        plain_preamble = _HARMONY.sub("", _SECTION.sub("", preamble))
        is_quoted = ends_in_quotation(plain_preamble) or _SECTION.sub("", pattern.sub("", tail)).strip()
        calls = [_call_of(match) for match in matches]
        if not is_quoted and None not in calls:
            return plain_preamble.strip(), tuple(call for call in calls if call is not None)
    return text, ()


def _call_of(match: re.Match[str]) -> WrittenCall | None:
    arguments = match["arguments"].strip().removeprefix("```json").removesuffix(_FENCE)
    read = read_object(arguments)
    return None if read is None else WrittenCall(match["name"], read)
