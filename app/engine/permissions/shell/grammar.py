"""The strict parse of a command line: plain commands with literal words, or a reason why it is not that.

A line passes only if every node and token that tree-sitter-bash finds is on the allow-list, and if the tolerant
scanner finds the same commands with the same words.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Protocol

from app.engine.permissions.shell.scanner import ScannedCommand, scan

LARGEST = 8_192
_MOST_COMMANDS, _MOST_REDIRECTS, _MOST_WORDS = 50, 20, 300
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
    "for_statement": "has a loop",
    "while_statement": "has a loop",
    "if_statement": "has a condition",
    "test_command": "has a condition",
    "negated_command": "has a condition",
    "compound_statement": "groups commands",
}
# Possessive: each character of a word is read once.
_PIECE = re.compile(r"""'([^']*+)'|"((?:[^"\\$`]++|\\[\s\S])*+)"|\\([\s\S])|([^'"\\]++)""")
_UNUSUAL = re.compile(r"[^\n\t -~]")
# Words, quotes, escapes, connectors and redirects. The grammar takes long over other text, so it does not get it.
_PLAIN_TEXT = re.compile(
    r"""(?:[^'"\\$`()<>;&|]++|\\[\s\S]|'[^']*+'|"(?:[^"\\$`]++|\\[\s\S])*+"|&&|\|\|?&?|;|&?>>?&?|<&?(?!<))*+"""
)
_NOT_PLAIN = {
    "$": "a variable or the output of another command is inserted",
    "`": "the output of another command is inserted",
    "(": "there is a subshell, a function or a group",
    ")": "there is a subshell, a function or a group",
    "&": "something runs in the background",
    "<": "there is a here-document, or the input is not a plain file",
    "'": "a quote is not closed",
    '"': "a quote is not closed, or something is inserted into the text",
}
_GLOB = re.compile(r"[*?\[]")
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
class PlainCommand:
    """A command with literal words; `connector` is what stands before it, empty for the first."""

    words: tuple[str, ...]
    redirects: tuple[Redirect, ...] = ()
    connector: str = ""


def check_text(line: str) -> None:
    """The pre-filter: raises `NotPlain` for text that is too long or that a person cannot see as it is."""
    if len(line) > LARGEST or len(line.encode("utf-8", "surrogatepass")) > LARGEST:
        raise NotPlain(f"the command is longer than {LARGEST // 1024} KB", is_text=True)
    for letter in _UNUSUAL.findall(line):
        if unicodedata.category(letter) in _ODD_CATEGORIES or letter in _BLANK_LETTERS:
            raise NotPlain(f"the command has an invisible or odd character (U+{ord(letter):04X})", is_text=True)


def parse(line: str, home: str) -> tuple[PlainCommand, ...]:
    """The commands of a line that passed `check_text`; raises `NotPlain`."""
    plain = _PLAIN_TEXT.match(line)
    assert plain is not None
    if plain.end() < len(line):
        raise NotPlain(_NOT_PLAIN.get(line[plain.end()], "the line is not plain shell syntax"))
    scanned = scan(line, {})
    if len(scanned) > _MOST_COMMANDS or sum(len(command.words) for command in scanned) > _MOST_WORDS:
        raise NotPlain(f"the line has more than {_MOST_COMMANDS} commands, or {_MOST_WORDS} words")
    if not scanned or sum(len(command.redirects) for command in scanned) > _MOST_REDIRECTS:
        raise NotPlain(f"there is no command, or more than {_MOST_REDIRECTS} redirects")
    root = _grammar()(line.encode())
    if root.has_error:
        raise NotPlain("the line is not complete, or not plain shell syntax")
    commands = tuple(_Reader(home).read(root))
    if not _agree(commands, scanned, home):
        raise NotPlain("the line can be read in two ways")
    return commands


class _Node(Protocol):
    """What is used of a node of tree-sitter's syntax tree."""

    @property
    def type(self) -> str: ...
    @property
    def is_named(self) -> bool: ...
    @property
    def has_error(self) -> bool: ...
    @property
    def text(self) -> bytes | None: ...
    @property
    def children(self) -> "Sequence[_Node]": ...


@cache
def _grammar() -> Callable[[bytes], _Node]:
    """Parses text to its root node. The grammar is loaded on first use; without it every command is asked about."""
    try:
        tree_sitter, tree_sitter_bash = import_module("tree_sitter"), import_module("tree_sitter_bash")
    except ImportError as error:
        raise NotPlain("the shell grammar is not installed") from error
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    return lambda text: parser.parse(text).root_node


class _Reader:
    """Walks the tree in the order of the text, without recursion."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._connector = ""
        self._words: tuple[str, ...] | None = None
        self._redirects: list[Redirect] = []

    def read(self, root: _Node) -> Iterator[PlainCommand]:
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node.type in _COMPOUND and node.is_named:
                waiting += reversed(node.children)
            elif node.type == "command" and node.is_named:
                yield from self._ended()
                self._words = tuple(self._command(node))
            elif node.type == "file_redirect" and node.is_named:
                self._redirects.append(self._redirect(node))
            elif not node.is_named and node.type in _CONNECTORS:
                yield from self._ended()
                self._connector = node.type
            elif node.type != "comment":
                raise _not_allowed(node)
        yield from self._ended()

    def _ended(self) -> Iterator[PlainCommand]:
        if self._words is not None:
            yield PlainCommand(self._words, tuple(self._redirects), self._connector)
            self._words, self._redirects, self._connector = None, [], ";"
        elif self._redirects:
            raise NotPlain("a redirect stands without a command")

    def _command(self, node: _Node) -> Iterator[str]:
        for child in node.children:
            if child.type == "file_redirect" and child.is_named:
                self._redirects.append(self._redirect(child))
            elif child.type == "command_name" and child.is_named:
                (name,) = child.children or [child]
                yield self._literal(name)
            else:
                yield self._literal(child)

    def _redirect(self, node: _Node) -> Redirect:
        children = [child for child in node.children if child.type != "file_descriptor"]
        if len(children) != 2 or children[0].type not in _REDIRECTS:
            raise NotPlain("a redirect is not plain")
        return Redirect(children[0].type, self._literal(children[1]))

    def _literal(self, node: _Node) -> str:
        waiting = [node]
        while waiting:
            inner = waiting.pop()
            is_word = inner.is_named and (inner.type in _WORDS or inner.type == "string_content")
            if not is_word and not (not inner.is_named and inner.type == '"'):
                raise _not_allowed(inner)
            waiting += inner.children
        assert node.text is not None
        return unquote(node.text.decode(), self._home)


def unquote(text: str, home: str) -> str:
    """A word as the program gets it; raises `NotPlain` if the shell would expand anything but a leading `~/`."""
    parts: list[str] = []
    end = 0
    unquoted = ""
    for piece in _PIECE.finditer(text):
        if piece.start() != end:
            break
        end = piece.end()
        single, double, escaped, bare = piece.groups()
        unquoted += "_" if bare is None else bare
        if bare is not None:
            parts.append(_bare(bare, home, is_first=piece.start() == 0, is_last=end == len(text)))
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
    return "".join(parts)


def _bare(text: str, home: str, *, is_first: bool, is_last: bool) -> str:
    if is_first and (text.startswith("~/") or (text == "~" and is_last)):
        return home + text[1:]
    if _GLOB.search(text):
        raise NotPlain("a file pattern would be expanded")
    if "$" in text or "`" in text or _TILDE.search(text):
        raise NotPlain("a word would be expanded")
    return text


def _agree(commands: tuple[PlainCommand, ...], scanned: list[ScannedCommand], home: str) -> bool:
    ours = [(command.words, [redirect.target for redirect in command.redirects]) for command in commands]
    theirs = [
        (tuple(_with_home(word, home) for word in command.words), [_with_home(to, home) for _, to in command.redirects])
        for command in scanned
    ]
    return [(tuple(_with_home(word, home) for word in words), to) for words, to in ours] == theirs


def _with_home(word: str, home: str) -> str:
    return home + word[1:] if word == "~" or word.startswith("~/") else word


def _not_allowed(node: _Node) -> NotPlain:
    shown = _REASONS.get(node.type)
    return NotPlain(f"the line {shown}" if shown else f"the line has shell syntax that is not plain ({node.type})")
