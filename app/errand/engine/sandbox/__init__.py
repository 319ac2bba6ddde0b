"""What commands of tools may reach, and the operating system's means to enforce it.

The policy (engine/permissions) decides whether a command runs; the sandbox bounds what a running command can do. Start
at launch.py: `profile.py` says what a command may reach, `form.py` which means holds here, and `bubblewrap.py` or
`landlock.py` enforce it.
"""
