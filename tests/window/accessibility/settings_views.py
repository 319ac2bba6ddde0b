"""The forms and lists of the settings, each with something in it."""

from PySide6.QtWidgets import QLabel, QWidget

from errand.protocol.asks import GRANT_ADD, GrantAddParams, GrantDraft, GrantedCall
from errand.protocol.servers import MCP_SAVE, McpSaveParams
from errand.protocol.settings import MODEL_SERVER_SAVE, ModelServerSaveParams
from errand.protocol.skills import SkillInstallParams, SkillPreviewParams
from errand.text.translation import tr
from errand.window.views.settings.dialog import PageName, SettingsDialog
from errand.window.views.settings.grants_page import GrantRowView
from errand.window.views.settings.licences_dialog import LicencesDialog
from errand.window.views.settings.local_models_page import LocalModelRowView
from errand.window.views.settings.mcp_servers import McpServerRowView
from errand.window.views.settings.providers.row import ProviderRowView
from errand.window.views.settings.skills_page import SkillRowView
from tests.support.window import press, until
from tests.window.accessibility.full_window import WindowFixture, top

_NOBODY = "http://127.0.0.1:9/v1"


async def provider(fixture: WindowFixture) -> QWidget:
    """An own provider that does not answer, its models, and the form that adds one."""
    await fixture.engine.stores.session.call(
        MODEL_SERVER_SAVE, ModelServerSaveParams(name="Lab", address=_NOBODY, key="k-of-the-test")
    )
    dialog = await _page(fixture, "providers", ProviderRowView)
    press(dialog, f"{tr('Models…').rstrip('…')} Lab")
    press(dialog, tr("Add model…"))
    return dialog


async def personality(fixture: WindowFixture) -> QWidget:
    dialog = await _page(fixture, "personalities")
    press(dialog, tr("New personality"))
    return dialog


async def rules(fixture: WindowFixture) -> QWidget:
    """A rule, and the form that adds one."""
    call = GrantedCall(operation="run", prefix=("git", "push"))
    await fixture.engine.stores.session.call(
        GRANT_ADD, GrantAddParams(rules=(GrantDraft(decision="deny", call=call, scope="user"),))
    )
    dialog = await _page(fixture, "permissions", GrantRowView)
    press(dialog, tr("Add rule…"))
    return dialog


async def servers(fixture: WindowFixture) -> QWidget:
    """A server, and the form that adds one."""
    await fixture.engine.stores.session.call(MCP_SAVE, McpSaveParams(name="test", command=("false",)))
    dialog = await _page(fixture, "tools", McpServerRowView)
    press(dialog, tr("Add server…"))
    return dialog


async def local_models(fixture: WindowFixture) -> QWidget:
    return await _page(fixture, "local_models", LocalModelRowView)


async def skills(fixture: WindowFixture) -> QWidget:
    """An installed skill, and the form that installs one."""
    source = fixture.home / "report"
    source.mkdir(exist_ok=True)
    (source / "SKILL.md").write_text("---\nname: report\ndescription: Makes reports.\n---\nWrite it.\n")
    skills = fixture.engine.parts.services.tools.skills
    preview = (await skills.preview(SkillPreviewParams(source=str(source)))).preview
    if preview is not None:
        await skills.install(SkillInstallParams(source=preview.source, fingerprint=preview.fingerprint))
    dialog = await _page(fixture, "skills", SkillRowView)
    press(dialog, tr("Install skill…"))
    return dialog


async def licences(fixture: WindowFixture) -> QWidget:
    dialog = await _page(fixture, "about")
    press(dialog, tr("Licences…"))
    licences_dialog = top(LicencesDialog)
    assert isinstance(licences_dialog, LicencesDialog)
    await until(lambda: licences_dialog.list.count() > 0)
    licences_dialog.list.setCurrentRow(0)
    return licences_dialog


async def _page(fixture: WindowFixture, name: PageName, shows: type[QWidget] = QLabel) -> QWidget:
    """The dialog on that page, once it shows such a widget."""
    fixture.window.dialogs.settings.open_page(name)
    dialog = top(SettingsDialog)
    await until(lambda: any(widget.isVisible() for widget in dialog.findChildren(shows)))
    return dialog
