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
# Without them git does not recognise the repository.
_MINIMAL_CONFIGURATION = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"


def plain_configuration(text: str) -> str:
    """Return the configuration without any other key; the same text if it has no other."""
    section, lines = "", list[str]()
    for line in text.splitlines():
        rest = line.strip()
        if header := _SECTION.fullmatch(rest):
            section = header[1].lower()
            lines.append(line)
        elif not rest or rest[0] in "#;" or _is_written(section, rest):
            lines.append(line)
    return "".join(f"{line}\n" for line in lines) if "core" in text.lower() else _MINIMAL_CONFIGURATION


def _is_written(section: str, line: str) -> bool:
    assignment = _KEY.fullmatch(line)
    return (
        assignment is not None
        and not line.endswith("\\")
        and assignment[1].lower() in _WRITTEN.get(section, "").split()
    )
