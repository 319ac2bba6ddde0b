"""A desktop's tray: takes the items of apps and shows nothing."""

import asyncio

from dbus_fast import Message, Variant
from dbus_fast.aio import MessageBus

from tests.support.session_bus import Service, on_bus

NAME = "org.kde.StatusNotifierWatcher"
_INTROSPECTION = f"""<!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">
<node><interface name="{NAME}">
  <method name="RegisterStatusNotifierItem"><arg type="s" direction="in"/></method>
  <property name="IsStatusNotifierHostRegistered" type="b" access="read"/>
</interface></node>"""


class TrayHost(Service):
    """`has_item` once an app has put itself there."""

    def __init__(self, bus: MessageBus) -> None:
        super().__init__(bus, NAME)
        self.has_item = asyncio.Event()

    @classmethod
    async def start(cls, address: str) -> "TrayHost":
        host = cls(await on_bus(address))
        await host.own()
        return host

    def answer(self, message: Message) -> Message:
        match message.member:
            case "Introspect":
                return Message.new_method_return(message, "s", [_INTROSPECTION])
            case "Get":
                return Message.new_method_return(message, "v", [Variant("b", True)])
            case "RegisterStatusNotifierItem":
                self.has_item.set()
                return Message.new_method_return(message)
            case other:
                raise AssertionError(f"A tray cannot {other}.")
