"""The tour's three tasks and their scratch folder, the same in every client; clients play them."""

import shutil
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import as_file, files
from pathlib import Path

from errand.protocol.tasks.groups import ApproveMode
from errand.protocol.tasks.methods import TaskStartParams
from errand.text.translation import tr

LABEL = tr("scripted replies, real tools")


@dataclass(frozen=True, slots=True)
class TourTask:
    """One task of the tour: its script is `resources/tour/<name>.yaml`."""

    name: str
    prompt: str
    approve: ApproveMode

    def start_in(self, workspace: Path, model: str = "") -> TaskStartParams:
        """Return what starts it, with its script or for real, with a model."""
        return TaskStartParams(
            prompt=self.prompt,
            model=model or f"scripted/{self.name}",
            workspace=str(workspace),
            mode="task",
            approve=self.approve,
        )


TOUR_TASKS = (
    TourTask("fix", "The tests in shop/ fail. Find out why, fix it, and run them again.", "all"),
    TourTask("note", "Write a short welcome note for the team; ask me what its tone should be.", "all"),
    TourTask("clean", "Remove the stale build folder.", "ask"),
)


def make_workspace(folder: Path) -> Path:
    """Return a fresh copy of the tour's files."""
    workspace = folder / f"tour-{datetime.now().astimezone():%Y%m%d-%H%M%S-%f}"
    with as_file(files("errand.resources") / "tour" / "workspace") as source:
        shutil.copytree(source, workspace, ignore=shutil.ignore_patterns("__pycache__"))
    return workspace
