"""The views of a conversation with several agents: the agents bar, its dialogs, and two branches side by side."""

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from errand.protocol.settings import Model
from errand.text.translation import tr
from errand.window.stores.conversation.agents import NewAgent
from errand.window.stores.task_options import TaskOptionDefaults
from errand.window.views.agents.dialogs import RemoveAgentDialog
from errand.window.views.branches.comparison import ComparisonDialog
from errand.window.views.conversation.ask_models_dialog import AskModelsDialog
from errand.window.views.conversation.conversation_view import ConversationView
from tests.support.window import until
from tests.window.accessibility.full_window import WindowFixture, top

_MODELS = ("one/model", "another/model", "a/third")


async def several(fixture: WindowFixture) -> QWidget:
    await _joined(fixture)
    return fixture.window


async def asked(fixture: WindowFixture, ask: Callable[[ConversationView], None], kind: type[QWidget]) -> QWidget:
    """The dialog that `ask` opens."""
    ask(await _joined(fixture))
    return top(kind)


async def models(fixture: WindowFixture) -> QWidget:
    defaults = TaskOptionDefaults(
        models=tuple(Model(id=model_id, provider=model_id.partition("/")[0]) for model_id in _MODELS)
    )
    dialog = AskModelsDialog(fixture.theme, defaults, _MODELS[:1], "Which is better?", fixture.window)
    fixture.keep(dialog)
    dialog.show()
    return dialog


async def removal(fixture: WindowFixture) -> QWidget:
    dialog = RemoveAgentDialog("Coder", fixture.window)
    fixture.keep(dialog)
    dialog.show()
    return dialog


async def side_by_side(fixture: WindowFixture) -> QWidget:
    view = await _joined(fixture)
    if not view.tree.panes:
        fixture.window.commands.trigger("tree")
    panel = view.tree.panel
    await until(lambda: any(line.count for line in panel.lines))
    other = next(line for line in panel.lines if line.count and not line.is_in_front)
    next(
        action for action in panel.menu_of(other).actions() if action.text() == tr("Compare with current branch")
    ).trigger()
    dialog = top(ComparisonDialog)
    assert isinstance(dialog, ComparisonDialog)
    await until(lambda: all(side.side.count() > 0 for side in dialog.views))
    return dialog


async def _joined(fixture: WindowFixture) -> ConversationView:
    view = await fixture.open(fixture.branched)
    if not view.store.agents.is_several:
        view.store.agents.add(fixture.branched, NewAgent("coder", color="teal"))
        await until(lambda: view.input_panel.agents.isVisible())
    return view
