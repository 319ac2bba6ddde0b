"""Mutation testing: small changes of the program, one at a time, that the tests of its part must detect.

`make mutants` runs it (docs/mutants.md); `make test` collects nothing here. Start at `__main__.py`; `parts.py` maps
code to tests, `mutations.py` has the changes, `checkout.py` the sandbox.
"""
