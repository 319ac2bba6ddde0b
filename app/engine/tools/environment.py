"""The environment of tools: an allow-list, so keys never reach a command."""

from collections.abc import Mapping

_NAMES = frozenset(
    (
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TERM",
        "COLORTERM",
        "TZ",
        "TMPDIR",
        "TMP",
        "TEMP",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "CONDA_DEFAULT_ENV",
        "PYENV_ROOT",
        "NVM_DIR",
        "JAVA_HOME",
        "GOPATH",
        "GOROOT",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
        "FTP_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
        "ftp_proxy",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        "CURL_CA_BUNDLE",
        "XDG_RUNTIME_DIR",
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "SYSTEMROOT",
        "COMSPEC",
        "PATHEXT",
        "USERPROFILE",
        "APPDATA",
        "LOCALAPPDATA",
        "PROGRAMFILES",
    )
)


_NO_EDITOR = "sh -c 'echo \"There is no editor and nobody to type: {advice}.\" >&2; exit 1' editor"
# Nobody sits at a command's terminal: what would wait for a person fails at once, and says what to do instead.
_NOBODY_THERE = {
    "EDITOR": _NO_EDITOR.format(advice="change the file in another way"),
    "VISUAL": _NO_EDITOR.format(advice="change the file in another way"),
    # What git has prepared is taken as it is: right for merge, revert, rebase --continue and commit --amend, while a
    # commit without a message is refused by git itself.
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": _NO_EDITOR.format(
        advice="set GIT_SEQUENCE_EDITOR to a command that edits the list of commits in the file it is given, such as "
        "sed -i, or to true to take the list as it is"
    ),
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
}


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What of the engine's environment a tool may see, and that nobody is there to type. PATH is always set."""
    kept = {name: value for name, value in environ.items() if name in _NAMES or name.startswith("LC_")}
    kept.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    return kept | _NOBODY_THERE
