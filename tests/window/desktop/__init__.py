"""Notifications, tray, global shortcut and single instance on a real session bus."""
