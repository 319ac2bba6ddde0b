"""What a person is offered to allow, and what a grant of a beginning of words covers."""

import random
from pathlib import Path

import msgspec
import pytest

from errand.engine.permissions.explain import explanation
from errand.engine.permissions.grants import draft_problem
from errand.engine.permissions.offers import offers_for
from errand.engine.permissions.policy import Decision, decide
from errand.engine.tools.base import Access
from errand.protocol.asks import GrantDraft, GrantedCall, GrantOffer
from errand.protocol.tasks.groups import ApproveMode


class Ground:
    """A workspace in a home directory, beside another one."""

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self.workspace, self.other, self.private = (self.home / name for name in ("project", "other", "data"))
        for folder in (self.workspace / "sub", self.workspace / "src", self.other, self.private):
            folder.mkdir(parents=True)

    def judge(
        self,
        access: Access,
        granted: frozenset[GrantedCall] = frozenset(),
        denied: frozenset[GrantedCall] = frozenset(),
        at: Path | None = None,
        approve: ApproveMode = "ask",
    ) -> Decision:
        return decide(access, at or self.workspace, approve, granted, self.private, self.home, denied)

    def run(self, line: str, at: Path | None = None) -> Access:
        return Access("run", line, reads=(at or self.workspace,), command=line, operation="run")

    def write(self, name: str, content: str = "1", operation: str = "write") -> Access:
        path = self.workspace / name
        return Access("write", "Write", writes=(path,), operation=operation, basis="b", content=content)

    def offers(self, access: Access) -> tuple[GrantOffer, ...]:
        return offers_for(access, self.judge(access), str(self.workspace), self.judge)

    def prefixes(self, line: str) -> list[str]:
        prefix_offers = [offer for offer in self.offers(self.run(line)) if offer.kind == "prefix"]
        return [" ".join(call.prefix) for offer in prefix_offers for call in offer.calls]

    def prefix(self, *argv: str, at: Path | None = None) -> frozenset[GrantedCall]:
        return frozenset((GrantedCall(operation="run", prefix=argv, working_dir=str(at or self.workspace)),))


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


@pytest.mark.parametrize(
    ("line", "prefixes"),
    [
        ("pytest tests/a.py -q", ["pytest"]),
        ("python -m pytest -x", ["python -m pytest"]),
        ("uv run pytest -q", ["uv run pytest"]),
        ("poetry run python -m mypy src", ["poetry run python -m mypy"]),
        ("npm run test -- --watch", ["npm run test"]),
        ("npm test", ["npm test"]),
        ("make test", ["make test"]),
        ("cargo test --release", ["cargo test"]),
        ("git add -A && git commit -m 'a; b'", ["git add", "git commit"]),
        ("git push origin main", ["git push origin"]),
        ("git push -u origin topic", ["git push -u origin"]),
        ("git add -u", ["git add"]),
        ("npm run start", ["npm run start"]),
        ("cd sub && pytest -q 2>&1 | tail -5", ["pytest"]),
        ("python run.py", ["python run.py"]),
        ("ls && pytest && pytest -q", ["pytest"]),
    ],
)
def test_a_beginning_of_a_command_is_offered_with_real_examples(ground: Ground, line: str, prefixes: list[str]) -> None:
    assert ground.prefixes(line) == prefixes
    offer = ground.offers(ground.run(line))[-1]
    granted = frozenset(offer.calls)
    assert ground.judge(ground.run(line), granted).verdict == "allow"
    assert ground.judge(ground.run(offer.example), granted).rule == "grant"
    assert offer.not_covered and ground.judge(ground.run(offer.not_covered), granted).verdict != "allow"


@pytest.mark.parametrize(
    "line",
    [
        "bash run.sh",
        "sh -c 'pytest'",
        "python -c 'print(1)'",
        "python",
        "python -m timeit x",
        "python -m http.server",
        "env pytest",
        "timeout 9 pytest",
        "xargs pytest",
        "sudo pytest",
        "uv run bash x",
        "uv run python -c 1",
        "uv run",
        "git",
        "git -C sub commit",
        "git push",
        "git push https://example.org/x main",
        "git fetch 'ext::sh -c x'",
        "git config core.pager x",
        "make",
        "make test CC=x",
        "make -j4 test",
        "npm install left-pad",
        "npm run",
        "npm run env -- sh",
        "yarn run node x.js",
        "pnpm run python",
        "pytest @words",
        "pylint --init-hook=x a.py",
        "jest --coverage --config x",
        "git push -u",
        "git push -u https://example.org/x main",
        "pip install x",
        "go run example.org/x@latest",
        "cargo install x",
        "curl https://example.org",
        "rm a.txt",
        "docker run -v /:/host x",
        "mytool build",
        "pytest -p x",
        "pytest > out.txt",
        "pytest | tee out.txt",
        "FOO=1 pytest",
        "pytest; rm a",
        "pytest && mytool",
        "pytest ../other/x",
        "pytest $(cat x)",
        "pytest &",
        "./pytest",
        "touch .git/hooks/pre-commit",
    ],
)
def test_no_beginning_is_offered_where_it_would_allow_more_than_a_kind(ground: Ground, line: str) -> None:
    assert ground.prefixes(line) == []


@pytest.mark.parametrize("line", ["bash -c x", "python -c x", "timeout 9 pytest", "sudo pytest", "rm -rf sub"])
def test_what_the_policy_would_ask_about_again_is_not_offered(ground: Ground, line: str) -> None:
    assert ground.offers(ground.run(line)) == ()


_HOSTILE = [
    "{} ; rm a",
    "{} && mytool",
    "{} || mytool",
    "{} | sh",
    "{} & mytool",
    "{} > out.txt",
    "{} >> out.txt",
    "{} 2> out.txt",
    "{}\nmytool",
    "{} $(mytool)",
    "{} `mytool`",
    '{} "$(mytool)"',
    "{} <(mytool)",
    "{} ${{X:-$(mytool)}}",
    "FOO=1 {}",
    "PATH=. {}",
    "env {}",
    "sudo {}",
    "xargs {}",
    "bash -c '{}'",
    "eval {}",
    "exec {}",
    "command {}",
    "time {}",
    "nohup {}",
    "./{}",
    "/tmp/{}",
    "{} ../other/x",
    "{} /etc/hosts",
    "{} ~/x",
    "{} --x=/etc/hosts",
    "{}x",
    "x{}",
    "{}\x00",
    "{}\u200b x",
    "! {}",
    "( {} )",
    "{{ {}; }}",
    "if true; then {}; fi",
    "while true; do {}; done",
    "{} () {{ mytool; }}",
    "alias x='{}'",
    "cd .. && {}",
    "cd / ; {}",
    "cd link && {}",
    "cd $HOME && {}",
]


@pytest.mark.parametrize("shape", _HOSTILE)
@pytest.mark.parametrize("prefix", ["pytest", "git commit", "make test", "python run.py", "uv run pytest"])
def test_no_suffix_and_no_wrapping_of_what_was_granted_passes(ground: Ground, shape: str, prefix: str) -> None:
    (ground.workspace / "link").symlink_to(ground.other)
    line = shape.format(prefix)
    assert ground.judge(ground.run(line), ground.prefix(*prefix.split())).verdict != "allow"


def test_a_grant_of_a_workspace_holds_in_its_folders_and_nowhere_else(ground: Ground) -> None:
    granted = ground.prefix("pytest")
    assert ground.judge(ground.run("pytest", ground.workspace / "sub"), granted).verdict == "allow"
    assert ground.judge(ground.run("pytest", ground.other), granted, at=ground.other).verdict == "ask"
    assert ground.judge(ground.run("pytest", ground.other), granted).verdict == "ask"
    assert ground.judge(ground.run("cd ../other && pytest"), granted).verdict == "ask"
    link = ground.home / "link"
    link.symlink_to(ground.other)
    assert ground.judge(ground.run("pytest", ground.other), granted, at=link).verdict == "ask"
    link.unlink()
    link.symlink_to(ground.workspace)
    assert ground.judge(ground.run("pytest"), granted, at=link).verdict == "allow"


def test_a_workspace_replaced_by_a_link_loses_its_grants(ground: Ground) -> None:
    granted = ground.prefix("pytest")
    ground.workspace.rename(ground.home / "gone")
    ground.workspace.symlink_to(ground.other)
    assert ground.judge(ground.run("pytest"), granted).verdict == "ask"


def test_a_grant_for_the_user_holds_in_every_workspace(ground: Ground) -> None:
    granted = frozenset((GrantedCall(operation="run", prefix=("pytest",)),))
    for folder in (ground.workspace, ground.other):
        assert ground.judge(ground.run("pytest", folder), granted, at=folder).verdict == "allow"


def test_an_exact_grant_does_not_lift_what_its_words_lead_to_later(ground: Ground) -> None:
    line = "mytool notes"
    exact = frozenset((GrantedCall(operation="run", command=line, working_dir=str(ground.workspace)),))
    assert ground.judge(ground.run(line), exact).verdict == "allow"
    (ground.workspace / "notes").symlink_to(ground.home / ".ssh" / "id_rsa")
    assert ground.judge(ground.run(line), exact).verdict == "ask"


def test_a_broken_or_too_wide_grant_allows_nothing(ground: Ground) -> None:
    wide = [(), ("bash",), ("sh", "-c"), ("env",), ("python",), ("git",), ("uv", "run"), ("",), ("sudo", "make")]
    for prefix in wide:
        granted = frozenset((GrantedCall(operation="run", prefix=prefix), GrantedCall(operation="run")))
        for line in ("bash -c x", "env x", "python x.py", "git commit", "uv run x", "sudo make", "make"):
            assert ground.judge(ground.run(line), granted).verdict == "ask"


def test_a_write_is_offered_by_its_content_by_its_file_and_by_its_folder(ground: Ground) -> None:
    change = ground.write("src/a.py")
    offers = ground.offers(change)
    assert [offer.kind for offer in offers] == ["content", "file", "folder", "folder"]
    assert "exactly the content shown" in offers[0].covers
    assert all("whatever" in offer.covers for offer in offers[1:])
    content, file, folder, workspace = (frozenset(offer.calls) for offer in offers)
    others = [
        (ground.write("src/a.py", "2"), (False, True, True, True)),
        (ground.write("src/a.py", "2", "patch"), (False, True, True, True)),
        (ground.write("src/b.py"), (False, False, True, True)),
        (ground.write("src/deep/b.py", "2"), (False, False, True, True)),
        (ground.write("b.py"), (False, False, False, True)),
        (ground.write("src2/b.py"), (False, False, False, True)),
        (ground.write("src/.env"), (False, False, False, False)),
        (ground.write("src/.git/config"), (False, False, False, False)),
        (ground.write("src/AGENTS.md"), (False, False, False, False)),
        (ground.write("../other/b.py"), (False, False, False, False)),
    ]
    for other, expected in others:
        allowed = tuple(
            ground.judge(other, granted).verdict == "allow" for granted in (content, file, folder, workspace)
        )
        assert allowed == expected, other.writes
    assert ground.judge(change, content).verdict == "allow"


def test_a_patch_and_what_is_not_shown_in_full_are_not_bound_to_their_content(ground: Ground) -> None:
    patch = ground.write("src/a.py", operation="patch")
    assert [offer.kind for offer in ground.offers(patch)] == ["file", "folder", "folder"]


def test_secrets_protected_files_and_files_outside_are_not_offered(ground: Ground) -> None:
    for name in (".env", ".git/hooks/x", "AGENTS.md", "../other/x"):
        assert ground.offers(ground.write(name)) == ()


def test_a_grant_to_edit_a_folder_runs_no_command_in_it(ground: Ground) -> None:
    granted = frozenset((GrantedCall(operation="edit", folder=str(ground.workspace)),))
    assert ground.judge(ground.run("touch src/a.py"), granted).verdict == "ask"


def denied(**call: object) -> frozenset[GrantedCall]:
    return frozenset((msgspec.convert(call, GrantedCall),))


@pytest.mark.parametrize("approve", ["ask", "all"])
@pytest.mark.parametrize(
    "line",
    [
        "git push origin main",
        "git 'push'",
        "/usr/bin/git push",
        "git -C sub push",
        "git --no-pager -c x.y=z --git-dir sub push",
        "git submodule foreach git push",
        "git -c alias.x=push x",
        "/usr/lib/git-core/git-push origin",
        "ls && git push",
        "bash -c 'git push'",
        "env FOO=1 git push",
        "xargs git push",
        "echo $(git push)",
        "if true; then git push; fi",
        "uv run git push",
    ],
)
def test_a_deny_rule_beats_grants_and_modes_at_any_depth(ground: Ground, line: str, approve: ApproveMode) -> None:
    granted = ground.prefix("git", "push") | {
        GrantedCall(operation="run", command=line, working_dir=str(ground.workspace))
    }
    decision = ground.judge(ground.run(line), granted, denied(prefix=("git", "push")), approve=approve)
    assert (decision.verdict, decision.rule) == ("deny", "your deny rule")


def test_a_denied_command_is_denied_whatever_its_quotes_and_blanks(ground: Ground) -> None:
    rule = denied(command="npm publish --tag next")
    for line in ("npm publish --tag next", "npm  publish --tag 'next'", "ls; npm publish --tag next"):
        assert ground.judge(ground.run(line), denied=rule, approve="all").verdict == "deny"
    assert ground.judge(ground.run("npm publish"), denied=rule, approve="all").verdict == "allow"


@pytest.mark.parametrize("approve", ["ask", "all", "edits"])
def test_a_folder_denied_to_all_use_is_denied_to_files_and_commands(ground: Ground, approve: ApproveMode) -> None:
    secret = ground.workspace / "sub"
    rule = denied(folder=str(secret), operation="read")
    (ground.workspace / "way").symlink_to(secret)
    (secret / "x").touch()
    read = Access("read", "Read", reads=(secret / "x",), operation="read")
    search = Access("read", "Search", reads=(ground.workspace,), operation="search")
    for access in (read, search, ground.write("sub/x")):
        assert ground.judge(access, denied=rule, approve=approve).verdict == "deny"
    for line in (
        "cat sub/x",
        "mytool sub/x",
        "mytool --in=sub/x",
        "mytool -Isub/x",
        "cat way/x",
        "cd sub && cat x",
        "cat < sub/x",
        "echo $(cat sub/x)",
        f"mytool {secret}/x",
        "bash -c 'cat sub/x'",
        "cat ./sub/../sub/x",
        "cat su*/x",
    ):
        assert ground.judge(ground.run(line), denied=rule, approve=approve).verdict == "deny", line
    assert ground.judge(ground.run("cat src/x"), denied=rule).verdict == "allow"


def test_a_folder_denied_to_changes_may_be_looked_at(ground: Ground) -> None:
    rule = denied(folder=str(ground.workspace / "sub"), operation="write")
    assert ground.judge(ground.run("cat sub/x"), denied=rule).verdict == "allow"
    assert ground.judge(Access("read", "R", reads=(ground.workspace / "sub" / "x",)), denied=rule).verdict == "allow"
    for access in (ground.write("sub/x"), ground.run("mytool sub/x"), ground.run("touch sub/x")):
        assert ground.judge(access, denied=rule, approve="all").verdict == "deny"


def test_a_denied_tool_is_denied_in_every_mode(ground: Ground) -> None:
    for access in (ground.run("ls"), ground.write("a"), Access("free", "Say")):
        assert ground.judge(access, denied=frozenset((GrantedCall(),)), approve="all").verdict == "deny"


def test_why_it_was_asked_names_the_rule_the_parts_and_the_other_findings(ground: Ground) -> None:
    lines = explanation(ground.judge(ground.run("ls && mytool x > /etc/x"))).splitlines()
    assert lines[:2] == ["deny: /etc/x is in /etc, which is closed to tools", "rule    closed folder"]
    assert lines[2:4] == ["part 1      'ls'", "part 2  &&  'mytool' 'x'  > '/etc/x'"]
    assert lines[4:] == ["also    ask, program: `mytool` can change things"]


def draft(decision: str = "allow", **fields: object) -> GrantDraft:
    call = fields.pop("call", {})
    tool = fields.pop("tool", "shell" if decision == "allow" else "")
    rest = {"scope": "user", "decision": decision, "tool": tool, "call": call} | fields
    return msgspec.convert(rest, GrantDraft)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (draft(call={"prefix": ["bash", "-c"]}), "is a shell"),
        (draft(call={"prefix": ["sudo", "make"]}), "runs other programs"),
        (draft(call={"prefix": ["git"]}), "Name the subcommand"),
        (draft(call={"prefix": ["python3"]}), "any code of python3"),
        (draft(call={"prefix": ["pytest", "&&", "ls"]}), "not the beginning of one command"),
        (draft(call={"prefix": ["FOO=1", "pytest"]}), "not the beginning of one command"),
        (draft(call={"prefix": [""]}), "not the beginning of one command"),
        (draft(call={"prefix": ["pytest\n"]}), "printable"),
        (draft(call={"prefix": ["make"], "folder": "/x"}), "one of these"),
        (draft(call={}), "says what"),
        (draft(call={"operation": "run"}), "says what"),
        (draft(call={"command": "make"}), "names its folder"),
        (draft(call={"folder": "src", "operation": "edit"}), "not an absolute path"),
        (draft(call={"folder": "/x", "operation": "run"}), "edit only"),
        (draft(tool="", call={"prefix": ["make"]}), "names its tool"),
        (draft(scope="workspace", call={"prefix": ["make"]}), "names the conversation or the folder"),
        (draft("deny"), "says what"),
        (draft("deny", call={"path": "/x"}), "denied as a folder"),
        (draft("deny", tool="shell", call={"operation": "run"}), "says nothing else"),
        (draft("deny", call={"prefix": ["a", "|", "b"]}), "not the beginning of one command"),
    ],
)
def test_a_rule_that_would_allow_or_mean_too_much_is_refused_in_a_sentence(rule: GrantDraft, why: str) -> None:
    problem = draft_problem(rule)
    assert problem is not None and why in problem and problem.endswith(".")


@pytest.mark.parametrize(
    "rule",
    [
        draft(call={"prefix": ["pytest"]}),
        draft(call={"prefix": ["git", "push"]}),
        draft("deny", call={"prefix": ["git"]}),
        draft("deny", call={"prefix": ["bash"]}),
        draft("deny", tool="shell"),
        draft("deny", call={"folder": "/x", "operation": "read"}),
    ],
)
def test_other_rules_are_accepted(rule: GrantDraft) -> None:
    assert draft_problem(rule) is None


_TEXT = (
    "pytest pytest-x git commit add push origin -q -p -m x --pdb > >> < | || && ; & ( ) { } ! $ $HOME ${X} $(id) `id` '"
    ' " \\ * ? [a] ~ ~/x .. ../other /etc/passwd sub link sub/.env .git/hooks cd ls cat rm sh bash -c env FOO=1 eval'
    " exec xargs time sudo for do done if then fi in a b # <<E 2>&1 >&2 <<<x @x =x --x=/etc/x a.py"
)
_PIECES = (*_TEXT.split(), "\n", "\t")


def test_whatever_passes_with_a_grant_only_runs_what_it_covers(ground: Ground) -> None:
    (ground.workspace / "link").symlink_to(ground.other)
    granted = ground.prefix("pytest") | ground.prefix("git", "commit")
    chance = random.Random(37)
    allowed = 0
    for _ in range(2_000):
        pieces = [chance.choice(_PIECES) for _ in range(chance.randint(0, 5))]
        pieces.insert(chance.randint(0, len(pieces)), chance.choice(("pytest", "git commit")))
        line = chance.choice((" ", " ", "")).join(pieces)
        decision = ground.judge(ground.run(line), granted)
        if decision.verdict != "allow" or not decision.used:
            continue
        allowed += 1
        assert decision.parsed is not None
        for argv in decision.parsed.runs:
            assert argv[:1] == ("pytest",) or argv[:2] == ("git", "commit") or argv[0] in ("cd", "ls", "cat"), line
            assert not any("other" in word or "/etc" in word or ".env" in word for word in argv), line
    assert allowed > 60, "the lines are not all refused for their form"
