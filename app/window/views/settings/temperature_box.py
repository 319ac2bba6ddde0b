"""A box for how freely a model chooses its words: as it does of itself, or a number from 0 to 2."""

from app.window.theme.look import set_tip
from app.window.views.settings.choice_box import ChoiceBox

_OWN = "the model's own"
_TENTHS = 21
_HELP = "Low is sober, high is inventive. Models that think keep their own."


class TemperatureBox(ChoiceBox):
    def __init__(self) -> None:
        super().__init__((_OWN, *(f"{tenth / 10:g}" for tenth in range(_TENTHS))))
        self.setAccessibleName("Temperature")
        set_tip(self, _HELP)

    @property
    def temperature(self) -> float | None:
        return float(self.currentText()) if self.currentIndex() else None

    def choose(self, temperature: float | None) -> None:
        """One between the tenths gets a line of its own: a file may bring it."""
        text = _OWN if temperature is None else f"{temperature:g}"
        if self.findText(text) < 0:
            self.addItem(text)
        self.setCurrentText(text)
