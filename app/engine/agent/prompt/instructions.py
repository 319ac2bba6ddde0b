"""The part of a system prompt that people write for their project: AGENTS.md, of the workspace and above it.

It is text for a model and nothing else: what a tool may do is decided by the policy, which never reads it.
"""

import os
from pathlib import Path
from string import Template

from app.engine.agent.prompt.ground import folders, read_inside
from app.engine.agent.prompt.occasion import Occasion
from app.engine.agent.prompting import text
from app.protocol.prompts import PromptPart

NAME = "AGENTS.md"
OWN_FOLDER = Path(".config/errand")

# All of them together. Codex, from which the files come, has the same bound (project_doc_max_bytes).
MOST_BYTES = 32_768


def instructions(occasion: Occasion) -> PromptPart | None:
    """The person's own first, the nearest last. Where there is too much, the nearest is kept."""
    own = occasion.home / OWN_FOLDER
    ground = folders(occasion.workspace, occasion.home)
    places = ((own, own), *((folder, ground[0]) for folder in ground))
    room, shown = MOST_BYTES, list[tuple[Path, str]]()
    remarks: list[str] = []
    for folder, within in reversed(places):
        file = folder / NAME
        found = read_inside(file, within, room)
        if found is None or b"\0" in found:
            remarks += _why_unread(file, found)
        elif found.strip():
            if len(found) > room:
                remarks.append(f"Only the first {room:,} bytes of {file} are read: {MOST_BYTES:,} are read in all.")
            shown.insert(0, (file, found[:room].decode("utf-8", "replace").strip()))
            room -= len(found[:room])
    if not shown and not remarks:
        return None
    files = "\n\n".join(f"### {file}\n\n{said}" for file, said in shown)
    return PromptPart(
        name="instructions",
        text=Template(text("instructions")).safe_substitute(files=files) if shown else "",
        sources=tuple(str(file) for file, _ in shown),
        remarks=tuple(remarks),
    )


def _why_unread(file: Path, found: bytes | None) -> tuple[str, ...]:
    if found is not None:
        return (f"{file} is not read: it is no text.",)
    if not os.path.lexists(file):
        return ()
    return (f"{file} is not read: it cannot be opened, is no file, or is a link that leads out of the project.",)
