"""Errand: engine, window and command line in one package.

Start at __main__.py; modules here are used by several of them.
"""
