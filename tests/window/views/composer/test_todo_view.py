"""The to-do list above the input: one line and the list, folded and unfolded, hidden without one."""

from datetime import UTC, datetime

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from errand.protocol.tasks.groups import TaskActivity, TaskOutcome, TaskRequest, TodoItem
from errand.protocol.tasks.task import Task
from errand.window.theme.theme import Theme
from errand.window.views.composer.todo_view import TodoItemView, TodoView

_NOW = datetime(2026, 11, 1, tzinfo=UTC)


def _task(*items: TodoItem, is_over: bool = False) -> Task:
    return Task(
        id="task_1",
        conversation_id="conv_1",
        agent_id="agent_1",
        started_at=_NOW,
        todo=items,
        request=TaskRequest(prompt="go", model="m", workspace="/w"),
        activity=TaskActivity(status="completed" if is_over else "thinking"),
        outcome=TaskOutcome(ended_at=_NOW if is_over else None),
    )


_ITEMS = (
    TodoItem(text="look", status="done"),
    TodoItem(text="work", status="in_progress"),
    TodoItem(text="test"),
)
_DONE = tuple(TodoItem(text=item.text, status="done") for item in _ITEMS)


def test_line_has_the_progress_and_the_current_step_and_the_list_has_all(qapp: QApplication, theme: Theme) -> None:
    view = TodoView(theme)
    view.show_task(_task(*_ITEMS))
    assert view.line.accessibleName() == "1 of 3 done · work"
    assert view.texts == ("Done: look", "In progress: work", "To do: test")
    view.show_task(_task(*_ITEMS[:2]))
    assert view.texts == ("Done: look", "In progress: work")
    view.close()


def test_list_folds_by_keyboard_and_says_so(qapp: QApplication, theme: Theme) -> None:
    view = TodoView(theme)
    emitted: list[bool] = []
    view.opened.connect(emitted.append)
    view.show_task(_task(*_ITEMS))
    QTest.keyClick(view.line, Qt.Key.Key_Left)
    assert (emitted, view.scroll_area.isHidden()) == ([False], True)
    QTest.keyClick(view.line, Qt.Key.Key_Return)
    assert (emitted, view.scroll_area.isHidden()) == ([False, True], False)
    view.close()


def test_it_is_hidden_without_a_list_and_where_an_ended_task_had_done_all(qapp: QApplication, theme: Theme) -> None:
    view = TodoView(theme)
    view.show_task(None)
    assert view.isHidden()
    view.show_task(_task(*_DONE, is_over=True))
    assert view.isHidden()
    view.show_task(_task(*_ITEMS, is_over=True))
    assert view.isVisible() and view.line.accessibleName() == "1 of 3 done · work"
    view.show_task(_task())
    assert view.isHidden()
    view.close()


def test_list_that_is_done_stays_for_a_last_look(qapp: QApplication, theme: Theme) -> None:
    view = TodoView(theme)
    view.show_task(_task(*_ITEMS))
    view.show_task(_task(*_DONE, is_over=True))
    assert view.isVisible() and view.line.accessibleName() == "All 3 done"
    view.close()


def test_what_comes_after_the_current_step_is_in_view(qapp: QApplication, theme: Theme) -> None:
    view = TodoView(theme)
    view.show()
    items = [TodoItem(text=f"step {number}", status="done" if number < 20 else "pending") for number in range(40)]
    view.show_task(_task(*items))
    qapp.processEvents()
    next_ones = [
        row for row in view.findChildren(TodoItemView) if row.accessibleName() in ("To do: step 20", "To do: step 23")
    ]
    for row in next_ones:
        top = row.mapTo(view.scroll_area.viewport(), row.rect().topLeft()).y()
        assert top >= 0 and top + row.height() <= view.scroll_area.viewport().height()
    assert len(next_ones) == 2
    view.close()
