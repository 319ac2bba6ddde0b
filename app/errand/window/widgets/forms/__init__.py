"""Fields and forms: one field, fields with their labels, a form or a question that opens inside a page.

Start at form.py.
"""
