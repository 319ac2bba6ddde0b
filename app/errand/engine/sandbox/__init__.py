"""The bounds of what commands of tools may reach, and the means of the operating system to enforce them.

The policy (engine/permissions) decides whether a command runs; the sandbox bounds what a running command can do. Start
at launch.py: `profile.py` says what a command may reach, `detection.py` which means this machine has, and
`bubblewrap.py` or `landlock.py` enforce it.
"""
