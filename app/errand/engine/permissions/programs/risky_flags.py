"""Flags and words for which a remembered permission does not hold: they run another program, load code or a
configuration that names it, write a file that is named nowhere else, or delete.

A row lists them as they are typed. Its `+` holds the letters of short flags with a value, which ends a group of them:
in `-mfix`, `fix` is no flag. `@` stands for a file with more words.
"""

import re
from dataclasses import dataclass, field
from functools import cache

# Of all programs.
_EVERYWHERE = (
    "--config --config-file --exec --execute --command --cmd --eval --shell --script-shell --require --import --loader "
    "--experimental-loader --preload --plugin --plugins --load-plugins --init-hook --rcfile --rsh --pager --editor "
    "--global-setup --global-teardown --setup-files --setup-files-after-env --node-option --node-options --init-script "
    "--python-executable --output --output-file --out-file --out-dir --use-compress-program --to-command"
)
_MAKE = "-f -C -E -I --file --makefile --directory --eval --include-dir +joWl"
_FD = "-x -X --exec --exec-batch +dEteScj"
_RAKE = "-f -r -e -E -p -R -I --rakefile --require --execute --execute-print --execute-continue --libdir --rakelibdir"
_INVOKE = "-c -r --collection --search-root"
_PACKAGES = "-C --dir --cwd --prefix -g --global --script-shell --use-yarnrc -r --preload -c publish unpublish"
_ROWS = {
    "rg": "--pre --hostname-bin",
    "sort": "-o --output --compress-program +ktST",
    "tar": "--to-command --checkpoint-action -I --use-compress-program --rsh-command --rmt-command --info-script "
    "--new-volume-script -F +fCbgHKLNTVX",
    "sed": "-i --in-place +efl",
    "man": "-P --pager -H --html",
    "rsync": "-e --rsh --delete --rsync-path",
    "ssh": "-o -F",
    "scp": "-o -F -S",
    "fd": _FD,
    "fdfind": _FD,
    "terraform": "destroy -auto-approve -destroy",
    "kubectl": "delete drain",
    "docker": "--privileged prune rm rmi",
    "pip": "--target --index-url --extra-index-url --prefix --root",
    # Checkers and test runners.
    "pytest": "-p -c --rootdir --confcutdir --basetemp -o --override-ini --pdb --pdbcls --trace -W --pythonwarnings "
    "--debug --log-file --pastebin --import-mode @ +kmnr",
    "mypy": "--python-executable --config-file --install-types --custom-typeshed-dir --junit-xml --shadow-file "
    "--html-report --txt-report --xml-report --xslt-html-report --xslt-txt-report --any-exprs-report "
    "--cobertura-xml-report --linecount-report --linecoverage-report --lineprecision-report @",
    "pyright": "--pythonpath --venv-path --venvpath -p --project --createstub @",
    "pylint": "--init-hook --load-plugins --rcfile --output --generate-rcfile @",
    "flake8": "--config --append-config --output-file --tee --enable-extensions",
    "isort": "--settings-path --settings-file --sp",
    "black": "--config -c --code @ +ltWC",
    "prettier": "--plugin --plugin-search-dir --config",
    "eslint": "-c --config --rulesdir --plugin --parser --resolve-plugins-relative-to -o --output-file -f --format "
    "--init",
    "tsc": "--outDir --outFile --declarationDir --tsBuildInfoFile --generateTrace --generateCpuProfile @",
    "jest": "-c --config --globalSetup --globalTeardown --setupFiles --setupFilesAfterEnv --testRunner --runner "
    "--reporters --transform --testEnvironment --env --resolver --rootDir --preset --prettierPath --filter "
    "--watchPlugins --snapshotSerializers --moduleNameMapper --modulePaths --roots --coverageDirectory "
    "--cacheDirectory --outputFile --projects --testResultsProcessor --testSequencer @ +tw",
    "vitest": "-c --config -r --root --environment --reporter --reporters --outputFile --globalSetup --runner "
    "--execArgv --poolOptions --coverage.customProviderModule --coverage.reportsDirectory +t",
    "mocha": "-r --require --config --package --opts --import -n --node-option -u --ui -R --reporter --loader +gtfsbj",
    "tox": "-c --conf --workdir --root -x --override --installpkg --hashseed +e",
    "nox": "-f --noxfile --envdir --force-python +sektpR",
    "ctest": "--build-and-test --test-command -S --script -SP --script-new-process --build-makeprogram -D --dashboard "
    "-T --test-action -M --test-model -O --output-log --output-junit --overwrite",
    "rspec": "-r --require -I -o --out -O --options -f --format +eEPt",
    "phpunit": "-c -d --bootstrap --configuration --include-path --prepend --printer --loader --extension "
    "--extensions-dir --coverage-php --coverage-html --coverage-clover --coverage-text --log-junit",
    "rustfmt": "--config-path --config",
    "gofmt": "-cpuprofile",
    "clang-format": "@",
    "ruff": "--config -o --output-file --cache-dir @",
    "pre-commit": "-c --config",
    # Tools that build.
    "make": _MAKE,
    "gmake": _MAKE,
    "just": "-f --justfile -d --working-directory -c --command --shell --shell-arg --shell-command --set --chooser -g "
    "--global-justfile --dotenv-path -e --edit",
    "task": "-t --taskfile -d --dir -g --global",
    "ninja": "-f -C -t",
    "rake": _RAKE,
    "invoke": _INVOKE,
    "inv": _INVOKE,
    "cmake": "-- -t --target --preset",
    "mvn": "-f --file -s --settings -gs --global-settings -t --toolchains -gt --global-toolchains -D",
    "gradle": "-I --init-script -b --build-file -c --settings-file -p --project-dir -g --gradle-user-home "
    "--include-build -M --write-verification-metadata -D +x",
    "dotnet": "-p --property -l --logger --test-adapter-path -s --settings -o --output --configfile -t --target -bl @",
    "cargo": "--config -C --target-dir --out-dir --artifact-dir -Z",
    "go": "-toolexec -exec -o -ldflags -overlay -vettool -modfile -gccgoflags -gcflags -asmflags -C",
    "npm": f"{_PACKAGES} --node-options --userconfig --globalconfig --location --shell --editor --viewer --git "
    "--node-gyp --init-module --call",
    "pnpm": _PACKAGES,
    "yarn": _PACKAGES,
    "bun": _PACKAGES,
    "git": "--upload-pack --receive-pack --exec --output --ext-diff --textconv -O --open-files-in-pager --template "
    "--config --no-verify --edit-description --no-index +mFCcSXgo",
    "git clone": "-u -c",
    "git commit": "-n -t",
    "find": "-delete -exec -execdir -ok -okdir -fprint -fprintf -fprint0 -fls",
}
# Their flags have names of several letters after one dash, so that no letters stand together.
_ONE_DASH = frozenset(("go", "gofmt", "terraform", "find", "mvn", "tsc", "ctest", "dotnet"))
# These take no beginning of a name for the flag.
_WHOLE_NAMES = _ONE_DASH | frozenset(
    {"jest", "vitest", "mocha", "eslint", "prettier", "black", "gradle", "cargo", "just", "task", "ruff", "cmake"}
    | {"yarn", "bun", "invoke", "inv"}
)
# A flag of its own, though others begin so.
_COMPLETE = frozenset(("co",))
# A variable replaces the programs that a makefile runs.
_TAKES_VARIABLES = frozenset(("make", "gmake", "just", "task", "ninja"))
_VARIABLE = re.compile(r"(?<![\w.-])[A-Za-z_][\w.-]*+[:?+!]*+=")
# Properties that only say which tests run.
_OF_TESTS = re.compile(r"-D(?:test|it\.test|skipTests|skipITs|maven\.test\.skip|failIfNoTests)(?:=[\w.,*#!+-]*)?")
_CLUSTER = re.compile(r"-[A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class _Row:
    """The risky flags and words of a program.

    `letters` and `names` are without dashes, `exact` are words to be compared whole, `texts` the letters of short flags
    with a value.
    """

    letters: frozenset[str]
    names: frozenset[str]
    exact: frozenset[str]
    texts: frozenset[str] = field(default=frozenset())


def risky_flags_of(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the flags of a program for which a remembered permission does not hold."""
    return tuple(flag for flag in _text(_name(words)).split() if flag[0] not in "+@" and flag != "--")


def risky_flag(words: tuple[str, ...], subcommand: str = "") -> str | None:
    """Return a flag, or another word, for which a remembered permission does not hold. `subcommand` is that of git."""
    name = _name(words)
    row, everywhere = _row(_text(name)), _row(_EVERYWHERE)
    if subcommand:
        row = _row(f"{_text(name)} {_text(f'{name} {subcommand}')}")
    is_after = False
    for at, word in enumerate(words[1:]):
        if word == "--":
            if "--" in row.exact:
                return word
            is_after = True
            continue
        # What follows `--` is for a program that this one runs, if there is one.
        if _is_named(word, everywhere, may_be_short=False):
            return word
        if is_after:
            continue
        if word in row.exact or (word[0:1] == "@" and "@" in row.exact):
            return word
        if _is_named(word, row, may_be_short=name not in _WHOLE_NAMES) or _has_letter(word, row, name):
            return None if _OF_TESTS.fullmatch(word) else word
        if name == "tar" and at == 0 and not word.startswith("-") and _has_letter(f"-{word}", row, name):
            return word
        if name in _TAKES_VARIABLES and _VARIABLE.match(word):
            return word
    return None


def _is_named(word: str, row: _Row, *, may_be_short: bool) -> bool:
    """Return True for a flag of the row by its name, however it is spelled; programs take a beginning of a name for
    it.
    """
    if not word.startswith("-"):
        return False
    name = _plain(word.partition("=")[0])
    if name in row.names or _plain(word.partition("=")[0].partition(".")[0]) in row.names:
        return True
    may_be_short = may_be_short and word.startswith("--") and bool(name) and name not in _COMPLETE
    return may_be_short and any(flag.startswith(name) for flag in row.names)


def _has_letter(word: str, row: _Row, name: str) -> bool:
    if not _CLUSTER.match(word):
        return False
    if name in _ONE_DASH:
        return word[1] in row.letters and (len(word) == 2 or word[2] in "=:" or word[1] == "D")
    for letter in word[1:]:
        if letter in row.letters:
            return True
        if letter in row.texts or not letter.isalpha():
            return False
    return False


def _name(words: tuple[str, ...]) -> str:
    return words[0].rpartition("/")[2] if words else ""


def _text(name: str) -> str:
    return _ROWS.get(name, "")


@cache
def _row(text: str) -> _Row:
    flags = text.split()
    return _Row(
        frozenset(flag[1] for flag in flags if len(flag) == 2 and flag[0] == "-" and flag[1] != "-"),
        frozenset(_plain(flag) for flag in flags if flag[0] == "-" and len(flag) > 2),
        frozenset(flag for flag in flags if flag[0] not in "-+" or flag == "--"),
        frozenset("".join(flag[1:] for flag in flags if flag[0] == "+")),
    )


def _plain(flag: str) -> str:
    """`--globalSetup` and `--global-setup` are the same flag."""
    return flag.lstrip("-").replace("-", "").replace("_", "").lower()
