"""The kinds of rows of a transcript, one module each: row, view, spacing, text form.

Which rows there are is decided in stores/conversation/node_rows.py; placing them is `transcript`. Start with row.py,
then reply.py.
"""
