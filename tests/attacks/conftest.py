"""The campaign shared by all attacks, and its table of figures after a long run."""

import pytest

from tests.attacks.campaign import Campaign
from tests.support.warm_library import warm_router_process

_CAMPAIGN = Campaign()


@pytest.fixture(scope="session")
def campaign() -> Campaign:
    return _CAMPAIGN


@pytest.fixture
def warm_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Routers in this process ask the library that all tests share: to import it takes 5 s."""
    monkeypatch.setattr("errand.engine.models.litellm.library_process.LibraryProcess", warm_router_process)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _CAMPAIGN.is_long:
        return
    terminalreporter.section(f"attacks, seed {_CAMPAIGN.seed}")
    for figure, value in sorted(_CAMPAIGN.figures.items()):
        terminalreporter.write_line(f"{value:>12,.10g}  {figure}")
