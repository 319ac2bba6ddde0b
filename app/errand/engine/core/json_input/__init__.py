"""JSON from outside: bounded while it is read (foreign_json.py), damaged in known ways (lenient_json.py), schemas.

Texts of our own are decoded by msgspec where they are read.
"""
