"""The output of `errand models`."""

from errand.cli.commands.models import format_ready, format_warnings
from errand.cli.terminal.style import Style
from errand.protocol.settings import ModelListResult, Provider

PLAIN = Style(colour=False, unicode=True)


def provider(name: str, *, ready: bool = True, in_the_clear: bool = False, list_error: str = "") -> Provider:
    return Provider(
        name=name,
        title=name.title(),
        key_source="environment",
        api_base="http://box:4777",
        ready=ready,
        in_the_clear=in_the_clear,
        list_error=list_error,
    )


def test_outdated_lists_and_unencrypted_servers_are_reported() -> None:
    rows = (
        provider("openai", list_error="OpenAI could not be reached."),
        provider("proxy", in_the_clear=True),
        provider("ollama", ready=False, in_the_clear=True),
    )
    listing = ModelListResult(providers=rows, models=(), default=None)
    assert format_warnings(listing, PLAIN, 80) == [
        "! OpenAI could not be reached.",
        "! Proxy: the connection to http://box:4777 is not encrypted.",
    ]


def test_server_without_a_list_has_no_tick() -> None:
    rows = (provider("lab"), provider("dead", list_error="Nothing answers at box:4777."))
    lines = format_ready(ModelListResult(providers=rows, models=(), default=None), PLAIN)
    assert [line.split()[:2] for line in lines] == [["✓", "Lab"], ["!", "Dead"]]
