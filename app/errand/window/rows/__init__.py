"""The kinds of transcript rows: each view with its spacing and its text forms. The rows as plain data are in row.py.

`stores/conversation/node_rows.py` selects the rows; `transcript` lays them out. Asks are in `asks`, tool calls in
`tools`. Start with row.py, then reply.py.
"""
