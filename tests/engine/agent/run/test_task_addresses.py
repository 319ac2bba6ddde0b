"""The address rules of a task where its tools connect, while it runs and after its end."""

from datetime import UTC, datetime
from pathlib import Path

from errand.engine.agent.run.task_sandbox import TaskAddresses
from errand.engine.agent.run.task_state import TaskState
from errand.protocol.tasks.task import replace_fields
from tests.support.engine_parts import engine_parts
from tests.support.model_server import ModelServer
from tests.support.records import task


async def test_the_mode_that_allows_all_opens_no_host_after_the_end_of_its_task(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        services = engine.services
        state = TaskState(replace_fields(task(), approve="all"), services.log)
        guard = TaskAddresses(state, services.grants, services.settings, services.paths)
        page, other = "http://example.org/", "http://example.com/"
        assert guard.refusal("browser", page) is None
        state.task = replace_fields(state.task, ended_at=datetime.now(UTC))
        assert guard.refusal("browser", page) == "no rule opens example.org"
        assert guard.refusal("browser", page, (page,)) is None
        assert guard.refusal("browser", other, (page,)) == "no rule opens example.com"
        assert guard.refusal("browser", "http://localhost:8000/") is None
