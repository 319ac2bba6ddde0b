"""A skill from a git repository that a server on this machine serves over HTTPS."""

import asyncio
import os
import subprocess
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from aiohttp import web

from errand.engine.core.errors import InvalidParams
from errand.engine.skills.skills import Skills
from errand.protocol.skills import SkillInstallParams, SkillPreviewParams
from errand.system.paths import Paths
from errand.system.regular_file import make_folder
from tests.engine.skills.test_skills import repository, written
from tests.support.provider_servers import self_signed


def _served_by_git(root: Path, request: web.Request, body: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run `git http-backend` on a request, by the rules of CGI."""
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "REQUEST_METHOD": request.method,
        "PATH_INFO": request.path,
        "QUERY_STRING": request.query_string,
        "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
        "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
    }
    return subprocess.run(["git", "http-backend"], input=body, stdout=PIPE, env=environment, check=True)


async def test_a_skill_is_installed_over_https_and_from_no_server_that_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "served/report")
    repository(tmp_path / "served/report")

    async def answer(request: web.Request) -> web.Response:
        process = await asyncio.to_thread(_served_by_git, tmp_path / "served", request, await request.read())
        head, _, body = process.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(fields.pop("Status", "200").split()[0])
        return web.Response(status=status, body=body, headers=fields)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    certificate = await asyncio.to_thread(self_signed, tmp_path)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificate).start()
    paths = Paths(tmp_path / "data")
    paths.prepare()
    make_folder(tmp_path / "home")
    skills = Skills(paths, tmp_path / "home")
    address = f"https://127.0.0.1:{runner.addresses[0][1]}/report/.git"
    try:
        with pytest.raises(InvalidParams, match="could not be fetched"):
            await skills.preview(SkillPreviewParams(source=address))
        monkeypatch.setenv("GIT_SSL_CAINFO", str(tmp_path / "certificate.pem"))
        preview = (await skills.preview(SkillPreviewParams(source=address))).preview
        assert preview is not None and len(preview.commit) == 40
        installed = await skills.install(SkillInstallParams(source=address, fingerprint=preview.fingerprint))
    finally:
        await runner.cleanup()
    assert (installed.source, installed.commit, installed.scripts) == (address, preview.commit, 2)
