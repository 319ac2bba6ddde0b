"""The form that describes a model: id, name, context size, prices, and what it can do."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLineEdit

from errand.client.texts.limits import number_of
from errand.protocol.settings import Model, ModelSaveParams, Provider
from errand.text.translation import tr
from errand.window.stores.model_choice import model_name
from errand.window.theme.style import check_box, push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import STRETCH, hbox, set_vbox
from errand.window.widgets.forms.form import form, line_edit
from errand.window.widgets.forms.in_place_form import InPlaceFormView
from errand.window.widgets.labels import TextLabel

_MAX_LENGTH = 200  # characters of a field
_UNITS = {"k": 1_000, "m": 1_000_000}


class ModelFormView(InPlaceFormView):
    """`saved` gives the params of the call; the form stays open until the page shows the new list."""

    saved = Signal(object)

    def __init__(self, theme: Theme, provider: Provider) -> None:
        super().__init__(theme)
        self._provider = provider
        self._model: Model | None = None
        self._title = TextLabel(theme, bold=True)
        self._id = line_edit(tr("Model ID"), tr("The provider's name for it"), max_length=_MAX_LENGTH)
        self._name = line_edit(tr("Display name"), tr("Optional"), max_length=_MAX_LENGTH)
        self._context = line_edit(tr("Context size in tokens"), "128K", max_length=_MAX_LENGTH)
        self._input = line_edit(tr("Input price"), tr("$ per million input tokens"), max_length=_MAX_LENGTH)
        self._output = line_edit(tr("Output price"), tr("$ per million output tokens"), max_length=_MAX_LENGTH)
        self._tools, self._images, self._thinking = (
            check_box(tr("Tools")),
            check_box(tr("Pictures")),
            check_box(tr("Thinking")),
        )
        self._problem = TextLabel(theme, tone="failed", wrap=True)
        self._save, self._cancel = push_button(tr("Save model"), "primary"), push_button(tr("Cancel"))
        self._lay_out()
        for field in self._fields:
            field.textChanged.connect(self._on_changed)
            field.returnPressed.connect(self._on_saved)
        self._save.clicked.connect(self._on_saved)
        self._cancel.clicked.connect(self.close_form)

    @property
    def _fields(self) -> tuple[QLineEdit, ...]:
        return (self._id, self._name, self._context, self._input, self._output)

    def open_for(self, model: Model | None) -> None:
        """Open the form for a new model, or with the values of this one."""
        self._model = model
        self._title.setText(
            tr("Edit model")
            if model is not None
            else tr("Add model to {provider}").format(provider=self._provider.title)
        )
        self._id.setText(model_name(model.id) if model is not None else "")
        self._id.setEnabled(model is None or model.own)
        self._name.setText(model.name if model is not None else "")
        self._context.setText(_number(model.context_tokens) if model is not None else "")
        self._input.setText(_number(model.input_price) if model is not None else "")
        self._output.setText(_number(model.output_price) if model is not None else "")
        self._tools.setChecked(model is None or bool(model.tools))
        self._images.setChecked(model is not None and bool(model.images))
        self._thinking.setChecked(model is not None and bool(model.thinking))
        self.show_failure("")
        self._on_changed()
        self.show()
        (self._id if self._id.isEnabled() else self._name).setFocus(Qt.FocusReason.OtherFocusReason)

    def show_failure(self, text: str) -> None:
        self._problem.show_text(text)

    def _lay_out(self) -> None:
        tokens = self.theme.tokens
        wide = tokens.space_wide
        fields = form(
            self.theme,
            (tr("Model ID"), self._id),
            (tr("Name"), self._name),
            (tr("Context size"), self._context),
            (tr("Price"), hbox(self._input, self._output, spacing=wide)),
            (tr("Supports"), hbox(self._tools, self._images, self._thinking, STRETCH, spacing=wide)),
        )
        set_vbox(
            self,
            self._title,
            fields,
            self._problem,
            self.row(self._save, self._cancel),
            spacing=tokens.space_close,
            margins=(0, tokens.space_close, 0, 0),
        )

    def _on_changed(self) -> None:
        wrong = {
            self._context: bool(self._context.text().strip()) and tokens_of(self._context.text()) is None,
            self._input: _is_no_price(self._input.text()),
            self._output: _is_no_price(self._output.text()),
        }
        for field, is_wrong in wrong.items():
            set_style(field, "state", "wrong" if is_wrong else "")
        self._save.setEnabled(bool(self._id.text().strip()) and not any(wrong.values()))

    def _on_saved(self) -> None:
        if not self._save.isEnabled():
            return
        replaced = self._model.id if self._model is not None and self._model.own else ""
        self.saved.emit(
            ModelSaveParams(
                id=f"{self._provider.name}/{self._id.text().strip()}",
                name=self._name.text().strip(),
                context_tokens=tokens_of(self._context.text()),
                input_price=number_of(self._input.text()),
                output_price=number_of(self._output.text()),
                tools=self._tools.isChecked(),
                images=self._images.isChecked(),
                thinking=self._thinking.isChecked(),
                replaces=replaced,
            )
        )


def tokens_of(text: str) -> int | None:
    """Return a context size such as 131,072, 128K or 1M; None for what is no number."""
    typed = text.strip().lower()
    unit = _UNITS.get(typed[-1:], 1)
    amount = number_of(typed[:-1] if unit > 1 else typed)
    return None if amount is None or amount < 0 else round(amount * unit)


def _is_no_price(text: str) -> bool:
    amount = number_of(text)
    return bool(text.strip()) and (amount is None or amount < 0)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
