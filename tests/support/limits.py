"""The limit of every wait in the tests.

A wait ends when what it waits for has happened, so a generous limit costs a test that succeeds nothing.
"""

WAIT_LIMIT_S = 120.0
