"""The strict parse of a command line: plain commands with literal words, or a reason why it is not that.

A line passes only if every node and token that tree-sitter-bash finds is on the allow-list, and if the tolerant
scanner finds the same commands with the same words. Words may be file patterns, and stand in a `for` loop; what they
become is found in expansion.py.
"""

import re
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Protocol

from errand.engine.permissions.shell.scanner import ScannedCommand, scan

MAX_LINE_BYTES = 8_192
PARSE_TIMEOUT_S = 0.2
_MAX_COMMANDS, _MAX_REDIRECTS, _MAX_WORDS, _MAX_DOLLARS = 50, 20, 300, 200
_MAX_PATTERN_LENGTH = 300
_COMPOUND = frozenset(("program", "list", "pipeline", "redirected_statement"))
_WORDS = frozenset(("word", "string", "raw_string", "concatenation", "number"))
_CONNECTORS = frozenset(("&&", "||", ";", "|", "|&", "\n"))
_REDIRECTS = frozenset((">", ">>", "<", ">&", "<&", "&>", "&>>"))
# Letters that are not invisible by their category, but have no picture.
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffd")
_ODD_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"))
_REASONS = {
    "variable_assignment": "sets a variable for the command",
    "function_definition": "defines a function",
    "&": "runs something in the background",
    "for_statement": "has a loop that is not plain",
    "while_statement": "has a loop",
    "simple_expansion": "inserts a variable",
    "expansion": "inserts a variable",
    "if_statement": "has a condition",
    "test_command": "has a condition",
    "negated_command": "has a condition",
    "compound_statement": "groups commands",
}
# What may stand between double quotes; `$` before these is itself. Possessive: each character of a word is read once.
_QUOTED = r"""[^"\\$`]++|\\[\s\S]|\$(?=["|)/\]])"""
_PIECE = re.compile(rf"""'([^']*+)'|"((?:{_QUOTED})*+)"|\\([\s\S])|([^'"\\]++)""")
_UNUSUAL = re.compile(r"[^\n\t -~]")
# Words, quotes, escapes, connectors and redirects. The grammar takes long over other text, so it does not get it.
_UNQUOTED = r"""[^'"\\$`()<>;&|]++|\\[\s\S]|'[^']*+'|&&|\|\|?&?|;|&?>>?&?|<&?(?!<)"""
_PLAIN_TEXT = re.compile(rf"""(?:{_UNQUOTED}|"(?:{_QUOTED})*+")*+""")
# The same with plain variables, for lines with a loop or the exit code of a command.
_VARIABLE = r"\$(?:\w++|\{\w++\}|\?)"
_WITH_VARIABLES = re.compile(rf"""(?:{_UNQUOTED}|{_VARIABLE}|"(?:{_QUOTED}|{_VARIABLE})*+")*+""")
_HAS_VARIABLES = re.compile(r"(?<!\S)for\s|\$\?")
_NOT_PLAIN = {
    "$": "part of this command is only known when it runs",
    "`": "part of this command is only known when it runs",
    "(": "there is a subshell, a function or a group",
    ")": "there is a subshell, a function or a group",
    "&": "something runs in the background",
    "<": "there is a here-document, or the input is not a plain file",
    "'": "a quote is not closed",
    '"': "a quote is not closed, or part of this command is only known when it runs",
}
_GLOB = re.compile(r"[*?\[]")
# What bash and this policy match alike: no ranges of letters, which depend on the locale, and no negation.
_PATTERN = re.compile(r"(?:[\w@%+=:,./*?-]|\[(?:\d-\d|[^\W_])++\])++")
# Stand for the value of a loop's variable, in quotes and without, and for the exit code of the command before.
QUOTED_VALUE, BARE_VALUE, EXIT_CODE = "\0", "\1", "\2"
# Names in capitals mean something to the shell and to programs, such as PATH.
_LOOP_VARIABLE = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_TILDE = re.compile(r"(?<![\w.)-])~")


class NotPlain(Exception):
    """The line is not a series of plain commands; the text says why. `is_text`: its characters are the reason."""

    def __init__(self, reason: str, *, is_text: bool = False) -> None:
        super().__init__(reason)
        self.is_text = is_text


@dataclass(frozen=True, slots=True)
class Redirect:
    """`target` is a file, or a descriptor for `>&` and `<&`."""

    operator: str
    target: str


@dataclass(frozen=True, slots=True)
class Loop:
    """`for VARIABLE in VALUES`; `patterns` are the positions of values that are file patterns."""

    variable: str
    values: tuple[str, ...]
    patterns: frozenset[int]


@dataclass(frozen=True, slots=True)
class PlainCommand:
    """A command with literal words; `connector` is what stands before it, empty for the first.

    `patterns` are the positions of words that are file patterns. In a `loop`, words may hold `QUOTED_VALUE` and
    `BARE_VALUE`. The words are empty for redirects of a whole loop.
    """

    argv: tuple[str, ...]
    redirects: tuple[Redirect, ...] = ()
    connector: str = ""
    patterns: frozenset[int] = frozenset()
    loop: Loop | None = None


def check_text(line: str) -> None:
    """The pre-filter: raises `NotPlain` for text that is too long or that a person cannot see as it is."""
    if len(line) > MAX_LINE_BYTES or len(line.encode("utf-8", "surrogatepass")) > MAX_LINE_BYTES:
        raise NotPlain(f"the command is longer than {MAX_LINE_BYTES // 1024} KB", is_text=True)
    for letter in _UNUSUAL.findall(line):
        if unicodedata.category(letter) in _ODD_CATEGORIES or letter in _BLANK_LETTERS:
            raise NotPlain(f"the command has an invisible or odd character (U+{ord(letter):04X})", is_text=True)


def parse(line: str, home: str) -> tuple[PlainCommand, ...]:
    """Return the commands of a line that passed `check_text`; raises `NotPlain`."""
    plain = (_WITH_VARIABLES if _HAS_VARIABLES.search(line) else _PLAIN_TEXT).match(line)
    assert plain is not None
    if plain.end() < len(line):
        raise NotPlain(_NOT_PLAIN.get(line[plain.end()], "the line is not plain shell syntax"))
    if line.count("$") > _MAX_DOLLARS:
        raise NotPlain(f"the line has more than {_MAX_DOLLARS} dollar signs")
    scanned = scan(line, {})
    if len(scanned) > _MAX_COMMANDS or sum(len(command.argv) for command in scanned) > _MAX_WORDS:
        raise NotPlain(f"the line has more than {_MAX_COMMANDS} commands, or {_MAX_WORDS} words")
    if not scanned or sum(len(command.redirects) for command in scanned) > _MAX_REDIRECTS:
        raise NotPlain(f"there is no command, or more than {_MAX_REDIRECTS} redirects")
    root = load_grammar()(line.encode())
    if root.has_error:
        raise NotPlain("the line is not complete, or not plain shell syntax")
    commands = tuple(_Reader(home).read(root))
    if not _agree(commands, scanned, home):
        raise NotPlain("the line can be read in two ways")
    return commands


class SyntaxNode(Protocol):
    """The part of a node of tree-sitter's syntax tree that is used."""

    @property
    def type(self) -> str: ...
    @property
    def is_named(self) -> bool: ...
    @property
    def has_error(self) -> bool: ...
    @property
    def text(self) -> bytes | None: ...
    @property
    def start_byte(self) -> int: ...
    @property
    def end_byte(self) -> int: ...
    @property
    def children(self) -> "Sequence[SyntaxNode]": ...


@cache
def load_grammar() -> Callable[[bytes], SyntaxNode]:
    """Return a function that parses text to its root node.

    The grammar is loaded on first use; without it every command is asked about.
    """
    try:
        tree_sitter, tree_sitter_bash = import_module("tree_sitter"), import_module("tree_sitter_bash")
    except ImportError as error:
        raise NotPlain("the shell grammar is not installed") from error
    language = tree_sitter.Language(tree_sitter_bash.language())

    def read(text: bytes) -> SyntaxNode:
        """Parse with a parser of its own: Python calls from the parser let other threads run."""
        deadline = time.monotonic() + PARSE_TIMEOUT_S

        def from_offset(at: int, _: object) -> bytes:
            return text[at:]

        def is_late(*_: object) -> bool:
            return time.monotonic() > deadline

        try:
            tree = tree_sitter.Parser(language).parse(from_offset, progress_callback=is_late)
        except ValueError as error:
            raise NotPlain("the line takes too long to read") from error
        return tree.root_node

    return read


class _Reader:
    """Walks the tree in the order of the text, without recursion."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._connector = ""
        self._words: tuple[str, ...] | None = None
        self._patterns: frozenset[int] = frozenset()
        self._redirects: list[Redirect] = []
        self._loop: Loop | None = None
        self._is_after_loop = False

    def read(self, root: SyntaxNode) -> Iterator[PlainCommand]:
        # None stands for the end of a loop.
        waiting: list[SyntaxNode | None] = [root]
        while waiting:
            node = waiting.pop()
            if node is None:
                yield from self._ended()
                self._loop, self._is_after_loop = None, True
            elif node.type in _COMPOUND and node.is_named:
                waiting += reversed(node.children)
            elif node.type in ("command", "test_command") and node.is_named:
                yield from self._ended()
                self._is_after_loop = False
                named = [*(self._command(node) if node.type == "command" else self._test(node))]
                self._words = tuple(word for word, _ in named)
                self._patterns = frozenset(at for at, (_, is_pattern) in enumerate(named) if is_pattern)
            elif node.type == "file_redirect" and node.is_named:
                self._redirects.append(self._redirect(node))
            elif node.type == "for_statement" and node.is_named and self._loop is None:
                yield from self._ended()
                waiting += [None, *reversed(self._loop_body(node))]
            elif not node.is_named and node.type in _CONNECTORS:
                yield from self._ended()
                self._connector = node.type
            elif node.type != "comment":
                raise _not_allowed(node)
        yield from self._ended()

    def _ended(self) -> Iterator[PlainCommand]:
        if self._words is not None or (self._redirects and self._is_after_loop):
            argv = self._words or ()
            yield PlainCommand(argv, tuple(self._redirects), self._connector, self._patterns, self._loop)
            self._words, self._patterns, self._redirects, self._connector = None, frozenset(), [], ";"
        elif self._redirects:
            raise NotPlain("a redirect stands without a command")

    def _loop_body(self, node: SyntaxNode) -> list[SyntaxNode]:
        """Starts the loop; returns the commands in it."""
        head, group = node.children[:-1], node.children[-1]
        kinds = [child.type for child in head[:3]]
        if kinds != ["for", "variable_name", "in"] or group.type != "do_group" or self._redirects:
            raise _not_allowed(node)
        values = [self._word(child) for child in head[3:] if child.is_named]
        if not values or any(child.type not in (";", "\n") for child in head[3:] if not child.is_named):
            raise _not_allowed(node)
        if not _LOOP_VARIABLE.fullmatch(_text(head[1])):
            raise NotPlain("the loop sets a variable that programs may read")
        patterns = frozenset(at for at, (_, is_pattern) in enumerate(values) if is_pattern)
        self._loop = Loop(_text(head[1]), tuple(value for value, _ in values), patterns)
        return [child for child in group.children if child.is_named or child.type not in ("do", "done")]

    def _command(self, node: SyntaxNode) -> Iterator[tuple[str, bool]]:
        program = ""
        for child in node.children:
            if child.type == "file_redirect" and child.is_named:
                self._redirects.append(self._redirect(child))
                continue
            if child.type == "command_name" and child.is_named:
                (name,) = child.children or [child]
                program = self._literal(name)
                yield program, False
                continue
            word, is_pattern = self._word(child)
            if EXIT_CODE in word and program != "echo":
                raise NotPlain("part of this command is only known when it runs")
            yield word.replace(EXIT_CODE, "$?"), is_pattern

    def _test(self, node: SyntaxNode) -> Iterator[tuple[str, bool]]:
        """`[ -f a ]` and `[ a = b ]`, as words."""
        waiting = list(reversed(node.children))
        if len(waiting) != 3 or (waiting[0].type, waiting[-1].type) != ("]", "["):
            raise _not_allowed(node)
        while waiting:
            child = waiting.pop()
            if child.type in ("unary_expression", "binary_expression") and child.is_named:
                waiting += reversed(child.children)
            elif child.type == "test_operator" or (not child.is_named and child.type in ("[", "]", "=", "!=")):
                yield _text(child), False
            else:
                yield self._literal(child), False

    def _redirect(self, node: SyntaxNode) -> Redirect:
        children = [child for child in node.children if child.type != "file_descriptor"]
        if len(children) != 2 or children[0].type not in _REDIRECTS:
            raise NotPlain("a redirect is not plain")
        return Redirect(children[0].type, self._literal(children[1]))

    def _literal(self, node: SyntaxNode) -> str:
        word, is_pattern = self._word(node)
        if is_pattern or any(letter in word for letter in (QUOTED_VALUE, BARE_VALUE, EXIT_CODE)):
            raise NotPlain("a file pattern or a variable stands where only plain text may")
        return word

    def _word(self, node: SyntaxNode) -> tuple[str, bool]:
        """Return a word as the program gets it, with marks for variables, and whether it is a file pattern."""
        assert node.text is not None
        text, waiting = node.text, [node]
        variables: list[tuple[int, int, str]] = []
        while waiting:
            inner = waiting.pop()
            if inner.is_named and inner.type in ("simple_expansion", "expansion"):
                start, end = inner.start_byte - node.start_byte, inner.end_byte - node.start_byte
                variables.append((start, end, self._mark(inner)))
                continue
            is_word = inner.is_named and (inner.type in _WORDS or inner.type == "string_content")
            if not is_word and not (not inner.is_named and inner.type in ('"', "$")):
                raise _not_allowed(inner)
            waiting += inner.children
        for start, end, mark in sorted(variables, reverse=True):
            text = text[:start] + mark.encode() + text[end:]
        return unquote(text.decode(), self._home)

    def _mark(self, node: SyntaxNode) -> str:
        text = _text(node)
        if self._loop is not None and text in (f"${self._loop.variable}", f"${{{self._loop.variable}}}"):
            return QUOTED_VALUE
        if text == "$?":
            return EXIT_CODE
        raise _not_allowed(node)


def unquote(text: str, home: str) -> tuple[str, bool]:
    """Return a word as the program gets it, and whether it is a file pattern.

    Raises `NotPlain` if the shell would expand anything but that and a leading `~/`.
    """
    parts: list[str] = []
    end = 0
    unquoted = ""
    is_pattern = False
    for piece in _PIECE.finditer(text):
        if piece.start() != end:
            break
        end = piece.end()
        single, double, escaped, bare = piece.groups()
        unquoted += "_" if bare is None else bare
        if bare is not None:
            is_whole = piece.start() == 0 and end == len(text)
            parts.append(_bare(bare, home, is_first=piece.start() == 0, is_last=end == len(text)))
            is_pattern = _GLOB.search(bare) is not None
            if is_pattern and not (is_whole and len(bare) <= _MAX_PATTERN_LENGTH and _PATTERN.fullmatch(bare)):
                raise NotPlain("a file pattern would be expanded")
        elif single is not None:
            parts.append(single)
        elif double is not None:
            parts.append(re.sub(r'\\([$`"\\\n])', lambda found: found[1].replace("\n", ""), double))
        else:
            parts.append(escaped.replace("\n", ""))
    if end != len(text):
        raise NotPlain("a word is not plain text")
    inside = unquoted.partition("{")[2]  # parts in quotes may stand between the braces
    if "," in inside or ".." in inside:
        raise NotPlain("braces would be expanded")
    return "".join(parts), is_pattern


def _bare(text: str, home: str, *, is_first: bool, is_last: bool) -> str:
    if is_first and (text.startswith("~/") or (text == "~" and is_last)) and not _GLOB.search(text):
        return home + text[1:].replace(QUOTED_VALUE, BARE_VALUE)
    if "$" in text or "`" in text or _TILDE.search(text):
        raise NotPlain("a word would be expanded")
    return text.replace(QUOTED_VALUE, BARE_VALUE)


def _agree(commands: tuple[PlainCommand, ...], scanned: list[ScannedCommand], home: str) -> bool:
    ours = [(tuple(_with_home(word, home) for word in argv), to) for argv, to in _as_scanned(commands)]
    theirs = [
        (tuple(_with_home(word, home) for word in command.argv), [_with_home(to, home) for _, to in command.redirects])
        for command in scanned
    ]
    return ours == theirs


def _as_scanned(commands: Sequence[PlainCommand]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the words and targets of the commands as the scanner has them: a loop is a command, its values are
    inserted.
    """
    before: Loop | None = None
    for command in commands:
        loop = command.loop
        if loop is not None and loop is not before:
            yield ["for", loop.variable, "in", *loop.values], []
        before = loop
        values = " ".join(loop.values).split() if loop is not None else []
        argv = [part for word in command.argv for part in _inserted(word, values)]
        yield argv, [redirect.target for redirect in command.redirects]


def _inserted(word: str, values: Sequence[str]) -> Iterator[str]:
    first, *rest = word.replace(BARE_VALUE, QUOTED_VALUE).split(QUOTED_VALUE)
    current = first
    for part in rest:
        current += values[0]
        for value in values[1:]:
            yield current
            current = value
        current += part
    yield current


def _text(node: SyntaxNode) -> str:
    assert node.text is not None
    return node.text.decode()


def _with_home(word: str, home: str) -> str:
    return home + word[1:] if word == "~" or word.startswith("~/") else word


def _not_allowed(node: SyntaxNode) -> NotPlain:
    reason = _REASONS.get(node.type)
    return NotPlain(f"the line {reason}" if reason else f"the line has shell syntax that is not plain ({node.type})")
