"""Signing in to servers on the web, by the authorization part of the Model Context Protocol (OAuth 2.1 with PKCE).

Start at `logins.py`, which owns the sign-ins that wait for a person and the tokens of those that are done. `flow.py` is
one sign-in: `discovery.py` finds out where, `callback.py` waits for the browser, `tokens.py` speaks to the token
endpoint. All requests to addresses that a server names go through `named_addresses.py` (decision 48).
"""
