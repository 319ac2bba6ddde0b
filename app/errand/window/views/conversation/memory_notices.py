"""The notice that offers the embedding model, once a search in memory had to do without it, and shows its download."""

from PySide6.QtCore import QObject

from errand.client.texts.embedding_model import download_text, offer_text
from errand.text.translation import tr
from errand.window.stores.catalog import is_scripted
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.memory.embedding_model import EmbeddingModelStore
from errand.window.views.composer.input_panel import InputPanelView
from errand.window.views.composer.notices import NoticeKind
from errand.window.widgets.notice_line import Notice

_READY = tr("Memory is searched by meaning now.")
_BETTER = tr("Memory is searched with the better model now.")


class MemoryNotices(QObject):
    """Shown below a task that has ended, as the status of a running one stands in the same place; not in the tour."""

    def __init__(self, store: ConversationStore, models: EmbeddingModelStore, input_panel: InputPanelView) -> None:
        super().__init__(input_panel)
        self._store = store
        self._models = models
        self._notices = input_panel.notices
        self._composer = input_panel.composer
        store.taskUpdate.connect(self._show)
        store.loaded.connect(self._show)
        models.changed.connect(self._show)
        models.failed.connect(self._on_failed)
        input_panel.sent.connect(self._on_sent)
        self._notices.action_chosen.connect(self._on_action_chosen)
        self._notices.dismissed.connect(self._on_dismissed)
        self._show()

    def _show(self) -> None:
        task = self._store.task
        has_ended = task is not None and task.outcome.ended_at is not None and not is_scripted(task.request.model)
        self._notices.put("memory", self._notice() if has_ended else None)

    def _notice(self) -> Notice | None:
        model, is_followed = self._models.model, self._models.is_followed
        if model is None:
            return None
        match model.status:
            case "missing" if model.is_offered:
                start = tr("Continue") if model.done else tr("Download")
                return Notice(offer_text(model), actions=(start, tr("Not now")))
            case "downloading" if is_followed:
                return Notice(download_text(model), actions=(tr("Cancel"),), is_progress=True)
            case "failed" if is_followed:
                return Notice(model.reason, "failed", (tr("Try again"),), is_dismissible=True)
            case "ready" if is_followed:
                return Notice(_BETTER if model.has_simple else _READY, "done", is_dismissible=True)
            case _:
                return None

    def _on_action_chosen(self, kind: NoticeKind, number: int) -> None:
        model = self._models.model
        if kind != "memory" or model is None:
            return
        self._composer.setFocus()  # the button goes
        if model.status == "downloading":
            self._models.cancel()
        elif number == 0:
            self._models.download()
        else:
            self._models.decline()

    def _on_failed(self, reason: str) -> None:
        self._notices.show_message(reason, "failed")

    def _on_dismissed(self, kind: NoticeKind) -> None:
        if kind == "memory":
            self._models.stop_following()

    def _on_sent(self) -> None:
        if self._models.model is not None and self._models.model.status in ("ready", "failed"):
            self._models.stop_following()
