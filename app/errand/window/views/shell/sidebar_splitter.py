"""The sidebar beside the tabs, shown or hidden, as wide as a person made it."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSplitter, QWidget

from errand.window.stores.window_state import WindowStateStore
from errand.window.views.shell.tabs import TabsView
from errand.window.views.sidebar.sidebar import SidebarView
from errand.window.widgets.boxes import fill, set_vbox


class SidebarSplitterView(QSplitter):
    """Keeps in `state` whether the sidebar is hidden, and its width. While it is hidden, the tabs have a button."""

    def __init__(self, sidebar: SidebarView, tabs: TabsView, state: WindowStateStore) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._sidebar = sidebar
        self._tabs = tabs
        self._state = state
        right = QWidget()
        set_vbox(right, fill(tabs), spacing=0)
        self.addWidget(sidebar)
        self.addWidget(right)
        self.setStretchFactor(1, 1)
        self.setChildrenCollapsible(False)
        tabs.sidebar_button.clicked.connect(self.toggle_sidebar)

    def fit(self, width: int) -> None:
        """Give the sidebar its stored width, and the tabs the rest of `width`; then hide it if it is to be hidden."""
        sidebar_width = self._state.settings.sidebar_width
        self.setSizes([sidebar_width, width - sidebar_width])
        self._show_sidebar()

    def toggle_sidebar(self) -> None:
        """Show or hide the sidebar."""
        self._state.settings.sidebar_hidden = not self._state.settings.sidebar_hidden
        self._show_sidebar()
        self._state.save_soon()

    def save_width(self) -> None:
        """Note the width of a visible sidebar; the state is not written yet."""
        if self._sidebar.isVisible():
            self._state.settings.sidebar_width = self.sizes()[0]

    def _show_sidebar(self) -> None:
        is_hidden = self._state.settings.sidebar_hidden
        self._sidebar.setVisible(not is_hidden)
        self._tabs.sidebar_button.setHidden(not is_hidden)
