"""What all conversation views of a window share."""

from dataclasses import dataclass

from PySide6.QtGui import QClipboard

from errand.window.stores.catalog import ModelStore
from errand.window.stores.stores import Stores
from errand.window.stores.welcome import WelcomeStore
from errand.window.theme.theme import Theme
from errand.window.views.composer.drop_payload import PastedFiles


@dataclass(frozen=True, slots=True)
class ViewServices:
    """The stores, the theme of conversations, the clipboard, and the files made of pasted content."""

    stores: Stores
    models: ModelStore
    welcome: WelcomeStore
    theme: Theme
    clipboard: QClipboard
    pasted: PastedFiles
