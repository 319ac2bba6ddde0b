"""Ctrl+Up and Ctrl+Down in the input."""

from app.window.views.prompt_history import PromptHistory

SAID = ["newest", "older", "oldest"]


def test_the_way_goes_to_the_oldest_and_back_to_what_was_being_written() -> None:
    history = PromptHistory()
    shown = ["half a thought"]
    for by in (-1, -1, -1, -1, 1, 1, 1, 1):
        shown.append(history.step(by, SAID, shown[-1]) or shown[-1])
    assert shown[1:] == ["newest", "older", "oldest", "oldest", "older", "newest", "half a thought", "half a thought"]


def test_a_message_that_was_changed_on_the_way_is_what_is_being_written() -> None:
    history = PromptHistory()
    history.step(-1, SAID, "")
    assert history.step(-1, SAID, "newest, but other") == "newest"
    assert history.step(1, SAID, "newest") == "newest, but other"


def test_without_messages_nothing_changes() -> None:
    assert PromptHistory().step(-1, [], "a word") is None
