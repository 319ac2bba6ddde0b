"""Whether a window can open here: asked before Qt is loaded, which ends the process where it finds no display."""

import ctypes
import ctypes.util
import sys
from collections.abc import Mapping


def no_window(environment: Mapping[str, str]) -> str | None:
    """Why no window can open here, as a sentence; None if one can."""
    if sys.platform in ("win32", "darwin") or environment.get("WAYLAND_DISPLAY"):
        return None
    if environment.get("QT_QPA_PLATFORM"):
        return None  # somebody knows better, such as a test
    display = environment.get("DISPLAY")
    if not display:
        return "No display was found"
    if not _answers(display):
        return f"The display {display} does not answer"
    return None


def _answers(display: str) -> bool:
    """True if the X server takes a connection, or if only Qt can tell."""
    name = ctypes.util.find_library("xcb")
    if name is None:
        return True
    xcb = ctypes.CDLL(name)
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = (ctypes.c_char_p, ctypes.c_void_p)
    xcb.xcb_connection_has_error.argtypes = (ctypes.c_void_p,)
    xcb.xcb_disconnect.argtypes = (ctypes.c_void_p,)
    connection = xcb.xcb_connect(display.encode(), None)
    try:
        return xcb.xcb_connection_has_error(connection) == 0
    finally:
        xcb.xcb_disconnect(connection)
