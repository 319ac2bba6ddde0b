"""A database server at the other end of a network: passwords, TLS, and connections that are lost."""

import ssl
from pathlib import Path

import pytest

from errand.engine.core.errors import ConfigurationError, StorageError
from errand.engine.storage.database import Database
from errand.engine.storage.records import conversations, memory_log, nodes
from tests.support.company_network import certificate
from tests.support.postgres_proxy import Loss, proxied
from tests.support.postgres_server import GUARDED, PostgresServer
from tests.support.records import conversation, node


@pytest.fixture
def database_url(postgres: PostgresServer) -> str:
    return postgres.new_database()


@pytest.mark.parametrize("loss", ["unsent", "unanswered"])
async def test_a_commit_on_a_lost_connection_is_made_once_and_nobody_notices(
    database_url: str, tmp_path: Path, loss: Loss
) -> None:
    async with proxied(database_url) as proxy:
        database = await Database.open(proxy.url, tmp_path)
        database.journal.set_waits_saved(True)
        conditions: list[object] = []
        unsubscribe = database.health.subscribe(lambda: conditions.extend(database.health.conditions))
        for number in range(4):
            proxy.next_commit = loss if number % 2 else None
            database.journal.put(memory_log.add("pruned", "Errand", f"{number} vectors"))
            await database.journal.flush()
        unsubscribe()
        assert (proxy.lost, conditions) == (2, [])
        assert len((await database.memory_log.page(9)).entries) == 4
        await database.close()


async def test_connections_that_were_lost_while_nothing_happened_are_replaced(
    database_url: str, tmp_path: Path
) -> None:
    async with proxied(database_url) as proxy:
        database = await Database.open(proxy.url, tmp_path)
        database.journal.set_waits_saved(True)
        database.journal.put(conversations.save(conversation("c1")))
        await database.journal.flush()
        proxy.lose_all()
        assert await database.conversations.get("c1") == conversation("c1")
        proxy.lose_all()
        database.journal.put(nodes.save(node("n1")))
        await database.journal.flush()
        proxy.lose_all()
        assert await database.nodes.get("n1") == node("n1")
        assert database.health.conditions == ()
        await database.close()


async def test_a_session_whose_end_the_server_did_not_notice_is_ended_by_its_own_engine(
    database_url: str, tmp_path: Path
) -> None:
    async with proxied(database_url) as proxy:
        database = await Database.open(proxy.url, tmp_path)
        database.journal.set_waits_saved(True)
        proxy.keeps_sessions = True
        proxy.lose_all()
        database.journal.put(conversations.save(conversation("c1")))
        await database.journal.flush()
        assert await database.conversations.get("c1") == conversation("c1")
        with pytest.raises(StorageError, match="another Errand uses this database"):
            await Database.open(proxy.url, tmp_path)
        await database.close()


async def test_the_server_is_reached_by_tls_with_a_password_and_its_certificate_is_checked(
    database_url: str, postgres: PostgresServer, tmp_path: Path
) -> None:
    root, key = certificate(tmp_path, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(root, key)
    postgres.allow_with_password(database_url, "p@ss/word?")
    async with proxied(database_url, context) as proxy:
        address = proxy.address.set(username=GUARDED, password="p@ss/word?")
        for query in ({"sslmode": "require"}, {"sslmode": "verify-full", "sslrootcert": str(root)}):
            url = address.update_query_dict(query).render_as_string(hide_password=False)
            await (await Database.open(url, tmp_path)).close()
        wrong = address.set(password="wrong").update_query_dict({"sslmode": "require"})
        with pytest.raises(StorageError, match="password authentication failed") as refused:
            await Database.open(wrong.render_as_string(hide_password=False), tmp_path)
        unknown = address.update_query_dict({"sslmode": "verify-full", "sslrootcert": "system"})
        with pytest.raises(StorageError, match="certificate verify failed") as unverified:
            await Database.open(unknown.render_as_string(hide_password=False), tmp_path)
        secret = address.set(password=None).update_query_dict({"password": "sesame", "sslmode": "nonsense"})
        with pytest.raises(StorageError, match="sslmode") as misspelt:
            await Database.open(secret.render_as_string(hide_password=False), tmp_path)
        missing = address.update_query_dict({"sslmode": "verify-full", "sslrootcert": "/no/root.pem"})
        with pytest.raises(ConfigurationError, match="names no file with sslrootcert=/no"):
            await Database.open(missing.render_as_string(hide_password=False), tmp_path)
    texts = [str(error.value) for error in (refused, unverified, misspelt)]
    assert not [text for text in texts if "wrong" in text or "p@ss" in text or "sesame" in text]
