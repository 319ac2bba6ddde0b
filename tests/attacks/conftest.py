"""The campaign shared by all attacks, and its table of figures after a long run."""

import pytest

from tests.attacks.campaign import Campaign

_CAMPAIGN = Campaign()


@pytest.fixture(scope="session")
def campaign() -> Campaign:
    return _CAMPAIGN


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _CAMPAIGN.is_long:
        return
    terminalreporter.section(f"attacks, seed {_CAMPAIGN.seed}")
    for figure, value in sorted(_CAMPAIGN.figures.items()):
        terminalreporter.write_line(f"{value:>12,.10g}  {figure}")
