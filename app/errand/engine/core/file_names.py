"""File names that mean more than others: secrets, files that configure tools or agents, folders that tools fill."""

import re
import unicodedata
from itertools import pairwise

# Folders that package managers, builds and tests fill, and fill again.
FILLED_BY_TOOLS = frozenset(
    {"node_modules", "bower_components", ".venv", "site-packages", "__pycache__", ".tox", ".nox", ".eggs", ".cache"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache", ".gradle", ".terraform", ".next", ".nuxt"}
)
# A tool says by it that it can make the folder again.
CACHE_TAG = "CACHEDIR.TAG"
_SECRET_NAMES = frozenset(
    {".env", ".netrc", "_netrc", ".pgpass", ".pypirc", ".git-credentials", ".htpasswd", ".dockercfg"}
    | {".vault-token", "credentials", "credentials.json", "credentials.toml", "credentials.yml", "id_rsa", "id_dsa"}
    | {"id_ecdsa", "id_ed25519", "authorized_keys", "shadow", "secrets.yml", "secrets.yaml", "secrets.json"}
    | {"secrets.toml", "secret.txt", "secrets.txt", ".secrets", "service-account.json", "kubeconfig", "wallet.dat"}
    | {"master.key", "passwords.txt", "token.json", ".npmrc", ".envrc", ".boto", ".s3cfg", ".dockerconfigjson"}
    | {".my.cnf", ".mylogin.cnf", ".databrickscfg", ".ftpconfig", "sftp-config.json", ".esmtprc", ".msmtprc"}
    | {".fetchmailrc", ".muttrc", ".rclone.conf", "rclone.conf", "auth.json", "terraform.tfvars", ".terraformrc"}
    | {"terraform.rc", "filezilla.xml", "recentservers.xml", "proftpdpasswd", "secret_token.rb", "otr.private_key"}
    | {"accounts.xml", "logins.json", ".chef", ".vault_pass", ".vault-pass", "vault_password", ".npm-token"}
    | {"credentials.xml", "id_xmss", ".shadow"}
)
_KEYS = ("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519")
_SECRET_SUFFIXES = frozenset(
    {"pem", "key", "p12", "pfx", "jks", "keystore", "kdb", "kdbx", "ppk", "asc", "gpg", "ovpn", "env", "tfstate", "p8"}
    | {"pkcs12", "keytab", "psafe3", "kwallet", "keychain", "agilekeychain", "bek", "age", "keypair", "tfvars"}
)
_SECRET_WORDS = re.compile(
    r"service[-_. ]?account|client[-_. ]?secret|(?:private|secret|api|gcp|gcloud|firebase|azure|aws)[-_. ]?key"
    r"|credential|adminsdk|access[-_. ]?token"
)
# What people typed into shells, and the keys of a server.
_SECRET_NAME = re.compile(r"\.\w+_history|ssh_host_\w+_key")
_DATA_SUFFIXES = frozenset(("json", "yml", "yaml", "txt", "toml"))
_EXAMPLE = re.compile(r"\.env\.(?:example|sample|template|dist|defaults?|schema)(?:\..+)?")
_SECRET_FOLDERS = frozenset(
    {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store", ".gcloud", ".secrets", ".oci", ".snowsql"}
    | {".terraform.d", ".1password"}
)
_SECRET_PLACES = (
    *((".config", name) for name in ("gh", "gcloud", "op", "hub", "glab-cli", "rclone", "doctl", "heroku", "stripe")),
    (".docker", "config.json"),
    (".codex", "auth.json"),
    (".claude", ".credentials.json"),
)
# Below a home directory: keys and sessions that let a command act as the person elsewhere.
SECRETS_AT_HOME = (
    *sorted(_SECRET_FOLDERS),
    *map("/".join, _SECRET_PLACES),
    ".config/git/credentials",
    ".cargo/credentials.toml",
    ".local/share/keyrings",
    ".Xauthority",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
)
# Whole folders whose files configure version control, editors or agents.
_PROTECTED_FOLDERS = frozenset(
    {".git", ".hg", ".svn", ".jj", ".bzr", ".husky", ".githooks", ".vscode", ".idea", ".zed", ".fleet", ".vim"}
    | {".cursor", ".claude", ".codex", ".gemini", ".windsurf", ".continue", ".roo", ".aider", ".agents", ".errand"}
    | {".devcontainer", ".direnv", ".cargo", ".kiro", ".opencode", ".pi", ".amazonq", ".trae", ".augment", ".junie"}
    | {".qwen", ".crush", ".goose", ".kilocode", ".openhands", ".serena", ".factory", ".amp", ".mcp", ".yarn"}
    | {".overcommit"}
)
_PROTECTED_NAMES = frozenset(
    {".gitmodules", ".gitattributes", ".gitconfig", ".hgrc", ".envrc", ".mcp.json", "mcp.json", ".npmrc", ".yarnrc"}
    | {".yarnrc.yml", ".pre-commit-config.yaml", ".editorconfig", ".exrc", ".nvimrc", ".lvimrc", ".tool-versions"}
    | {"agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md", ".cursorrules", ".clinerules"}
    | {".windsurfrules", ".rules", ".goosehints", "copilot-instructions.md", ".bashrc", ".bash_profile", ".profile"}
    | {".zshrc", ".zshenv", ".zprofile", ".aider.conf.yml", ".mise.toml", "mise.toml", ".lldbinit", ".gdbinit"}
    | {"skill.md", "lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".overcommit.yml", ".huskyrc"}
    | {".pre-commit-hooks.yaml", "qwen.md", "crush.md", "warp.md", ".augment-guidelines", "opencode.json"}
    | {"opencode.jsonc", "mcp_config.json", ".nvim.lua", ".vimrc", ".emacs", ".dir-locals.el", ".inputrc"}
    | {".bash_login", ".bash_logout", ".zlogin", ".kshrc", ".pdbrc", ".irbrc", ".pryrc", ".psqlrc", ".sqliterc"}
    | {".rprofile", ".curlrc", ".wgetrc", ".ripgreprc", ".pnpmfile.cjs", "sitecustomize.py", "usercustomize.py"}
    | {".cursorignore", ".aiderignore", ".flaskenv", ".lintstagedrc"}
)
# Python runs lines of a .pth file whenever it starts.
_PROTECTED_SUFFIXES = (".code-workspace", ".pth")
_SHORT_NAME_OF_GIT = re.compile(r"git~\d+")
_OF_GITHUB = "workflows actions copilot-instructions.md instructions prompts agents chatmodes hooks"
_PROTECTED_PLACES = tuple((".github", name) for name in _OF_GITHUB.split())
# Version control writes in its own folder; only these parts of it name programs. So in `.github`.
PROTECTED_PARTS = {
    ".git": ("hooks", "config", "config.worktree", "commondir", "info/attributes"),
    ".hg": ("hgrc",),
    ".svn": (),
    ".jj": ("repo/config.toml",),
    ".bzr": ("branch/branch.conf",),
    ".github": tuple(_OF_GITHUB.split()),
}


def is_secret(path: str) -> bool:
    """Return True if the name, or a folder in the path, looks like that of a key, a password or a token."""
    parts = [plain_name(part) for part in path.replace("\\", "/").split("/") if part]
    if not _SECRET_FOLDERS.isdisjoint(parts) or any(pair in _SECRET_PLACES for pair in pairwise(parts)):
        return True
    return bool(parts) and _is_secret_name(parts[-1])


def is_secret_name(name: str) -> bool:
    """Return whether a file or folder is secret by its name alone; see `is_secret`."""
    plain = plain_name(name)
    return plain in _SECRET_FOLDERS or _is_secret_name(plain)


def _is_secret_name(name: str) -> bool:
    stem, _, suffix = name.rpartition(".")
    if name in _SECRET_NAMES or name.startswith(_KEYS) or (stem and suffix in _SECRET_SUFFIXES):
        return True
    if _SECRET_NAME.fullmatch(name):
        return True
    if name.startswith(".env."):
        return _EXAMPLE.fullmatch(name) is None
    return suffix in _DATA_SUFFIXES and _SECRET_WORDS.search(stem) is not None


def is_protected(parts: tuple[str, ...]) -> bool:
    """Return True for files of a workspace that configure tools or agents; `parts` are the names below the
    workspace.
    """
    plain = [plain_name(part) for part in parts]
    if not _PROTECTED_FOLDERS.isdisjoint(plain):
        return True
    if any(all(part in plain for part in protected) for protected in _PROTECTED_PLACES):
        return True
    if any(map(_SHORT_NAME_OF_GIT.fullmatch, plain)):
        return True
    last = plain[-1] if plain else ""
    return last in _PROTECTED_NAMES or last.endswith(_PROTECTED_SUFFIXES)


def plain_name(name: str) -> str:
    """Return a name as the most lenient file system compares it: case, compatible forms, ignorable characters, last
    dots.
    """
    if name.isascii():
        return name.lower().rstrip(". ") or name
    visible = "".join(letter for letter in unicodedata.normalize("NFKC", name) if unicodedata.category(letter) != "Cf")
    return visible.casefold().rstrip(". ") or name
