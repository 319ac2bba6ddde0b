"""What the context menu offers for a message besides copying: edit, retry, fork, keep."""

from collections.abc import Callable

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from app.protocol.conversations import Node
from app.window.blocks.branch_actions import BranchActions
from app.window.blocks.context_actions import ContextActions


def add_message_entries(menu: QMenu, node: Node, branches: BranchActions, context: ContextActions) -> None:
    """While the agent is at work they are disabled, with the reason as tool tip; editing may begin already."""
    if node.status == "streaming":
        return
    menu.addSeparator()
    menu.setToolTipsVisible(True)
    why = branches.locked()
    if node.is_from_person:
        _add(menu, "Edit message", lambda: branches.edit(node.id))
    if node.role == "assistant":
        _lock(_add(menu, "Retry", lambda: branches.retry(node.id)), why)
        _lock(_add_models(menu, node, branches), why)
    _lock(_add(menu, "Fork here", lambda: branches.fork(node.id)), why)
    if context.is_kept(node.id):
        _add(menu, "Let go of context", lambda: context.release(node.id))
    else:
        _add(menu, "Keep in context", lambda: context.keep(node.id))


def _add(menu: QMenu, title: str, do: Callable[[], None]) -> QAction:
    action = menu.addAction(title)
    action.triggered.connect(lambda _=False: do())
    return action


def _add_models(menu: QMenu, node: Node, branches: BranchActions) -> QAction:
    """Those that can be used now and did not write this reply."""
    others = QMenu("Retry with", menu)
    for model in branches.models():
        if model != node.model:
            _add(others, model, lambda model=model: branches.retry(node.id, model))
    action = menu.addMenu(others)
    action.setVisible(not others.isEmpty())
    return action


def _lock(action: QAction, why: str) -> None:
    if why:
        action.setEnabled(False)
        action.setToolTip(why)
