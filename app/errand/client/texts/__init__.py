"""Texts that all clients show, in the person's language: one module for each subject.

Numbers, times and amounts are in number_format.py, the escaping of untrusted text in safe_text.py, one folder up.
"""
