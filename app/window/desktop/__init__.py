"""The desktop around the window: D-Bus notifications, tray, global shortcut, single instance, quick tasks, quitting.
Loaded after the first paint. Start with integration.py.
"""
