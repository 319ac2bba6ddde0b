"""The text of a git repository's configuration, reduced to what `git init` and `git clone` write."""

import re

_SECTION = re.compile(r'\[\s*([A-Za-z0-9-]+)(?:\s+"(?:[^"\\]|\\.)*")?\s*\]\s*')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=.*)?")
# None of these names a program, or a folder of programs.
_WRITTEN = {
    "core": "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks worktree",
    "remote": "url fetch tagopt promisor partialclonefilter",
    "branch": "remote merge",
    "submodule": "url active branch",
    "extensions": "objectformat partialclone refstorage",
    "user": "name email",
}
# Without them git takes the folder for no repository.
_MINIMAL_CONFIGURATION = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"


def plain_configuration(text: str) -> str:
    """The configuration without all other keys; the same text if it has no others."""
    section, kept = "", list[str]()
    for line in text.splitlines():
        rest = line.strip()
        if found := _SECTION.fullmatch(rest):
            section = found[1].lower()
            kept.append(line)
        elif not rest or rest[0] in "#;" or _is_written(section, rest):
            kept.append(line)
    return "".join(f"{line}\n" for line in kept) if "core" in text.lower() else _MINIMAL_CONFIGURATION


def _is_written(section: str, line: str) -> bool:
    found = _KEY.fullmatch(line)
    return found is not None and not line.endswith("\\") and found[1].lower() in _WRITTEN.get(section, "").split()
