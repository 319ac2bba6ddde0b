"""How requests leave this machine: through proxies of the environment, with certificates of the person's own."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.core.errors import InvalidParams
from errand.engine.core.outgoing import UnusableRoute, proxy_of, tls_context
from errand.engine.core.secrets import KeyStore
from errand.engine.core.setting_values import McpServer, SettingValues
from errand.engine.core.settings import Settings
from errand.engine.models.catalog.providers import PROVIDERS
from errand.engine.models.endpoint import ModelEndpoint
from errand.engine.models.http_model import HttpModel
from errand.engine.models.http_pool import HttpPool
from errand.engine.models.openai.model import ChatCompletions
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.recovery.source import ModelSource
from errand.engine.models.router import ModelRouter
from errand.engine.sandbox.http_proxy import HttpProxy
from errand.engine.tools.mcp.json_rpc import McpError
from tests.support.company_network import HOST, CompanyNetwork, company_network
from tests.support.limits import WAIT_LIMIT_S
from tests.support.loop_parts import failure, make_tool_context, run, text_of, tool_of
from tests.support.mcp_servers import pool_of
from tests.support.model_replies import final, request_for
from tests.support.model_server import ModelServer, Reply
from tests.support.provider_servers import NO_LOCAL_SERVERS
from tests.support.web_site import Rules, web_site, with_rules

_SECURE = f"https://{HOST}"
_LOGIN = "Basic bWU6c2VjcmV0"  # me:secret


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("variables", "url", "proxy"),
    [
        ({}, "https://a.test/", None),
        ({"HTTPS_PROXY": "http://p:1"}, "https://a.test/", "http://p:1"),
        ({"https_proxy": "p:1"}, "https://a.test/", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1"}, "http://a.test/", None),
        ({"ALL_PROXY": "http://p:1"}, "http://a.test/", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.test"}, "https://a.test/", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".test"}, "https://b.a.test/", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.test:8443"}, "https://a.test:8443/", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.test:8443"}, "https://a.test/", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, "https://a.test/", None),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "x, 10.0.0.0/8"}, "https://10.1.2.3/", None),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "10.0.0.0/8"}, "https://11.1.2.3/", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1"}, "https://localhost/", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://127.0.0.1:8000/v1", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://[::1]:8000/v1", None),
    ],
)
def test_the_environment_says_which_addresses_have_a_proxy(
    variables: dict[str, str], url: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxy_of(url) == proxy


def test_a_proxy_that_does_not_speak_http_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    with pytest.raises(UnusableRoute, match=r"names a socks5 proxy for a\.test.*HTTPS_PROXY.*NO_PROXY"):
        proxy_of("https://a.test/")


@pytest.mark.parametrize(("content", "reason"), [(None, "No such file"), (b"", "PEM"), (b"\xff\x00 no pem", "PEM")])
def test_a_file_without_certificates_is_refused_and_the_setting_unchanged(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UnusableRoute, match=reason):
        tls_context(str(file))
    settings = Settings(tmp_path / "settings.json")
    with pytest.raises(InvalidParams, match=f"ca_file names {file}.*{reason}"):
        settings.set("ca_file", str(file))
    assert settings.values.ca_file == ""


async def _reply(network: CompanyNetwork, pool: HttpPool, base: str) -> str:
    provider = next(row for row in PROVIDERS if row.name == "openai_compatible")
    endpoint = ModelEndpoint(provider, base, _no_key)
    model = RecoveringModel(ModelSource(HttpModel(endpoint, ChatCompletions, pool)), RetryPolicy(attempts=1))
    reply = await final(model, request_for("openai_compatible/test-model"))
    return reply.text or reply.error or ""


async def _no_key() -> str | None:
    return None


async def test_models_are_asked_through_the_proxy_once_its_authority_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca_file = ""
    pool = HttpPool(lambda: ca_file)
    async with (
        ModelServer([Reply(text="one"), Reply(text="two")]) as server,
        company_network(tmp_path, _port(server.url), monkeypatch) as network,
    ):
        refused = await _reply(network, pool, f"{_SECURE}/v1")
        ca_file = str(network.ca_file)
        assert await _reply(network, pool, f"{_SECURE}/v1") == "one"
        assert await _reply(network, pool, f"http://{HOST}/v1") == "two"
        await pool.close()
    assert "self-signed certificate" in refused and "the setting ca_file" in refused
    assert network.seen[0] == f"CONNECT {HOST}:443 HTTP/1.1"
    assert network.seen[-1] == f"POST http://{HOST}/v1/chat/completions HTTP/1.1"
    assert set(network.logins) == {_LOGIN}


async def test_lists_of_models_come_through_the_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ModelServer([]) as server, company_network(tmp_path, _port(server.url), monkeypatch) as network:
        variables = {**NO_LOCAL_SERVERS, "OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{_SECURE}/v1"}
        keys = KeyStore(tmp_path / "keys", variables, lambda: None)
        values = SettingValues(ca_file=str(network.ca_file))
        models = ModelRouter(keys, tmp_path, RetryPolicy(attempts=1), lambda: values, tmp_path / "models.json")
        listed = await models.available.list(refresh=True, fetch=True)
        await models.close()
    assert "openai/test-model" in {model.id for model in listed.models}
    assert network.seen == [f"CONNECT {HOST}:443 HTTP/1.1"]


async def test_a_web_page_comes_through_the_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = with_rules(make_tool_context(tmp_path), Rules(allowed=(HOST,)))
    async with (
        web_site({"/": "<p>From the company"}) as site,
        company_network(tmp_path, site.port, monkeypatch) as network,
    ):
        refused = await failure(tool_of(context, "web_fetch"), {"url": f"{_SECURE}/"})
        trusting = replace(context, settings=SettingValues(ca_file=str(network.ca_file)))
        page = text_of(await run(tool_of(trusting, "web_fetch"), {"url": f"{_SECURE}/"}))
    assert "certificate is not valid" in str(refused) and "ca_file" in str(refused)
    assert page.endswith("From the company")


async def test_a_server_of_tools_is_reached_through_the_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        web_site({}) as site,
        company_network(tmp_path, site.port, monkeypatch) as network,
        pool_of(tmp_path, McpServer(name="web", url=f"{_SECURE}/mcp"), ca_file=str(network.ca_file)) as pool,
    ):
        with pytest.raises(McpError, match="404"):
            await (await pool.find("web")).connected()
        assert site.requests == ["/mcp"]


async def test_commands_and_pages_of_the_browser_are_led_on_to_the_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[tuple[str, int]] = []
    ours = HttpProxy(lambda host, port, addresses: judged.append((host, port)), max_connections=4)
    async with web_site({"/a": "plain"}) as site, company_network(tmp_path, site.port, monkeypatch) as network:
        port = ours.open()
        plain = await _asked(port, f"GET http://{HOST}/a HTTP/1.1\r\nHost: {HOST}\r\n\r\n")
        tunnel = await _asked(port, f"CONNECT {HOST}:443 HTTP/1.1\r\n\r\n", "HTTP/1.1 200 Connection established")
        elsewhere = await _asked(port, "CONNECT other.test:443 HTTP/1.1\r\n\r\n")
        await ours.close()
    assert plain.startswith("HTTP/1.1 200") and plain.endswith("plain")
    assert tunnel.startswith("HTTP/1.1 200")
    assert "refuses: 502 Unknown host" in elsewhere
    assert judged == [(HOST, 80), (HOST, 443), ("other.test", 443)]
    assert set(network.logins) == {_LOGIN}


async def _asked(port: int, request: str, until: str = "") -> str:
    """Return the answer of a proxy: all of it, or its head for a tunnel."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    async with asyncio.timeout(WAIT_LIMIT_S):
        answer = await (reader.readuntil(b"\r\n\r\n") if until else reader.read())
    writer.close()
    return answer.decode()


def _port(url: str) -> int:
    return int(url.split(":")[2].split("/")[0])
