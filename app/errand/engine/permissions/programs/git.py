"""Git's subcommands that only read, one row each, and its global options.

All need a trusted folder: the configuration of a repository can name programs that even `git status` runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from errand.engine.permissions.programs.options import Program, UnknownFlag, Usage
from errand.engine.permissions.programs.special import (
    check_git_branch,
    check_git_config,
    check_git_format,
    check_git_remote,
    check_git_tag,
    first_operand,
)

# Not here: --ext-diff and --textconv run programs, --output writes, -O opens a file.
_DIFF = (
    "patch no-patch unified= raw numstat shortstat stat=? compact-summary dirstat=? summary name-only name-status "
    "patch-with-stat minimal patience histogram diff-algorithm= color=? no-color color-moved=? word-diff=? "
    "word-diff-regex= color-words=? no-renames find-renames=? find-copies=? check full-index binary abbrev=? "
    "diff-filter= pickaxe-all pickaxe-regex relative=? text ignore-cr-at-eol ignore-space-at-eol ignore-space-change "
    "ignore-all-space ignore-blank-lines inter-hunk-context= function-context exit-code quiet no-ext-diff "
    "no-textconv no-prefix src-prefix= dst-prefix= cached staged merge-base cc"
)
_DIFF_SHORT = "puU:sM?C?B?DS:G:RawbWqz"
_LOG = (
    f"{_DIFF} oneline graph all branches=? tags=? remotes=? format= pretty=? abbrev-commit no-abbrev-commit decorate=? "
    "no-decorate follow max-count= skip= since= after= until= before= author= committer= grep= all-match invert-grep "
    "regexp-ignore-case fixed-strings extended-regexp perl-regexp merges no-merges first-parent reverse date= "
    "date-order topo-order author-date-order simplify-by-decoration full-history parents children left-right "
    "cherry-pick cherry-mark ancestry-path reflog no-notes encoding= source log-size left-only right-only"
)
_LOG_SHORT = f"{_DIFF_SHORT}n:iEFPgcmL%#"
_LISTS = "list sort= format= contains= no-contains= merged= no-merged= points-at= color=? no-color ignore-case"

_STASH = Program("git stash list|git stash show", _DIFF_SHORT, _LOG, "text")


def read_stash(words: Sequence[str]) -> Usage:
    """`list` or `show` comes first: after a flag, git takes the words for those of `stash push`."""
    if not words or words[0] not in ("list", "show"):
        raise UnknownFlag("git stash stashes work away")
    return _STASH.usage(words[1:])


GIT = (
    Program(
        "git status",
        "sbu?vz",
        "short branch show-stash porcelain=? long verbose untracked-files=? ignored=? "
        "ignore-submodules=? column=? no-column ahead-behind no-ahead-behind renames no-renames find-renames=?",
        "revisions",
        needs_trust=True,
    ),
    Program("git log|git whatchanged", _LOG_SHORT, _LOG, "revisions", check=check_git_format, needs_trust=True),
    Program("git show", _LOG_SHORT, _LOG, "revisions", check=check_git_format, needs_trust=True),
    Program("git diff", _DIFF_SHORT, _DIFF, "revisions", needs_trust=True),
    Program(
        "git diff-tree|git diff-index|git diff-files",
        f"{_DIFF_SHORT}rtm",
        f"{_DIFF} root stdin",
        "revisions",
        needs_trust=True,
    ),
    Program(
        "git shortlog",
        "nsec",
        "numbered summary email group= since= until= author= no-merges",
        "revisions",
        needs_trust=True,
    ),
    Program(
        "git reflog",
        f"{_LOG_SHORT}",
        _LOG,
        "revisions",
        check=first_operand("show", "HEAD", alone=True),
        needs_trust=True,
    ),
    Program(
        "git rev-list",
        "n:i#",
        "all count max-count= since= until= author= reverse objects first-parent merges "
        "no-merges oneline left-right branches tags abbrev-commit",
        "revisions",
        needs_trust=True,
    ),
    Program(
        "git rev-parse",
        "q",
        "abbrev-ref=? short=? verify symbolic-full-name symbolic show-toplevel show-prefix "
        "show-cdup git-dir absolute-git-dir git-common-dir is-inside-work-tree is-bare-repository "
        "is-shallow-repository is-inside-git-dir quiet all branches tags",
        "revisions",
        needs_trust=True,
    ),
    Program(
        "git blame|git annotate",
        "bL:lctfnspewMC",
        "root show-stats porcelain line-porcelain incremental "
        "show-name show-number show-email date= since= abbrev= color-lines",
        "revisions",
        needs_trust=True,
    ),
    Program(
        "git grep",
        "anwivhHEGPFlLzocqpWA:B:C:e:m:",
        "cached untracked text word-regexp ignore-case invert-match "
        "full-name extended-regexp basic-regexp perl-regexp fixed-strings line-number column name-only "
        "files-with-matches files-without-match null only-matching count break heading show-function "
        "function-context context= after-context= before-context= max-depth= and or not color=? no-color quiet",
        "pattern",
        pattern_flags="e",
        needs_trust=True,
    ),
    Program(
        "git branch",
        "arvli",
        f"all remotes verbose show-current abbrev=? column=? no-column {_LISTS}",
        "text",
        check=check_git_branch,
        needs_trust=True,
    ),
    Program("git tag", "ln?i", f"column=? no-column {_LISTS}", "text", check=check_git_tag, needs_trust=True),
    Program("git remote", "v", "verbose all push", "text", check=check_git_remote, needs_trust=True),
    Program("git stash", read=read_stash, check=check_git_format, needs_trust=True),
    Program("git worktree", "vz", "porcelain verbose", "text", check=first_operand("list"), needs_trust=True),
    Program(
        "git config",
        "z",
        "get local global default= type= null show-origin show-scope",
        "text",
        check=check_git_config,
        needs_trust=True,
    ),
    Program(
        "git ls-files",
        "cdmosiuktvzx:",
        "cached deleted modified others stage ignored unmerged killed "
        "exclude-standard exclude= full-name error-unmatch eol deduplicate abbrev=?",
        "revisions",
        needs_trust=True,
    ),
    Program(
        "git ls-tree",
        "dlrtz",
        "long name-only name-status object-only full-name full-tree abbrev=? format=",
        "revisions",
        needs_trust=True,
    ),
    Program("git cat-file", "tspe", "batch-all-objects unordered", "revisions", needs_trust=True),
    Program(
        "git describe",
        "",
        "all tags long always dirty=? broken=? abbrev= candidates= match= exclude= contains first-parent exact-match",
        "revisions",
        needs_trust=True,
    ),
    Program("git merge-base", "a", "all octopus is-ancestor fork-point independent", "revisions", needs_trust=True),
    Program("git name-rev", "", "tags name-only refs= always all", "revisions", needs_trust=True),
    Program("git for-each-ref", "", f"count= {_LISTS}", "text", check=check_git_format, needs_trust=True),
    Program(
        "git show-ref",
        "hdsq",
        "head heads branches tags dereference hash=? verify quiet abbrev=?",
        "text",
        needs_trust=True,
    ),
    Program("git symbolic-ref", "q", "short quiet", "text", at_most=1, needs_trust=True),
    Program("git show-branch", "ar", "all remotes list topo-order current no-color", "revisions", needs_trust=True),
    Program("git cherry", "v", "verbose abbrev=?", "revisions", needs_trust=True),
    Program("git range-diff", "", "no-color color=? creation-factor= stat", "revisions", needs_trust=True),
    Program("git count-objects", "vH", "verbose human-readable", "none", needs_trust=True),
    Program("git check-ignore", "vnq", "verbose non-matching quiet no-index", needs_trust=True),
    Program("git check-attr", "a", "all", needs_trust=True),
    Program("git version", "", "build-options", "none"),
    Program("git --version", "", "", "none"),
)


@dataclass(frozen=True, slots=True)
class GitCall:
    """A git command without its global options; `folder` is that of -C, `unusual` the first option not known."""

    argv: tuple[str, ...]
    folder: str = ""
    unusual: str = ""


_HARMLESS = frozenset(("--no-pager", "--no-optional-locks", "--literal-pathspecs", "-P"))
_WITH_VALUE = frozenset(
    ("-c", "--git-dir", "--work-tree", "--exec-path", "--namespace", "--config-env", "--attr-source")
)


def git_call(words: Sequence[str]) -> GitCall:
    """Split the words after `git` into global options and the subcommand."""
    folder = unusual = ""
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--version":
        word = words[at]
        if word == "-C" and at + 1 < len(words):
            folder = f"{folder}/{words[at + 1]}" if folder and not words[at + 1].startswith("/") else words[at + 1]
            at += 1
        elif word not in _HARMLESS:
            unusual = unusual or word
            at += word in _WITH_VALUE
        at += 1
    return GitCall(tuple(words[at:]), folder, unusual)


def subcommand(words: Sequence[str]) -> tuple[str, ...]:
    """Return the program's words with git's global options taken out, for comparing with rules."""
    return ("git", *git_call(words[1:]).argv) if words and words[0] == "git" else tuple(words)
