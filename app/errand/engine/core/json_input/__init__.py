"""JSON from outside: bounded while it is read (foreign_json.py), damaged in known ways (lenient_json.py), with fields
of other types than expected (fitting.py), schemas.

Texts of our own are decoded by msgspec where they are read.
"""
