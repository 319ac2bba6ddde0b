"""The context menu of a block: the link under the mouse and the whole message as Markdown; others add to it."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QMenu, QWidget

from app.protocol.blocks import TextBlock
from app.protocol.conversations import Node
from app.window.blocks.actions import BlockActions

Opening = Callable[[QMenu], None]


@dataclass(frozen=True, slots=True)
class Copyable:
    """What could be copied here; empty where there is nothing."""

    link: str = ""
    message: str = ""


def message_markdown(node: Node | None) -> str:
    """All text of a message as it was written."""
    blocks = node.blocks if node else ()
    return "\n\n".join(block.text.strip("\n") for block in blocks if isinstance(block, TextBlock))


def show_menu(parent: QWidget, where: QPoint, copyable: Copyable, actions: BlockActions, opening: Opening) -> None:
    """`opening` may add entries of its own before it is shown."""
    entries = (
        ("Copy link", copyable.link),
        ("Copy message as Markdown", copyable.message),
    )
    menu = QMenu(parent)
    for title, text in entries:
        if text:
            menu.addAction(title).triggered.connect(lambda _=False, text=text: actions.copy(text))
    opening(menu)
    if not menu.isEmpty():
        menu.popup(where)
        menu.aboutToHide.connect(menu.deleteLater)
    else:
        menu.deleteLater()
