"""Markdown of models and people as HTML that can do nothing: no markup of theirs, links to web and mail alone."""

import re
from collections.abc import Sequence
from functools import cache
from html import escape

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

# Longer texts are logs rather than prose, and parsing one takes seconds.
_LONGEST = 200_000
_ALLOWED = re.compile(r"(?:https?|mailto):", re.IGNORECASE)


def to_html(text: str) -> str:
    """Links to anything else than the web and mail stay text, and a picture that is elsewhere becomes a link to it."""
    if len(text) > _LONGEST:
        return f"<pre>{escape(text)}</pre>"
    return str(_parser().render(text))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.validateLink = _is_allowed
    parser.add_render_rule("image", _image)
    parser.add_render_rule("link_open", _link)
    return parser


def _is_allowed(url: str) -> bool:
    return _ALLOWED.match(url) is not None


def _image(renderer: RendererProtocol, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    name = escape(token.content or "picture")
    return f'<a href="{escape(str(token.attrGet("src")))}" rel="noreferrer noopener">{name}</a>'


def _link(renderer: RendererProtocol, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    return f'<a href="{escape(str(tokens[index].attrGet("href")))}" rel="noreferrer noopener">'
