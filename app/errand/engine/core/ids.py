"""Ids: a prefix for the kind, then time and randomness, so that later ids sort later."""

import secrets
import time


def new_id(kind: str) -> str:
    """Return a new id such as `task_19a1b2c3d4e5f60718293a`: 11 hex digits of milliseconds, 12 random ones."""
    return f"{kind}_{int(time.time() * 1000):011x}{secrets.token_hex(6)}"
