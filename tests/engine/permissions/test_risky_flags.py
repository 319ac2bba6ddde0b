"""Flags that a granted beginning of a command does not cover, in every spelling, and usual ones that it does."""

from pathlib import Path

import pytest

from errand.engine.permissions.policy import Decision, decide
from errand.engine.tools.base import Access
from errand.protocol.asks import GrantedCall


class Ground:
    """A workspace in a home directory."""

    def __init__(self, home: Path) -> None:
        self._home = home.resolve()
        self._workspace, self._private = self._home / "project", self._home / "data"
        for folder in (self._workspace / "sub", self._workspace / "src", self._private):
            folder.mkdir(parents=True)

    def judge(self, line: str, prefix: str) -> Decision:
        """The decision on a line where commands that begin with `prefix` are allowed."""
        argv = tuple(prefix.split())
        granted = frozenset((GrantedCall(operation="run", prefix=argv, working_dir=str(self._workspace)),))
        access = Access("run", line, reads=(self._workspace,), command=line, operation="run")
        return decide(access, self._workspace, "ask", granted, self._private, self._home)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


@pytest.mark.parametrize(
    ("prefix", "line"),
    [
        ("pytest", "pytest -p evil"),
        ("pytest", "pytest -pevil"),
        ("pytest", "pytest -qp evil"),
        ("pytest", "pytest -xo addopts=-pevil"),
        ("make test", "make test -sf other.mk"),
        ("mvn test", "mvn test -Dexec=x"),
        ("pytest", "pytest -vxpevil"),
        ("pytest", "pytest --root=sub"),
        ("pytest", "pytest @words"),
        ("pytest", "pytest --basetemp=src"),
        ("pytest", "pytest --junitxml=.git/hooks/pre-commit"),
        ("pytest", "pytest --junitxml CLAUDE.md"),
        ("uv run pytest", "uv run pytest -sc evil.ini"),
        ("mypy", "mypy --python-executable=./evil a.py"),
        ("pylint", "pylint --init-hook=evil a.py"),
        ("pylint", "pylint --load-plug=evil a.py"),
        ("eslint", "eslint -o .git/hooks/pre-commit a.js"),
        ("jest", "jest --global-setup=./evil.js"),
        ("jest", "jest --globalSetup ./evil.js"),
        ("mocha", "mocha -r ./evil.js"),
        ("prettier", "prettier --plugin=./evil.js a.js"),
        ("tox", "tox -x testenv.commands=evil"),
        ("ctest", "ctest --build-and-test a b --test-command sh"),
        ("rake test", "rake test -esystem"),
        ("just test", "just test --shell=./evil"),
        ("ninja all", "ninja all -fevil"),
        ("make test", "make test -sfother.mk"),
        ("make test", "make test --f=other.mk"),
        ("make test", "make test --include-dir=sub"),
        ("mvn test", "mvn test -Dmaven.ext.class.path=evil.jar"),
        ("gradle test", "gradle test -Ievil.gradle"),
        ("cmake --build", "cmake --build sub -- SHELL=./evil"),
        ("dotnet build", "dotnet build @words"),
        ("pre-commit run", "pre-commit run --config evil.yaml"),
        ("go test", "go test --exec=./evil ./..."),
        ("go vet", "go vet -vettool=./evil"),
        ("npm test", "npm test -C sub"),
        ("npm test", "npm test --userconf=sub/npmrc"),
        ("npm test", "npm test -- --global-setup=./evil.js"),
        ("npm run", "npm run env -- sh"),
        ("yarn run", "yarn run node x.js"),
        ("yarn run jest", "yarn run jest --node-options=x"),
        ("git push origin", "git push origin --e=./evil"),
        ("git push origin", "git push origin --m"),
        ("git commit", "git commit -nm x"),
        ("git mv", "git mv a.md AGENTS.md"),
        ("git mv", "git mv a .git/hooks/pre-commit"),
        ("pytest", "pytest -o addopts=-pevil"),
        ("pytest", "pytest --rootdir=sub"),
        ("pytest", "pytest --pdbcls=evil:E"),
        ("python -m pytest", "python -m pytest -p evil"),
        ("uv run pytest", "uv run pytest -p evil"),
        ("make test", "make test deploy"),
        ("make test", "make test SHELL=./evil"),
        ("make test", "make test -f other.mk"),
        ("make test", "make test --eval='x:=$(shell id)'"),
        ("gradle test", "gradle test publish"),
        ("git commit", "git -c core.hooksPath=x commit"),
        ("git push origin", "git push origin --force"),
        ("git push origin", "git push origin +main"),
        ("git push origin", "git push origin :main"),
        ("cargo test", "cargo test --config x"),
        ("go test", "go test -exec ./evil"),
        ("touch", "touch .git/hooks/pre-commit"),
        ("mkdir", "mkdir .vscode"),
        ("touch", "touch sub/.env"),
    ],
)
def test_a_dangerous_flag_or_word_beats_a_grant(ground: Ground, prefix: str, line: str) -> None:
    assert ground.judge(prefix, prefix).rule in ("grant", "flag", "program")
    assert ground.judge(line, prefix).verdict == "ask"


@pytest.mark.parametrize(
    ("prefix", "line"),
    [
        ("pytest", "pytest -xvs -k 'open or close' -n4 --co --cov=app --maxfail=1 -mslow"),
        ("jest", "jest --coverage --watch -t opens"),
        ("git add", "git add -u"),
        ("git commit", "git commit -am fix-output"),
        ("git commit", "git commit -mnew"),
        ("git push -u origin", "git push -u origin topic"),
        ("go test", "go test -run TestOpen -count=1 -race ./..."),
        ("mvn test", "mvn test -Dtest=OpenTest#closes -q"),
        ("make test", "make test -j4 -sk"),
        ("npm test", "npm test -- --watch --ci"),
        ("cargo test", "cargo test --release -- --nocapture"),
        ("ctest", "ctest --output-on-failure -C Release -R open"),
        ("npm run start", "npm run start -- --port 1"),
    ],
)
def test_usual_flags_do_not_end_a_grant(ground: Ground, prefix: str, line: str) -> None:
    assert ground.judge(line, prefix).verdict == "allow"
