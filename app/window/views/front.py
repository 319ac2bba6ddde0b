"""What actions do with the conversation in front, in whichever window it stands."""

from app.window.stores.asks import AskStore
from app.window.views.desk import Desk


class Front:
    """The slots of the actions that are about one conversation."""

    def __init__(self, desk: Desk, asks: AskStore) -> None:
        self._desk = desk
        self._asks = asks

    def stop(self) -> None:
        self._desk.front.store.requests.stop()

    def stop_all(self) -> None:
        self._desk.front.store.requests.stop_all()

    def ask_models(self) -> None:
        self._desk.front.dialogs.ask_models()

    def add_agent(self) -> None:
        self._desk.front.foot.add_agent()

    def go_to_next_ask(self) -> None:
        """Of the conversation after that in front, round at the end."""
        waiting = [ask.conversation_id for ask in self._asks.waiting()]
        if not waiting:
            return
        here = self._desk.front_id
        place = waiting.index(here) + 1 if here in waiting else 0
        self._desk.open(waiting[place % len(waiting)])
        self._desk.front.go_to_ask()

    def allow_once(self) -> None:
        self._desk.front.allow_once()

    def find(self) -> None:
        self._desk.front.open_find()

    def find_next(self) -> None:
        self._desk.front.find_next(forward=True)

    def find_previous(self) -> None:
        self._desk.front.find_next(forward=False)

    def summarise(self) -> None:
        self._desk.front.store.context.summarise()

    def turn_tree(self) -> None:
        self._desk.front.tree.toggle()
