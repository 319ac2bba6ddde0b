"""Handlers of pictures on the web."""

from errand.engine.permissions.network import own_port
from errand.engine.server.route import Route
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.engine.server.web_pictures import load_picture
from errand.protocol.pictures import PICTURE_LOAD, PictureLoadParams, PictureLoadResult


async def load(services: Services, session: ClientSession, params: PictureLoadParams) -> PictureLoadResult:
    return await load_picture(params, own_port(services.paths), services.settings.values.ca_file)


HANDLERS = (Route(PICTURE_LOAD, load),)
