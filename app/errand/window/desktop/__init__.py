"""Desktop integration: D-Bus notifications, tray, global shortcut, single instance, quick tasks, quitting.

Imported after the first paint. Start with integration.py.
"""
