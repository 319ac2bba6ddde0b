"""A command line with marks where its text is known only when it runs.

The grammar finds what the shell computes; the tolerant scanner then reads the marked text like any other.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from errand.engine.permissions.shell.grammar import MAX_LINE_BYTES, NotPlain, SyntaxNode, load_grammar
from errand.engine.permissions.shell.scanner import UNKNOWN

# Noncharacters of Unicode. ONE_WORD is quoted: exactly one word. SEVERAL_WORDS may be none or many.
ONE_WORD, SEVERAL_WORDS, STREAM, HOME, SEARCH_PATH = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3", "\ufdd4"
MARKS = frozenset((ONE_WORD, SEVERAL_WORDS, STREAM, HOME, SEARCH_PATH, UNKNOWN))
_COMPUTED = frozenset(
    ("simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion")
)
_SUBSTITUTIONS = frozenset(("command_substitution", "process_substitution"))
_NUMBERS = frozenset(("$?", "$#", "$$", "$!", "${#}", "${?}"))
_NAMED_MARKS = {"$HOME": HOME, "${HOME}": HOME, "$PATH": SEARCH_PATH, "${PATH}": SEARCH_PATH}
_CODE_IN_TEXT = re.compile(r"\$\(|`")
_SINGLE_QUOTED = re.compile(r"\\[\s\S]|'[^']*+'")
_RUN_TIME_SIGNS = re.compile(r"[$`*?\[{]|[<>]\(|~\w")
_QUOTED = re.compile(r"""'[^']*+'|"(?:[^"\\]|\\[\s\S])*+\"""")
_EXTENDED_PATTERN = re.compile(r"[?*+@!]\(")
_MAX_CONSTANTS, _MAX_PARTS = 20, 1_000
_BACKTICKS = re.compile(r"`((?:[^`\\]|\\[\s\S])*+)`")
_QUOTING = frozenset("'\"\\")
# Assignments of one plain word each, with which a line begins.
_CONSTANT = re.compile(r"\s*+([A-Za-z_]\w*+)=([a-z0-9_./+-]++)[ \t]*+(?:;(?!;)|\n|&&)")


@dataclass(frozen=True, slots=True)
class Assignment:
    """A variable that the line sets: its name with an index, and the value as it is written, with marks."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class MarkedLine:
    """`inner_code` is the text of each substitution. `is_read` is False if parts may be misread."""

    text: str
    inner_code: tuple[str, ...]
    assignments: tuple[Assignment, ...]
    constants: Mapping[str, str]
    is_read: bool


def mark_line(line: str, inherited: Mapping[str, str]) -> MarkedLine:
    """Return the line with marks. `inherited` are the constants of the line around a substitution."""
    try:
        root = load_grammar()(line.encode("utf-8", "surrogateescape"))
    except (NotPlain, UnicodeEncodeError):
        return MarkedLine(line, (), (), {}, is_read=False)
    constants = {**inherited, **dict(_constants(line))}
    marker = _Marker(constants)
    text = marker.marked(root)
    has_patterns = "extglob" in line and _EXTENDED_PATTERN.search(_QUOTED.sub("_", text)) is not None
    is_odd = root.has_error and _RUN_TIME_SIGNS.search(_SINGLE_QUOTED.sub("_", line)) is not None
    is_too_much = len(marker.inner_code) + len(marker.assignments) > _MAX_PARTS
    is_read = not is_odd and not has_patterns and not is_too_much
    return MarkedLine(text, tuple(marker.inner_code), tuple(marker.assignments), constants, is_read)


def _constants(line: str) -> Iterator[tuple[str, str]]:
    """Yield the variables that the line sets at its beginning, to a plain word, and changes nowhere else."""
    end = 0
    names: set[str] = set()
    while len(line) <= MAX_LINE_BYTES and len(names) < _MAX_CONSTANTS and (assignment := _CONSTANT.match(line, end)):
        end = assignment.end()
        name = assignment[1]
        names.add(name)
        mentions = len(re.findall(rf"\b{name}\b", line))
        uses = len(re.findall(rf"\$(?:{name}\b|\{{{name}\}})", line))
        if mentions == uses + 1:
            yield name, assignment[2]


class _Marker:
    def __init__(self, constants: Mapping[str, str]) -> None:
        self._constants = constants
        self._changes: list[tuple[int, int, str]] = []
        self.inner_code: list[str] = []
        self.assignments: list[Assignment] = []

    def marked(self, root: SyntaxNode) -> str:
        waiting = [(root, False)]
        while waiting:
            node, is_quoted = waiting.pop()
            waiting += ((child, is_quoted or node.type == "string") for child in self._visit(node, is_quoted))
        return self._with_changes(root, self._changes)

    def _visit(self, node: SyntaxNode, is_quoted: bool) -> Iterator[SyntaxNode]:
        """Mark the node; yields the children that are to be visited."""
        first = node.children[0].type if node.children else ""
        if node.is_named and node.type in _COMPUTED:
            self._replace(node, self._mark(node, is_quoted))
        elif (node.type, first) in (("test_command", "[["), ("compound_statement", "((")):
            self._replace(node, ":")
        elif node.type == "variable_assignment":
            self._assign(node)
        elif node.type == "c_style_for_statement":
            yield from self._without_header(node)
        elif node.type == "case_statement":
            yield from self._without_subject(node)
        elif node.type == "case_item":
            yield from self._without_pattern(node)
        else:
            if node.type == "heredoc_redirect":
                self._collect_backticks(node)
            yield from node.children

    def _collect_backticks(self, node: SyntaxNode) -> None:
        """The grammar takes old substitutions in a here-document for text."""
        parts = {child.type: node_text(child) for child in node.children}
        if _QUOTING.isdisjoint(parts.get("heredoc_start", "")):
            codes = _BACKTICKS.findall(parts.get("heredoc_body", ""))
            self.inner_code += (re.sub(r"\\([$`\\])", r"\1", code) for code in codes)

    def _replace(self, node: SyntaxNode, text: str) -> None:
        self._collect_code(node)
        self._changes.append((node.start_byte, node.end_byte, text))

    def _mark(self, node: SyntaxNode, is_quoted: bool) -> str:
        text = node_text(node)
        if node.type == "arithmetic_expansion" or text in _NUMBERS:
            return "0"
        name = text.strip("${}")
        if node.type in ("simple_expansion", "expansion") and name in self._constants:
            return self._constants[name]
        if text in _NAMED_MARKS:
            return _NAMED_MARKS[text]
        if node.type == "process_substitution":
            return STREAM
        is_list = node.type != "command_substitution" and "@" in text
        return ONE_WORD if is_quoted and not is_list else SEVERAL_WORDS

    def _assign(self, node: SyntaxNode) -> None:
        name, value = node.children[0], node.children[2:]
        changes: list[tuple[int, int, str]] = []
        waiting = [(child, False) for child in value]
        while waiting:
            child, is_quoted = waiting.pop()
            if child.is_named and child.type in _COMPUTED:
                changes.append((child.start_byte, child.end_byte, self._mark(child, is_quoted)))
            else:
                waiting += ((inner, is_quoted or child.type == "string") for inner in child.children)
        text = "".join(self._with_changes(child, changes) for child in value)
        self.assignments.append(Assignment(node_text(name), text))
        self._replace(node, " ")

    def _without_header(self, node: SyntaxNode) -> Iterator[SyntaxNode]:
        opening = next((child for child in node.children if child.type == "(("), node)
        closing = next((child for child in node.children if child.type == "))"), node)
        self._changes.append((opening.start_byte, closing.end_byte, "x"))
        for child in node.children:
            if child.start_byte < closing.end_byte:
                self._collect_code(child)
            else:
                yield child

    def _without_subject(self, node: SyntaxNode) -> Iterator[SyntaxNode]:
        word = next((child for child in node.children if child.type == "in"), node)
        self._changes.append((node.start_byte, word.end_byte, ":;"))
        for child in node.children:
            if child.start_byte < word.end_byte:
                self._collect_code(child)
            else:
                yield child

    def _without_pattern(self, node: SyntaxNode) -> Iterator[SyntaxNode]:
        closing = next((child for child in node.children if child.type == ")"), node)
        self._changes.append((node.start_byte, closing.end_byte, " "))
        for child in node.children:
            if child.start_byte < closing.end_byte:
                self._collect_code(child)
            else:
                yield child

    def _collect_code(self, node: SyntaxNode) -> None:
        """Collect what the shell would run to compute the node; text in quotes too, which arithmetic computes later."""
        waiting = [node]
        while waiting:
            inner = waiting.pop()
            text = node_text(inner)
            if inner.is_named and inner.type in _SUBSTITUTIONS:
                is_old = text.startswith("`")
                self.inner_code.append(re.sub(r"\\([$`\\])", r"\1", text[1:-1]) if is_old else text[2:-1])
            elif inner.type in ("raw_string", "ansi_c_string") and _CODE_IN_TEXT.search(text):
                self.inner_code.append(text.removeprefix("$")[1:-1])
            else:
                waiting += inner.children

    def _with_changes(self, node: SyntaxNode, changes: list[tuple[int, int, str]]) -> str:
        data, at, parts = node.text or b"", node.start_byte, list[bytes]()
        start = at
        for begin, end, text in sorted(changes):
            if begin < at or end > node.end_byte:
                continue
            parts += (data[at - start : begin - start], text.encode())
            at = end
        parts.append(data[at - start :])
        return b"".join(parts).decode("utf-8", "surrogateescape")


def node_text(node: SyntaxNode) -> str:
    """Return the source text of a node."""
    return (node.text or b"").decode("utf-8", "surrogateescape")
