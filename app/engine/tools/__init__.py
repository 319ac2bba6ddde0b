"""The tools and what they share: interface, argument checks, registry, safe paths.

Start at base.py; registry.py lists the tools.
"""
