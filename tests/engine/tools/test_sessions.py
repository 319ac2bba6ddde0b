"""What tools keep for a conversation: one session of a kind, closed with the conversation or the engine."""

from errand.engine.tools.sessions import ConversationSessions, ToolSessions


class _Page:
    def __init__(self, *, is_empty: bool = False) -> None:
        self.closed = 0
        self.is_empty = is_empty

    async def close(self) -> None:
        self.closed += 1


class _Broken(_Page):
    async def close(self) -> None:
        raise OSError("it is gone already")


async def test_a_conversation_has_one_session_of_a_kind() -> None:
    sessions = ToolSessions()
    first, second = ConversationSessions(sessions, "one"), ConversationSessions(sessions, "two")
    page = first.get(_Page, _Page)
    assert first.get(_Page, _Page) is page
    assert second.get(_Page, _Page) is not page
    await sessions.close()


async def test_a_conversation_that_is_closed_ends_its_sessions_alone_and_begins_new_ones_later() -> None:
    sessions = ToolSessions()
    first, second = ConversationSessions(sessions, "one"), ConversationSessions(sessions, "two")
    page, other = first.get(_Page, _Page), second.get(_Page, _Page)
    await sessions.close_conversation("one")
    assert (page.closed, other.closed) == (1, 0)
    assert first.get(_Page, _Page) is not page
    await sessions.close()
    assert (page.closed, other.closed) == (1, 1)


async def test_a_session_that_cannot_be_closed_does_not_keep_the_others_open() -> None:
    sessions = ToolSessions()
    conversation = ConversationSessions(sessions, "one")
    conversation.get(_Broken, _Broken)
    page = conversation.get(_Page, _Page)
    await sessions.close()
    assert page.closed == 1


async def test_what_is_empty_is_forgotten_and_the_rest_of_the_conversation_stays() -> None:
    sessions = ToolSessions()
    first, second = ConversationSessions(sessions, "one"), ConversationSessions(sessions, "two")
    first.get(_Broken, lambda: _Broken(is_empty=True))
    page, other = first.get(_Page, _Page), second.get(_Page, lambda: _Page(is_empty=True))
    await sessions.rest("one")
    assert first.find(_Broken) is None
    assert first.find(_Page) is page
    assert second.find(_Page) is other
    await sessions.close()
