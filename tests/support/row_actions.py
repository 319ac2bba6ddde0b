"""Records what row views ask for, instead of doing it."""

from PySide6.QtCore import QObject, QSize, Signal, SignalInstance
from PySide6.QtGui import QImage

from errand.protocol.asks import AskAnswerParams
from errand.protocol.conversations import Node
from errand.protocol.memory import ShareChoice
from tests.support.kept_pictures import KeptPictures


class KeptBranches(QObject):
    """Records the branch actions by the name of the intent; `why` locks them."""

    _lock_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []
        self.drafts: dict[str, str] = {}
        self.why = ""

    @property
    def locked(self) -> str:
        return self.why

    def lock(self, why: str) -> None:
        self.why = why
        self.lock_changed.emit()

    @property
    def lock_changed(self) -> SignalInstance:
        return self._lock_changed

    def switch(self, node_id: str) -> None:
        self.asked.append(("switch", node_id))

    def compare(self, node_ids: tuple[str, ...]) -> None:
        self.asked.append(("compare", " ".join(node_ids)))

    def fork(self, node_id: str) -> None:
        self.asked.append(("fork", node_id))

    def retry(self, node_id: str, model: str | None = None) -> None:
        self.asked.append(("retry", f"{node_id} {model or ''}".strip()))

    def edit(self, node_id: str) -> None:
        self.asked.append(("edit", node_id))

    def end_edit(self) -> None:
        self.asked.append(("end_edit", ""))

    def resend(self, node: Node, text: str) -> None:
        self.asked.append(("resend", f"{node.id}: {text}"))


class KeptContext(QObject):
    """Records the context actions by the name of the intent."""

    _kept_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []
        self.kept: set[str] = set()

    @property
    def kept_changed(self) -> SignalInstance:
        return self._kept_changed

    def is_kept(self, node_id: str) -> bool:
        return node_id in self.kept

    def keep(self, node_id: str) -> None:
        self.kept.add(node_id)
        self.asked.append(("keep", node_id))
        self.kept_changed.emit()

    def release(self, node_id: str) -> None:
        self.kept.discard(node_id)
        self.asked.append(("release", node_id))
        self.kept_changed.emit()

    def change_summary(self, node_id: str, text: str) -> None:
        self.asked.append(("change_summary", f"{node_id}: {text}"))


class KeptChanges(QObject):
    """Each task has changed `files` files; records what is to be reviewed."""

    _changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.files = 0
        self.reviewed: list[tuple[str, str]] = []

    @property
    def changed(self) -> SignalInstance:
        return self._changed

    def count(self, task_id: str) -> int:
        return self.files

    def review(self, task_id: str, name: str = "") -> None:
        self.reviewed.append((task_id, name))


class KeptRecall(QObject):
    """Records what was decided about memory, as if the engine had accepted it."""

    _changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.decisions: dict[tuple[str, str], ShareChoice] = {}
        self.not_given: set[str] = set()

    @property
    def changed(self) -> SignalInstance:
        return self._changed

    def decision(self, folder: str, other: str) -> ShareChoice | None:
        return self.decisions.get((folder, other))

    def share(self, folder: str, other: str, choice: ShareChoice) -> None:
        self.decisions[folder, other] = choice
        self._changed.emit()

    def is_given(self, node_id: str) -> bool:
        return node_id not in self.not_given

    def give(self, node_id: str, *, again: bool) -> None:
        self.not_given ^= {node_id}
        self._changed.emit()


class KeptActions:
    """Records the actions of row views."""

    def __init__(self) -> None:
        self.links: list[str] = []
        self.copied: list[str] = []
        self.copied_pictures: list[QSize] = []
        self.answers: list[AskAnswerParams] = []
        self.older = 0
        self.branches = KeptBranches()
        self.context = KeptContext()
        self.recall = KeptRecall()
        self.changes = KeptChanges()
        self.pictures = KeptPictures()
        self.opened_agents: list[str] = []
        self.stopped_tasks: list[str] = []
        self.opened_sources: list[tuple[str, str]] = []
        self.forgotten: list[str] = []
        self.settings_opened = 0

    def models(self) -> tuple[str, ...]:
        return ("one/model", "another/model")

    def open_link(self, url: str) -> None:
        self.links.append(url)

    def copy(self, text: str) -> None:
        self.copied.append(text)

    def copy_picture(self, picture: QImage) -> None:
        self.copied_pictures.append(picture.size())

    def answer(self, params: AskAnswerParams) -> None:
        self.answers.append(params)

    def load_older(self) -> None:
        self.older += 1

    def open_agent(self, agent_id: str) -> None:
        self.opened_agents.append(agent_id)

    def open_source(self, conversation_id: str, node_id: str) -> None:
        self.opened_sources.append((conversation_id, node_id))

    def forget(self, node_id: str) -> None:
        self.forgotten.append(node_id)

    def set_up_models(self) -> None:
        self.settings_opened += 1

    def stop_task(self, task_id: str) -> None:
        self.stopped_tasks.append(task_id)
