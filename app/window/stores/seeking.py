"""Looks for a row that is not loaded yet: page after page, and on another branch where a person allows that."""

from collections.abc import Callable

from app.window.stores.branch import Branch
from app.window.stores.branch_requests import BranchRequests
from app.window.stores.row_list import RowList
from app.window.stores.sought import Sought


class Seeking:
    """One row at a time. `reached` is told where it stands, `missed` that it is nowhere."""

    def __init__(
        self,
        branch: Branch,
        rows: RowList,
        branches: BranchRequests,
        load_older: Callable[[], None],
        reached: Callable[[int], None],
        missed: Callable[[], None],
    ) -> None:
        self._branch = branch
        self._rows = rows
        self._branches = branches
        self._load_older = load_older
        self._reached = reached
        self._missed = missed
        self._sought: Sought | None = None

    @property
    def is_on(self) -> bool:
        return self._sought is not None

    def begin(self, sought: Sought) -> None:
        """Look for this one and no longer for another; `go_on` takes the first step."""
        self._sought = sought

    def go_on(self) -> None:
        """Called once the rows are there, and whenever there are more of them."""
        sought = self._sought
        if sought is None or sought.is_switching:
            return
        if self._branch.holds(sought.node_id):
            self._sought = None
            self._reached(self._rows.index_of(self._branch.shown_at(sought.node_id), sought.number))
        elif self._branch.has_older:
            self._load_older()
        elif sought.switches and not self._branches.locked:
            self._sought = Sought(sought.node_id, sought.number, switches=False, is_switching=True)
            self._branches.switch(sought.node_id)
        else:
            self._sought = None
            self._missed()

    def arrive(self) -> None:
        """Another branch is shown: the one that was switched to, if one was."""
        if self._sought is not None:
            self._sought = self._sought.arrived()

    def refuse(self) -> None:
        """Something was refused; a branch that is switched to will not come then."""
        if self._sought is not None and self._sought.is_switching:
            self._sought = None

    def give_up(self) -> None:
        self._sought = None
