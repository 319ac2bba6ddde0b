"""A tolerant scanner of shell command lines: finds every simple command, in valid and in broken text.

It never fails, needs no grammar, and reads each character once. It serves the checks that must not miss a command
(hard floor, deny rules) and is the second opinion on the strict parse; it does not prove that a line is harmless.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

# Stands in a word for text that only the shell could compute.
UNKNOWN = "\ufffd"
_KEYWORDS = frozenset(
    ("then", "do", "done", "else", "elif", "fi", "if", "while", "until", "!", "{", "}", "time", "coproc", "function")
)
_ASSIGNMENT = re.compile(r"(?<!\w)([A-Za-z_]\w*+)\+?=(.*)", re.DOTALL)
# With the default of `${X:-default}`.
_VARIABLE = re.compile(r"\$(?:\{(\w++)(?::?[-=+]([^{}]*))?[^{}]*\}|(\w++))")
# Words before a command's own: builtins that assign, and keywords after which a name may stand.
_ASSIGNING = frozenset(("export", "declare", "local", "readonly", "typeset"))
_NAMING = frozenset(("coproc", "function"))
# Characters of one value, and of all values that a line inserts: `a=$a$a` doubles each time.
_MAX_VALUE_LENGTH, _MAX_INSERTED_LENGTH = 4_096, 100_000
# Possessive, so that hostile text is scanned once.
_PLAIN = re.compile(r"[^\s\\'\"`$;&|()<>#{}]++")
_SINGLE = re.compile(r"'([^']*+)'?")
_ANSI = re.compile(r"\$'((?:[^'\\]++|\\.)*+)'?", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_REDIRECT = re.compile(r"(?:&>>|&>|<<<|<<-|<<|<>|<&|>>|>\||>&|>|<)")
_DELIMITER = re.compile(r"""[ \t]*+("[^"\n]*+"|'[^'\n]*+'|[^\s;&|()<>]++)""")
_BRACES = re.compile(r"\{([^{},\s]*+(?:,[^{},\s]*+)++)\}")
_MAX_BRACES = 64
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}


@dataclass(slots=True)
class ScannedCommand:
    """A simple command: its words without quotes, its redirects as (operator, target), and what feeds it.

    `source` is the command before it in a pipeline. `text_in` is a here-document or here-string.
    """

    argv: list[str] = field(default_factory=list[str])
    redirects: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    source: "ScannedCommand | None" = None
    text_in: str = ""

    @property
    def program(self) -> str:
        """The name without its folder; empty for a line of assignments or redirects alone."""
        return program_name(self.argv[0]) if self.argv else ""


def program_name(word: str) -> str:
    return word.rpartition("/")[2].rpartition("\\")[2] if word else ""


def scan(line: str, variables: Mapping[str, str]) -> list[ScannedCommand]:
    """Return all simple commands of the line in order, those in substitutions and compound commands included."""
    return _Scanner(line, dict(variables)).run()


@dataclass(slots=True)
class _Open:
    """A substitution under way: the command and the word that go on after it, and how it ends."""

    command: ScannedCommand
    word: str | None
    is_quoted: bool
    end: str


class _Scanner:
    def __init__(self, line: str, variables: dict[str, str]) -> None:
        self._line = line
        self._variables = variables
        self._at = 0
        self._command = ScannedCommand()
        self._word: str | None = None
        self._keyword = ""
        self._loops: set[str] = set()
        self._inserted = 0
        self._has_braces = False
        self._operator = ""
        self._is_quoted = False
        self._open: list[_Open] = []
        self._documents: list[tuple[ScannedCommand, str]] = []
        self.commands: list[ScannedCommand] = []

    def run(self) -> list[ScannedCommand]:
        while self._at < len(self._line):
            if self._is_quoted:
                self._step_quoted()
            else:
                self._step()
        self._end_command()
        while self._open:
            self._close()
            self._end_command()
        return self.commands

    def _step(self) -> None:
        letter = self._line[self._at]
        if letter in " \t\r\v\f":
            self._end_word()
            self._at += 1
        elif letter in ";&|\n" and not self._line.startswith(("&>",), self._at):
            self._separator(letter)
        elif letter in "<>&":
            self._redirect()
        elif letter in "()":
            self._parenthesis(letter)
        elif letter == "#" and self._word is None:
            self._comment()
        elif letter in "{}":
            self._add(letter, 1)
            self._has_braces = True
        elif not self._quoting(letter):
            self._take_plain()

    def _quoting(self, letter: str) -> bool:
        """Quotes, escapes, variables and substitutions outside double quotes."""
        line, at = self._line, self._at
        if line.startswith("\\\n", at):
            self._at += 2  # the line goes on
        elif letter == "\\":
            self._add(line[at + 1 : at + 2], 2)
        elif letter == "'":
            match = _SINGLE.match(line, at)
            assert match
            self._add(match[1], match.end() - at)
        elif letter == '"':
            self._is_quoted = True
            self._add("", 1)
        elif letter == "`":
            self._backtick()
        elif letter == "$":
            self._dollar()
        else:
            return False
        return True

    def _step_quoted(self) -> None:
        line, at = self._line, self._at
        letter = line[at]
        if letter == '"':
            self._is_quoted = False
            self._at += 1
        elif line.startswith("\\\n", at):
            self._at += 2
        elif letter == "\\":
            escaped = line[at + 1 : at + 2]
            self._add(escaped if escaped in '$`"\\' else f"\\{escaped}", 2)
        elif letter == "`":
            self._backtick()
        elif letter == "$":
            self._dollar()
        else:
            end = min((position for mark in '"\\`$' if (position := line.find(mark, at)) >= 0), default=len(line))
            end = min(end, at + 1000)  # so that a missing mark is not looked for again and again over a long text
            self._add(line[at:end], end - at)

    def _take_plain(self) -> None:
        match = _PLAIN.match(self._line, self._at)
        text = match[0] if match else self._line[self._at]
        self._add(text, len(text))

    def _add(self, text: str, length: int) -> None:
        self._word = (self._word or "") + text
        self._at += length

    def _dollar(self) -> None:
        line, at = self._line, self._at
        if line.startswith("$(", at):
            self._begin(")", 2)
        elif not self._is_quoted and (ansi := _ANSI.match(line, at)):
            self._add(_ESCAPE.sub(_unescaped, ansi[1]), ansi.end() - at)
        elif variable := _VARIABLE.match(line, at):
            braced, default, bare = variable.groups()
            self._expand(braced or bare, default or UNKNOWN, variable.end() - at)
        else:
            self._add(UNKNOWN if line.startswith("${", at) else "$", 1)

    def _expand(self, name: str, default: str, length: int) -> None:
        """Insert a value; outside quotes its blanks separate words, as for `rm${IFS}-rf`.

        The words of a loop are separate in quotes too: the variable has each in turn.
        """
        value = self._variables.get(name, default)
        self._inserted += len(value)
        if self._inserted > _MAX_INSERTED_LENGTH:
            value = UNKNOWN
        parts = [value] if self._is_quoted and name not in self._loops else value.split()
        if parts:
            self._add(parts[0], length)
        else:
            if value:
                self._end_word()
            self._at += length
        for part in parts[1:]:
            self._end_word()
            self._add(part, 0)

    def _backtick(self) -> None:
        if self._open and self._open[-1].end == "`":
            self._end_command()
            self._close()
            self._at += 1
        else:
            self._begin("`", 1)

    def _parenthesis(self, letter: str) -> None:
        if letter == "(":
            self._end_command()
            self._begin(")", 1, keeps_command=False)
            return
        self._end_command()
        if self._open and self._open[-1].end == ")":
            self._close()
        self._at += 1

    def _begin(self, end: str, length: int, *, keeps_command: bool = True) -> None:
        """Start a substitution; what surrounds it goes on when it ends."""
        command = self._command if keeps_command else ScannedCommand()
        word = (self._word or "") + UNKNOWN if keeps_command else None
        self._open.append(_Open(command, word, self._is_quoted, end))
        self._command, self._word, self._is_quoted, self._operator = ScannedCommand(), None, False, ""
        self._at += length

    def _close(self) -> None:
        outer = self._open.pop()
        self._command, self._word, self._is_quoted = outer.command, outer.word, outer.is_quoted

    def _separator(self, letter: str) -> None:
        ended = self._end_command()
        self._at += 1
        if letter == "|":
            if self._line[self._at : self._at + 1] == "|":
                self._at += 1
            else:
                self._at += self._line[self._at : self._at + 1] == "&"
                self._command.source = ended
        elif letter == "\n" and self._documents:
            self._read_documents()

    def _redirect(self) -> None:
        line, at = self._line, self._at
        if line.startswith(("<(", ">("), at):
            self._begin(")", 2)
            return
        if self._word is not None and self._word.isdecimal():
            self._word = None  # a descriptor
        self._end_word()
        match = _REDIRECT.match(line, at)
        self._operator = match[0] if match else ""
        self._at += len(self._operator) or 1
        if self._operator in ("<<", "<<-") and (delimiter := _DELIMITER.match(line, self._at)):
            self._documents.append((self._command, delimiter[1].strip("\"'").replace("\\", "")))
            self._at = delimiter.end()
            self._command.redirects.append((self._operator, delimiter[1]))
            self._operator = ""

    def _read_documents(self) -> None:
        """The bodies of here-documents, which begin on the line after their operator."""
        for command, delimiter in self._documents:
            start = end = self._at
            while end < len(self._line):
                line_end = self._line.find("\n", end)
                line_end = len(self._line) if line_end < 0 else line_end
                if self._line[end:line_end].lstrip("\t") == delimiter:
                    break
                end = line_end + 1
            else:
                line_end = len(self._line)
            command.text_in += self._line[start:end]
            self._at = min(line_end + 1, len(self._line))
        self._documents = []

    def _comment(self) -> None:
        end = self._line.find("\n", self._at)
        self._at = len(self._line) if end < 0 else end

    def _end_word(self) -> None:
        word, self._word = self._word, None
        if word is None:
            return
        expanded = _expanded(word) if self._has_braces else [word]
        self._has_braces = False
        if self._operator:
            if self._operator == "<<<":
                self._command.text_in += word
            self._command.redirects.append((self._operator, word))
            self._operator = ""
            return
        for word in expanded:
            self._take_word(word)

    def _take_word(self, word: str) -> None:
        command = self._command
        if word == "{" and self._keyword in _NAMING and len(command.argv) == 1:
            command.argv.clear()  # the name of what follows
            self._keyword = ""
            return
        if not command.argv:
            if word in _KEYWORDS or (self._keyword == "time" and word in ("-p", "--")):
                self._keyword = word if word in _KEYWORDS else "time"
                return
            if self._assigns(word):
                return
        elif command.argv[0] in _ASSIGNING:
            self._assigns(word)
        command.argv.append(word)

    def _assigns(self, word: str) -> bool:
        assignment = _ASSIGNMENT.match(word)
        if assignment is not None:
            self._variables[assignment[1]] = assignment[2] if len(assignment[2]) <= _MAX_VALUE_LENGTH else UNKNOWN
        return assignment is not None

    def _end_command(self) -> ScannedCommand:
        self._end_word()
        ended = self._command
        if ended.argv[:1] == ["for"] and ended.argv[2:3] == ["in"]:
            self._variables[ended.argv[1]] = " ".join(ended.argv[3:])[:_MAX_VALUE_LENGTH]
            self._loops.add(ended.argv[1])
        if ended.argv or ended.redirects:
            self.commands.append(ended)
        self._command, self._operator, self._keyword = ScannedCommand(), "", ""
        return ended


def _unescaped(found: re.Match[str]) -> str:
    hexadecimal, short, long, octal, other = found.groups()
    if other is not None:
        return _NAMED.get(other, other)
    code = int(octal, 8) if octal else int(hexadecimal or short or long, 16)
    return chr(code) if 0 < code < 0x110000 else UNKNOWN


def _expanded(word: str) -> list[str]:
    """Return the words of a brace expansion; the word itself if there is none, or there are too many."""
    expansions = [word]
    while len(expansions) < _MAX_BRACES:
        brace = next(
            ((index, match) for index, expansion in enumerate(expansions) if (match := _BRACES.search(expansion))), None
        )
        if brace is None:
            break
        index, match = brace
        before, after = expansions[index][: match.start()], expansions[index][match.end() :]
        expansions[index : index + 1] = [f"{before}{part}{after}" for part in match[1].split(",")]
    return expansions
