"""Errand: engine, window and command line in one package.

Start at `__main__.py`; the modules in this folder are shared by several of them.
"""
