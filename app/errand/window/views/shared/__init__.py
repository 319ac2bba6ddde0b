"""Shared by several views and specific to this application: actions and shortcuts, the picker, item painting.

Generic controls are in `widgets`.
"""
