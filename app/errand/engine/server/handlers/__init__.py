"""Thin handlers, one module for each protocol module, each with its tuple HANDLERS.

No logic that another caller could need.
"""
