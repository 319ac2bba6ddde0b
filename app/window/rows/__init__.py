"""The kinds of transcript rows, one module each: row, view, spacing, text form.

`stores/conversation/node_rows.py` selects the rows; `transcript` lays them out. Start with row.py,
then reply.py.
"""
