"""What commands of tools may reach, and the operating system's means to enforce it.

The policy (engine/permissions) decides whether a command runs; the sandbox bounds what a running command can do. Start
at profile.py.
"""
