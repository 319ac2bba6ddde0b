"""The front matter of a SKILL.md: what stands between its two lines `---`, as plain texts by name.

No YAML library reads it: a repository writes it, and in YAML a few lines can grow into gigabytes. Known are the forms
in which people write a name and a description: plain, in quotes, and over several lines.
"""

import re

_FIELD = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*))?")
_BLOCK = re.compile(r"[>|][-+0-9]{0,2}(?:[ \t]+#.*)?")
_QUOTED = re.compile(r"""(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)')[ \t]*(?:#.*)?""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
# Lists, maps, anchors, references and tags: nothing that a name or a description is.
_NOT_PLAIN = tuple("[]{}&*!%@`,")


def front_matter(text: str) -> dict[str, str]:
    """The fields at its outermost level, each in one line; what is no text is left out. Empty where there is none."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        return {}
    fields: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines[1:]:
        if line.startswith("---"):
            break
        if line[:1] in ("", " ", "\t"):
            current.append(line)
        elif (found := _FIELD.fullmatch(line)) is not None:
            current = fields.setdefault(found[1], [])
            current[:] = [found[2] or ""]
        else:
            current = []
    return {name: said for name, parts in fields.items() if (said := _value(parts))}


def _value(lines: list[str]) -> str:
    first = lines[0].strip()
    if _BLOCK.fullmatch(first):
        return _in_one_line(" ".join(lines[1:]))
    whole = " ".join(line.strip() for line in lines).strip()
    if (quoted := _QUOTED.fullmatch(whole)) is not None:
        double, single = quoted.groups()
        return _in_one_line(_ESCAPED.sub(_meant, double) if double is not None else single.replace("''", "'"))
    if whole.startswith(('"', "'", *_NOT_PLAIN)):
        return ""
    return _in_one_line(" ".join(re.sub(r"(?:^|[ \t])#.*", "", line) for line in lines))


def _meant(escape: "re.Match[str]") -> str:
    return {"n": "\n", "t": "\t"}.get(escape[1], escape[1])


def _in_one_line(text: str) -> str:
    return " ".join(text.split())
