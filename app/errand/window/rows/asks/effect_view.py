"""What an approval is about: a command, an address with its host emphasised, highlighted code, a tool of others."""

from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtGui import QColor, QFont, QSyntaxHighlighter, QTextCharFormat, QTextDocument
from PySide6.QtWidgets import QVBoxLayout, QWidget

from errand.client.texts.effects import Effect
from errand.text.translation import tr
from errand.window.theme.theme import Theme
from errand.window.widgets.code_excerpt import CodeExcerptView
from errand.window.widgets.highlighting import highlight
from errand.window.widgets.labels import TextLabel

_MAX_LINES = 24
_NAMES = {
    "command": tr("What will run"),
    "code": tr("Code that will run"),
    "address": tr("Address"),
    "service": tr("Tool from a server"),
    "text": tr("What will run"),
}
_DETAILS = {"address": tr("Script for the page"), "service": tr("Arguments")}


@dataclass(frozen=True, slots=True)
class _Span:
    """A part of the text in UTF-16 units, as Qt counts; `kind` is a colour of the syntax, `host` or `around`."""

    start: int
    length: int
    kind: str


class SpanHighlighter(QSyntaxHighlighter):
    """Colours parts of a whole text, which it gets before the document has it."""

    def __init__(self, theme: Theme, document: QTextDocument) -> None:
        super().__init__(document)
        self._theme = theme
        self._spans: tuple[_Span, ...] = ()
        theme.changed.connect(self.rehighlight)

    def set_spans(self, spans: Iterable[_Span]) -> None:
        self._spans = tuple(spans)

    def highlightBlock(self, text: str) -> None:
        begin = self.currentBlock().position()
        for span in self._spans:
            start, end = max(0, span.start - begin), min(self.currentBlock().length(), span.start + span.length - begin)
            if start < end:
                self.setFormat(start, end - start, self._format(span.kind))

    def _format(self, kind: str) -> QTextCharFormat:
        char_format = QTextCharFormat()
        if kind == "host":
            char_format.setFontWeight(QFont.Weight.Bold)
            char_format.setForeground(QColor(self._theme.tokens.text))
        elif kind == "around":
            char_format.setForeground(QColor(self._theme.tokens.muted))
        else:
            char_format.setForeground(QColor(self._theme.colour(f"syntax_{kind}")))
        return char_format


class EffectView(QWidget):
    """Shows an `Effect` in full: long text has a button that shows all, and then scrolls."""

    resized = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._main = CodeExcerptView(theme, tr("What will run"), most_lines=_MAX_LINES)
        self._remark = TextLabel(theme, tone="waiting", wrap=True)
        self._name = TextLabel(theme, tone="muted")
        self._details = CodeExcerptView(theme, tr("Arguments"), most_lines=_MAX_LINES)
        self._colours = SpanHighlighter(theme, self._main.box.document())
        self._colours_of_details = SpanHighlighter(theme, self._details.box.document())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.tokens.space_tight)
        for part in (self._main, self._remark, self._name, self._details):
            column.addWidget(part)
        self._main.resized.connect(self.resized)
        self._details.resized.connect(self.resized)

    def show_effect(self, effect: Effect) -> None:
        self._colours.set_spans(
            _host_spans(effect) if effect.kind == "address" else _spans(effect.text, effect.language)
        )
        self._main.box.setAccessibleName(_NAMES[effect.kind])
        self._main.set_text(effect.text)
        is_address = effect.kind == "address"
        self._remark.setText(tr("Host: {remark}").format(remark=effect.remark) if is_address else effect.remark)
        self._remark.setVisible(bool(effect.remark))
        name = _DETAILS.get(effect.kind, "")
        self._name.setText(name)
        self._colours_of_details.set_spans(_spans(effect.details, effect.details_language))
        self._details.box.setAccessibleName(name)
        self._details.set_text(effect.details)
        for part in (self._name, self._details):
            part.setVisible(bool(effect.details))


def _spans(text: str, language: str) -> list[_Span]:
    at = 0
    spans: list[_Span] = []
    for run in highlight(text, language) if language else ():
        length = _units(run.text)
        if run.kind != "text":
            spans.append(_Span(at, length, run.kind))
        at += length
    return spans


def _host_spans(effect: Effect) -> list[_Span]:
    start, end = effect.host_at
    before, host = _units(effect.text[:start]), _units(effect.text[start:end])
    after = _units(effect.text[end:])
    return [_Span(0, before, "around"), _Span(before, host, "host"), _Span(before + host, after, "around")]


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
