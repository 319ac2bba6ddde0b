"""What a call that is asked about opens, runs or calls, exactly and safe to show: addresses, code, tools of others."""

from dataclasses import dataclass
from typing import Literal

from errand.client.safe_text import escape_hidden, escape_hidden_line
from errand.client.texts.alphabets import alphabet_remark
from errand.protocol.asks import TYPED, Approval
from errand.text.translation import tr

EffectKind = Literal["command", "address", "code", "service", "text"]
_ENDS = "/?#\\"
_PUNYCODE = "xn--"


@dataclass(frozen=True, slots=True)
class Effect:
    """`text` is to be shown in full; the host of an address is at `host_at` in it. `language` is that of code.

    `remark` says what a person could not see in an address, or in the letters of words. `details` is what goes along,
    in `details_language`: the arguments of a call, the script for a page. `does` says in words what is done, where the
    text does not.
    """

    kind: EffectKind
    text: str
    language: str = ""
    host_at: tuple[int, int] = (0, 0)
    remark: str = ""
    details: str = ""
    details_language: str = ""
    does: str = ""


def effect_of(approval: Approval) -> Effect:
    if approval.command is not None:
        return Effect("command", escape_hidden(approval.command), remark=_letters_remark(approval))
    if approval.address:
        before, host, after = (escape_hidden_line(part) for part in address_parts(approval.address))
        end = len(before) + len(host)
        script = escape_hidden(approval.preview)
        return Effect(
            "address",
            f"{before}{host}{after}",
            host_at=(len(before), end),
            remark=host_remark(approval.address),
            details=script,
            details_language="javascript",
            does=escape_hidden_line(approval.text),
        )
    if approval.language == TYPED:
        does, remark = escape_hidden_line(approval.text), _letters_remark(approval)
        return Effect("code", escape_hidden(approval.code), remark=remark, does=does)
    if approval.code:
        return Effect("code", escape_hidden(approval.code), approval.language.lower())
    if approval.service:
        server, _, tool = approval.service.partition("/")
        tool_name = escape_hidden_line(f"{server} › {tool}")
        details, remark = escape_hidden(approval.preview), _letters_remark(approval)
        return Effect("service", tool_name, remark=remark, details=details, details_language="json")
    return Effect("text", escape_hidden(approval.text), remark=_letters_remark(approval))


def _letters_remark(approval: Approval) -> str:
    """Return what the letters of the command, the typed text, the tool's name or the files hide from the eye."""
    typed = approval.code if approval.language == TYPED else ""
    paths = (*approval.reads, *approval.writes)
    return alphabet_remark("\n".join((approval.command or "", typed, approval.service, *paths)))


def address_parts(address: str) -> tuple[str, str, str]:
    """Return the text before the host, the host as it is spelled, and the text after it; no host without a `//`."""
    scheme, slashes, rest = address.partition("//")
    if not slashes:
        return address, "", ""
    end = next((at for at, letter in enumerate(rest) if letter in _ENDS), len(rest))
    user, at, server = rest[:end].rpartition("@")
    host, bracket, _ = server.partition("]") if server.startswith("[") else server.partition(":")
    host += bracket if server.startswith("[") else ""
    before = f"{scheme}//{user}{at}"
    return before, host, address[len(before) + len(host) :]


def host_remark(address: str) -> str:
    """Return a remark on what the spelling of the host hides; empty for a plain one."""
    before, host, _ = address_parts(address)
    remarks: list[str] = []
    if "@" in before:
        remarks.append(
            tr("the part before the @ isn't the host: this page belongs to {host}").format(
                host=escape_hidden_line(host)
            )
        )
    if not host.isascii():
        remarks.append(tr("contains special characters: browsers open {host}").format(host=_encoded(host)))
    elif any(label.startswith(_PUNYCODE) for label in host.lower().split(".")):
        remarks.append(tr("browsers show it as {host}").format(host=_decoded(host)))
    if "%" in host:
        remarks.append(tr("spelled with percent signs"))
    return "; ".join(remarks)


def _encoded(host: str) -> str:
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return tr("another name")


def _decoded(host: str) -> str:
    try:
        return escape_hidden_line(host.encode().decode("idna"))
    except UnicodeError:
        return tr("another name")
