"""The base of every wire struct: frozen, keyword-only, camel case on the wire, unknown fields refused."""

from datetime import datetime
from typing import Annotated, TypeAlias

import msgspec

Moment: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


class Wire(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=False):
    """A record on the wire. Names are snake_case here and camelCase in JSON."""
