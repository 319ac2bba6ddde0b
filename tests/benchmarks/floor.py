"""The baseline: a bare loop on aiohttp that does only what a tool step needs.

`python -m tests.benchmarks.floor URL TASKS [WORD …]` prints one JSON line: wall and CPU seconds for all of it, also
with its commands. The
words are a program that runs each command, such as bubblewrap with its options.
"""

import asyncio
import json
import resource
import sys
import time
from collections.abc import Sequence

import aiohttp


async def _task(session: aiohttp.ClientSession, url: str, box: Sequence[str]) -> None:
    messages: list[dict[str, object]] = [{"role": "user", "content": "go"}]
    while True:
        call = await _call(session, url, messages)
        name = call["function"]["name"]
        if name == "task_complete":
            return
        process = await asyncio.create_subprocess_exec(
            *box, "bash", "--noprofile", "--norc", "-c", json.loads(call["function"]["arguments"])["command"],
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, _ = await process.communicate()
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": out.decode()})


async def _call(
    session: aiohttp.ClientSession, url: str, messages: list[dict[str, object]]
) -> "dict[str, dict[str, str]]":
    body = json.dumps({"model": "m", "stream": True, "messages": messages}, separators=(",", ":"))
    call: dict[str, dict[str, str]] = {}
    async with session.post(f"{url}/chat/completions", data=body) as response:
        async for line in response.content:
            if line.startswith(b"data: {"):
                choices = json.loads(line[6:])["choices"]
                if choices and "tool_calls" in choices[0]["delta"]:
                    call = choices[0]["delta"]["tool_calls"][0]
    return call


async def _run(url: str, tasks: int, box: Sequence[str]) -> None:
    if sys.version_info < (3, 12):
        watcher = asyncio.PidfdChildWatcher()
        watcher.attach_loop(asyncio.get_running_loop())
        # The default starts a thread for each child: the baseline would be too high.
        asyncio.set_child_watcher(watcher)  # pyright: ignore[reportDeprecated] - only where it is the way
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        started, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(_task(session, url, box) for _ in range(tasks)))
        wall, used = time.perf_counter() - started, time.process_time() - cpu
    commands = resource.getrusage(resource.RUSAGE_CHILDREN)
    tree = used + commands.ru_utime + commands.ru_stime
    sys.stdout.write(json.dumps({"wall_s": wall, "cpu_s": used, "tree_cpu_s": tree}) + "\n")


if __name__ == "__main__":
    asyncio.run(_run(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
