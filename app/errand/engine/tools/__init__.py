"""The tools and their shared parts: interface, argument checks, registry, safe paths.

Start at base.py; registry.py lists the tools.
"""
