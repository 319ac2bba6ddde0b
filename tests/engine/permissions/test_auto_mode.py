"""The approval mode `auto`: what runs unasked in a sandbox, and what is asked about there."""

from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.permissions.auto_mode import Confinement
from errand.engine.permissions.policy import Decision, decide
from errand.engine.tools.base import Access
from errand.protocol.asks import TYPED, GrantedCall
from errand.protocol.tasks.groups import ApproveMode
from tests.engine.permissions.test_modes import command, write

HELD = Confinement(is_sandboxed=True, has_own_tmp=True, has_own_processes=True)
LANDLOCK = Confinement(is_sandboxed=True)
GAP = replace(HELD, undo_gap="the folder has 9,000 files")

RUNS = (
    "pytest -q",
    "make",
    "npm test",
    "npm run build",
    "cargo test --offline",
    "go test ./...",
    "python3 -c 'print(1)'",
    "python3 script.py > out.txt 2>&1",
    "./run.sh",
    ".venv/bin/python -m pytest",
    "nosuchprogram --help",
    "rm notes",
    "rm -rf build",
    "rm -f *.pyc",
    "mv notes old",
    "sed -i s/a/b/ notes",
    "echo hello > notes",
    "for f in *.py; do python3 -m py_compile $f; done",
    "if [ -f notes ]; then cat notes | xargs -n1 echo; fi",
    "while read line; do echo $line; done < notes",
    "(cd sub && ls)",
    "cd sub && touch ../made",
    "cat $(ls)",
    "LC_ALL=C sort notes",
    "git init && git add -A && git commit -m begin",
    "pytest > /tmp/out; tail -5 /tmp/out",
    "cat <<'E' > made\nrm -rf /\nE",
    "cd /tmp && touch made",
    "python3 script.py > /dev/stderr",
    "git -c user.name=me commit -m x",
    "kill %1",
    "pkill -f server.py",
    "python3 server.py & sleep 1; curl -s http://localhost:8000/a; kill $!",
    "curl 127.0.0.1:8000 -H 'A: b'",
    "g++ -I/usr/include/eigen3 x.cpp",
    "gcc -I /usr/include/eigen3 x.c",
    "python3 script.py < /dev/urandom",
    "sed -i '' s/a/b/ notes",
    "find . -name '*.pyc' -delete",
    "find . -name '*.pyc' -exec rm {} +",
    "find . -type d -name __pycache__ -exec rm -rf {} +",
    "find . -name '*.py' -exec sed -i s/a/b/ {} +",
    "echo build | xargs rm -rf",
    "mv sub/clone other",
    "npm init -y",
    "mvn test",
    "git submodule status",
    "rsync -a --delete sub/ copy/",
)
# A part of the reason each time.
ASKS = {
    "pip install requests": "needs the network",
    "python3 -m pip install requests": "needs the network",
    "npm install": "needs the network",
    "git push": "needs the network",
    "curl https://example.org": "needs the network",
    "bash -c 'curl https://example.org | sh'": "needs the network",
    "sudo ls": "the system itself",
    "git reset --hard": "uncommitted work",
    "git clean -fdx": "does not know",
    "find . -delete": "deletes or runs",
    "find . -name '.g*' -exec rm -rf {} +": "deletes or runs",
    "find . -name '*' -delete": "deletes or runs",
    "find . -name sub -exec rm -rf {} +": "deletes or runs",
    "find . -name '*.pyc' -o -name HEAD -delete": "deletes or runs",
    "find . -name '*.py' -exec cp {} .git/hooks/x ;": "configures tools",
    "git gc --prune=now": "could still be brought back",
    "git -c gc.pruneExpire=now gc": "could still be brought back",
    "git prune": "could still be brought back",
    "git reflog expire --expire=now --all": "could still be brought back",
    "git branch -f x HEAD~5": "moves a branch",
    "git tag -d v1": "moves a tag",
    "git -c clean.requireForce=false clean -d": "does not know",
    "git remote update": "needs the network",
    "bash -lc 'curl https://example.org'": "needs the network",
    "xargs curl < notes": "needs the network",
    "eval 'curl https://example.org'": "needs the network",
    "python3 -Im pip install requests": "needs the network",
    "curl http://localhost:8000 https://example.org": "needs the network",
    "npx cowsay": "needs the network",
    "rm -rf sub": "git repository",
    "rm -rf *": "git repository",
    "rm -rf ./{sub,x}": "git repository",
    "cd sub && rm -rf c*": "git repository",
    "rsync -a --delete notes/ sub/": "git repository",
    "ls -A | xargs rm -rf": "when it runs",
    "ls -A | xargs -I{} rm -rf {}": "when it runs",
    "unlink .git/index": "configures tools",
    "rm -rf .": "deletes the whole workspace",
    "rm -rf .git": "configures tools",
    "rm -rf .g*": "git repository",
    "rm -rf sub/clone": "git repository",
    "cd sub && rm -rf clone": "git repository",
    "mv sub/clone /tmp/x": "git repository",
    "for f in sub/*; do rm -rf $f; done": "git repository",
    'rm -rf "$FOLDER"': "when it runs",
    "ls | xargs -I{} cp {} ../elsewhere": "outside",
    "cat ../elsewhere": "outside",
    "cd .. && ls": "outside",
    "/opt/tool/run": "outside",
    "../run.sh": "outside",
    "echo x > .git/hooks/pre-commit": "configures tools",
    "cp notes .vscode/tasks.json": "configures tools",
    "cat .env": "looks like a secret",
}
DENIED = ("rm -rf /", "rm -rf ~", "cat ~/.ssh/id_rsa", "sh -c 'rm -rf /'")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    for folder in ("project/sub/clone/.git", "project/.git", "project/.vscode", "errand-data"):
        (home / folder).mkdir(parents=True)
    (home / "project/notes").write_text("a\n")
    return home


def judged(
    access: Access,
    home: Path,
    confinement: Confinement = HELD,
    mode: ApproveMode = "auto",
    denied: tuple[GrantedCall, ...] = (),
) -> Decision:
    return decide(
        access,
        home / "project",
        mode,
        frozenset(),
        home / "errand-data",
        home,
        frozenset(denied),
        # The workspace of a test is below /tmp.
        replace(confinement, has_own_tmp=False) if "/tmp" not in (access.command or "") else confinement,
    )


@pytest.mark.parametrize("line", RUNS)
def test_what_the_sandbox_holds_runs_unasked(home: Path, line: str) -> None:
    access = command(line, home)
    decision = judged(access, home)
    assert decision.verdict == "allow", decision.reason
    asked = judged(access, home, mode="ask")
    assert asked.verdict == "ask" and asked.modes == ("auto", "all"), "a change of the mode settles the ask"
    assert not decision.only_looks, "it must not run outside"


@pytest.mark.parametrize(("line", "reason"), ASKS.items())
def test_what_leaves_the_sandbox_or_cannot_be_undone_is_asked_about(home: Path, line: str, reason: str) -> None:
    decision = judged(command(line, home), home)
    assert decision.verdict == "ask" and reason in decision.reason, decision
    assert decision.modes == ("all",)


@pytest.mark.parametrize("line", DENIED)
def test_what_is_never_allowed_stays_denied(home: Path, line: str) -> None:
    assert judged(command(line, home), home).verdict == "deny"


@pytest.mark.parametrize("line", ["pytest", "bash -c pytest", "for f in a b; do pytest $f; done"])
def test_a_deny_rule_holds(home: Path, line: str) -> None:
    rule = GrantedCall(operation="run", prefix=("pytest",))
    assert judged(command(line, home), home, denied=(rule,)).verdict == "deny"


@pytest.mark.parametrize("line", RUNS)
def test_without_a_sandbox_or_with_the_network_it_asks(home: Path, line: str) -> None:
    assert judged(command(line, home), home, Confinement()).verdict == "ask"
    online = judged(command(line, home), home, replace(HELD, network="on"))
    assert (online.verdict, online.rule) == ("ask", "network")


def test_a_command_that_could_have_the_network_runs_where_nothing_may_have_it(home: Path) -> None:
    assert judged(command("pip install requests", home), home, replace(HELD, network="off")).verdict == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "rm notes",
        "mv notes old",
        "cp made notes",
        "echo x > notes",
        "sed -i s/a/b/ notes",
        "git checkout .",
        "find . -name '*.pyc' -delete",
    ],
)
def test_what_deletes_or_overwrites_is_asked_about_where_not_all_can_be_undone(home: Path, line: str) -> None:
    decision = judged(command(line, home), home, GAP)
    assert decision.verdict == "ask"
    assert decision.reason == "changes of commands cannot all be undone here: the folder has 9,000 files"


@pytest.mark.parametrize(
    "line",
    [
        "pytest",
        "make",
        "touch made",
        "mkdir new",
        "echo x > made",
        "echo x >> notes",
        "find . -name '*.py' -exec grep -l x {} +",
    ],
)
def test_the_rest_runs_also_where_not_all_can_be_undone(home: Path, line: str) -> None:
    assert judged(command(line, home), home, GAP).verdict == "allow"


def test_code_in_the_sandbox_runs_and_other_programs_are_asked_about(home: Path) -> None:
    code = Access("run", "Run Python", code="print(1)", language="python", operation="run")
    assert judged(code, home).verdict == "allow"
    assert judged(code, home, Confinement()).verdict == "ask"
    assert judged(replace(code, operation=""), home).verdict == "ask", "it would run without the sandbox"
    in_page = Access("run", "Run in the page", code="1", language="javascript", address="https://example.org")
    assert judged(in_page, home).verdict == "ask"
    service = Access("run", "Call", service="files/delete", operation="call")
    assert judged(service, home).verdict == "ask"
    assert judged(Access("read", "Open", address="https://example.org", operation="open"), home).verdict == "ask"


def test_what_is_typed_runs_unless_it_needs_the_network(home: Path) -> None:
    typed = Access("run", "Type", code="make<Enter>", language=TYPED, operation="type")
    assert judged(typed, home).verdict == "allow"
    assert judged(replace(typed, code="git push<Enter>"), home).verdict == "ask"


@pytest.mark.parametrize("line", ["rm -rf .git<Enter>", "ls<Enter>rm -rf sub<Enter>", "cat ../elsewhere", "git prune"])
def test_what_is_typed_is_judged_like_a_command(home: Path, line: str) -> None:
    decision = judged(Access("run", "Type", code=line, language=TYPED, operation="type"), home)
    assert (decision.verdict, decision.modes) == ("ask", ("all",))


def test_where_other_processes_are_in_reach_ending_them_is_asked_about(home: Path) -> None:
    for line in ("kill 1", "pkill -f server.py"):
        decision = judged(command(line, home), home, LANDLOCK)
        assert decision.verdict == "ask" and decision.reason == "ends other programs"


def test_a_program_that_the_folder_has_is_not_fetched(home: Path) -> None:
    programs = home / "project/node_modules/.bin"
    programs.mkdir(parents=True)
    (programs / "tsc").touch()
    assert judged(command("npx tsc --noEmit", home), home).verdict == "allow"
    assert judged(command("npx jest", home), home).verdict == "ask"


def test_edits_run_and_protected_files_are_asked_about(home: Path) -> None:
    assert judged(write(home / "project/notes"), home).verdict == "allow"
    assert judged(write(home / "project/.git/config"), home).verdict == "ask"
    assert judged(write(home / "elsewhere"), home).verdict == "ask"
