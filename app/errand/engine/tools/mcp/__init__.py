"""Tools of other programs, by the Model Context Protocol: servers, their connections, and what they offer to tasks.

Start at `pool.py`, which owns every server; `server.py` starts, restarts and ends one; `connection.py` speaks the
protocol over `stdio.py` or `http.py`. `tool.py` makes their tools tools of a task. The protocol is spoken here without
the SDK, whose import costs 38 MB (decision 44).
"""
