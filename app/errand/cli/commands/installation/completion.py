"""`errand completion`: a script that completes commands, options and values in bash, zsh or fish.

The scripts hold what the table of commands says; only names that an engine knows are asked for, with `errand complete`.
"""

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Literal, NamedTuple

from errand.cli.command import Command
from errand.cli.options import Action, Argument, CommandOptions, Described
from errand.cli.output import CommandOutput
from errand.cli.table import TABLE
from errand.system.paths import Paths
from errand.text.translation import tr

_EPILOG = tr(
    "Install it for every new shell:\n  errand completion bash > "
    "~/.local/share/bash-completion/completions/errand\n  errand completion zsh > "
    "~/.zfunc/_errand      (with fpath+=~/.zfunc in .zshrc)\n  errand completion fish > "
    "~/.config/fish/completions/errand.fish"
)

_Shell = Literal["bash", "zsh", "fish"]


class CompletionOptions(CommandOptions, frozen=True, kw_only=True):
    shell: Annotated[_Shell, Argument(None, "the shell")]


async def completion(options: CompletionOptions, paths: Paths, output: CommandOutput) -> int:
    output.terminal.write_raw(script(options.shell))
    return 0


COMPLETION = Command(CompletionOptions, completion, epilog=_EPILOG)


class _Completed(NamedTuple):
    """A command with all that the scripts need of it."""

    name: str
    help: str
    options: list[Described]
    arguments: list[Described]
    actions: tuple[Action, ...]


def script(shell: _Shell) -> str:
    """Return the script, with a newline at its end."""
    commands = list(_commands())
    writers: dict[str, Callable[[list[_Completed]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    # zsh finds the script by its first line.
    head = "#compdef errand\n" if shell == "zsh" else ""
    return f"{head}# Made by `errand completion {shell}`.\n{writers[shell](commands)}"


def _commands() -> Iterator[_Completed]:
    names = tuple(entry.name for entry in TABLE.entries)
    for entry in TABLE.entries:
        command = entry.load()
        parts = [part._replace(choices=names) if part.named == "command" else part for part in entry.described()]
        options = [part for part in parts if part.is_option]
        arguments = [part for part in parts if not part.is_option]
        yield _Completed(entry.name, tr(entry.help), options, arguments, command.actions)


def _values(part: Described) -> str:
    """Return what completes a value, as the scripts name it: @ and its choices, its kind, or a dash for nothing."""
    return f"@{','.join(part.choices)}" if part.choices else (part.named or "-")


def _firsts(actions: tuple[Action, ...]) -> dict[str, str]:
    """Return what completes the word after each action."""
    return {name: action.first for action in actions for name in action.names if action.first is not None}


def _names(actions: tuple[Action, ...]) -> dict[str, str]:
    """Return the actions with their help; of several with one name the first."""
    names: dict[str, str] = {}
    for action in actions:
        for name in action.names:
            names.setdefault(name, tr(action.help))
    return names


def _bash(commands: list[_Completed]) -> str:
    cases: list[str] = []
    for command in commands:
        flags = " ".join(["--help", *(option.name for option in command.options if not option.metavar)])
        valued = " ".join(f"{option.name}={_values(option)}" for option in command.options if option.metavar)
        actions = " ".join(f"{name}={first}" for name, first in _firsts(command.actions).items())
        arguments = [f"{_values(argument)}{'*' if argument.repeats else ''}" for argument in command.arguments]
        if command.actions:
            arguments = [f"@{','.join(_names(command.actions))}"]
        lists = f"flags='{flags}'; valued='{valued}'; places='{' '.join(arguments)}'; after='{actions}'"
        cases.append(f"    {command.name}) {lists} ;;")
    names = " ".join(command.name for command in commands)
    return _BASH.replace("%COMMANDS%", names).replace("%CASES%", "\n".join(cases))


_BASH = r"""_errand_values() {
  local kind=$1 line
  case $kind in
    @*) kind=${kind:1}; COMPREPLY=($(compgen -W "${kind//,/ }" -- "$cur")) ;;
    -) ;;
    file) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    folder) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    *)
      COMPREPLY=()
      while IFS=$'\t' read -r line _; do
        COMPREPLY+=("$(printf '%q' "$line")")
      done < <(command errand complete "$kind" "$cur" "${words[@]:1:${#words[@]}-2}" 2>/dev/null) ;;
  esac
}

_errand() {
  local cur place=0 action= word flags= valued= places= after= one i
  # Words with : and = are one word here, whatever COMP_WORDBREAKS has.
  local line=${COMP_LINE:0:COMP_POINT}
  local -a words
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  cur=${words[-1]}
  COMPREPLY=()
  if ((${#words[@]} <= 2)); then
    COMPREPLY=($(compgen -W "%COMMANDS% --help --version" -- "$cur"))
    return
  fi
  case ${words[1]} in
%CASES%
    *) return ;;
  esac
  for ((i = 2; i < ${#words[@]} - 1; i++)); do
    word=${words[i]}
    if [[ $word == -* ]]; then
      for one in $valued; do
        [[ ${one%%=*} == "$word" ]] && { ((i++)); break; }
      done
    else
      ((place == 0)) && action=$word
      ((place++))
    fi
  done
  if ((i >= ${#words[@]})); then
    _errand_values "${one#*=}"
  elif [[ $cur == -* ]]; then
    local names=$flags
    for one in $valued; do names+=" ${one%%=*}"; done
    COMPREPLY=($(compgen -W "$names" -- "$cur"))
  elif ((place == 1)) && [[ " $after" == *" $action="* ]]; then
    one=" $after"; one=${one#*" $action="}
    _errand_values "${one%% *}"
  else
    local -a kinds=($places)
    one=${kinds[place]-}
    ((place && ${#kinds[@]} && place >= ${#kinds[@]})) && [[ ${kinds[-1]} == *'*' ]] && one=${kinds[-1]}
    one=${one%'*'}
    [[ $one ]] && _errand_values "$one"
  fi
  # Readline replaces only what follows the last of these signs.
  local sign
  for sign in : =; do
    if [[ $COMP_WORDBREAKS == *$sign* && $cur == *$sign* ]]; then
      local before=${cur%"${cur##*"$sign"}"}
      for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$before"}; done
    fi
  done
}

complete -F _errand errand
"""


def _zsh(commands: list[_Completed]) -> str:
    listed = "\n".join(f"    {_quoted(f'{command.name}:{command.help}')}" for command in commands)
    cases = "\n".join(
        f"    {command.name}) _arguments -S {' '.join(_zsh_arguments(command))} ;;" for command in commands
    )
    return _ZSH.replace("%COMMANDS%", listed).replace("%CASES%", cases)


def _zsh_arguments(command: _Completed) -> Iterator[str]:
    yield "'(- *)--help[show the help]'"
    for option in command.options:
        repeats = "*" if option.repeats else ""
        value = f":{_zsh_text(option.metavar)}:{_zsh_values(option)}" if option.metavar else ""
        yield _quoted(f"{repeats}{option.name}[{_zsh_text(option.help)}]{value}")
    if command.actions:
        names = " ".join(f'{name}\\:"{_zsh_text(help)}"' for name, help in _names(command.actions).items())
        yield _quoted(f"1:action:(({names}))")
        firsts = " ".join(f"{name}={first}" for name, first in _firsts(command.actions).items())
        yield _quoted(f"2: :_errand_after {firsts}") if firsts else "'2: : '"
        return
    for position, argument in enumerate(command.arguments, 1):
        number = "*" if argument.repeats else str(position)
        yield _quoted(f"{number}:{_zsh_text(argument.metavar)}:{_zsh_values(argument)}")


def _zsh_values(part: Described) -> str:
    if part.choices:
        return f"({' '.join(part.choices)})"
    return {"file": "_files", "folder": "_files -/", None: " "}.get(part.named, f" _errand_values {part.named}")


def _zsh_text(text: str) -> str:
    """Return the text without the characters that have a meaning in a specification."""
    return re.sub(r'["\\`$]', "", re.sub(r"([\[\]:()])", " ", text)).replace("  ", " ").strip()


def _quoted(text: str) -> str:
    """Return the text in single quotes, for zsh and fish alike."""
    return "'" + text.replace("'", "’") + "'"


_ZSH = r"""_errand_values() {
  local -a values texts
  local value text
  while IFS=$'\t' read -r value text; do
    values+=("$value"); texts+=("$value  $text")
  done < <(command errand complete "$1" "${(Q)PREFIX}" "${(Q)words[@][1,CURRENT-1]}" 2>/dev/null)
  (( ${#values} )) && compadd -l -d texts -- "${values[@]}"
}

_errand_after() {
  local pair word
  for word in "${words[@][2,CURRENT-1]}"; do
    for pair in "$@"; do
      if [[ ${pair%%=*} == $word ]]; then
        case ${pair#*=} in
          file) _files ;;
          folder) _files -/ ;;
          *) _errand_values "${pair#*=}" ;;
        esac
        return
      fi
    done
  done
}

_errand() {
  local -a commands=(
%COMMANDS%
  )
  if (( CURRENT == 2 )); then
    _describe -t commands command commands
    return
  fi
  local name=$words[2]
  shift words
  (( CURRENT-- ))
  case $name in
%CASES%
  esac
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _errand "$@"; else compdef _errand errand; fi
"""


def _fish(commands: list[_Completed]) -> str:
    lines = [_FISH]
    for command in commands:
        lines.append(f"complete -c errand -n __fish_use_subcommand -a {command.name} -d {_quoted(command.help)}")
        condition = f"-n '__errand_is {command.name}'"
        for option in command.options:
            name = f"-l {option.name[2:]}" if option.name.startswith("--") else f"-s {option.name[1:]}"
            value = _fish_values(option.named, option.choices) if option.metavar else ""
            lines.append(f"complete -c errand {condition} {name} {value} -d {_quoted(option.help)}")
        for name, text in _names(command.actions).items():
            lines.append(
                f"complete -c errand -n '__errand_is {command.name}; and __errand_at 0' -a {name} -d {_quoted(text)}"
            )
        for name, first in _firsts(command.actions).items():
            after = f"-n '__errand_is {command.name}; and __errand_at 1 {name}'"
            lines.append(f"complete -c errand {after} {_fish_values(first, ())}")
        for position, argument in enumerate(() if command.actions else command.arguments):
            at = "" if argument.repeats else f"; and __errand_at {position}"
            if argument.named or argument.choices:
                values = _fish_values(argument.named, argument.choices)
                lines.append(f"complete -c errand -n '__errand_is {command.name}{at}' {values}")
    return "\n".join(re.sub(r" +(?=-[a-z] )", " ", line) for line in lines) + "\n"


def _fish_values(named: str | None, choices: tuple[str, ...]) -> str:
    if choices:
        return f"-x -a {_quoted(' '.join(choices))}"
    match named:
        case None:
            return "-x"
        case "file":
            return "-r -F"
        case "folder":
            return "-x -a '(__fish_complete_directories (commandline -ct))'"
        case _:
            return f"-x -a '(command errand complete {named} (commandline -ct) (commandline -opc)[2..-1] 2>/dev/null)'"


_FISH = r"""complete -c errand -f

function __errand_is
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test "$words[2]" = "$argv[1]"
end

# How many words of the command are no options; with a second argument, that the first of them is this.
function __errand_at
    set -l words (commandline -opc)
    set -l found
    for word in $words[3..-1]
        string match -q -- '-*' $word; or set -a found $word
    end
    test (count $found) -eq $argv[1]; or return 1
    test (count $argv) -lt 2; or test "$found[1]" = "$argv[2]"
end
"""
