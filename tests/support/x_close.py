"""Asks a window on an X display to close, as a window manager does; xdotool can only kill in its older versions."""

import ctypes

_CLIENT_MESSAGE = 33


class _ClientMessage(ctypes.Structure):
    """XClientMessageEvent of Xlib.h, padded to the size of an XEvent."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        ("window", ctypes.c_ulong),
        ("message_type", ctypes.c_ulong),
        ("format", ctypes.c_int),
        ("data", ctypes.c_long * 5),
        ("padding", ctypes.c_long * 24),
    )


def ask_to_close(display: str, window: int) -> None:
    x11 = ctypes.CDLL("libX11.so.6")
    x11.XOpenDisplay.restype = ctypes.c_void_p
    x11.XInternAtom.restype = ctypes.c_ulong
    line = ctypes.c_void_p(x11.XOpenDisplay(display.encode()))
    protocols = x11.XInternAtom(line, b"WM_PROTOCOLS", 0)
    delete = x11.XInternAtom(line, b"WM_DELETE_WINDOW", 0)
    message = _ClientMessage(type=_CLIENT_MESSAGE, window=window, message_type=protocols, format=32)
    message.data[0] = delete
    x11.XSendEvent(line, ctypes.c_ulong(window), 0, ctypes.c_long(0), ctypes.byref(message))
    x11.XCloseDisplay(line)
