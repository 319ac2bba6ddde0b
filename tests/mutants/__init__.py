"""Mutation testing: small changes of the program, one at a time, that the tests of its part must notice.

`make mutants` runs it (docs/mutants.md); nothing here is collected by `make test`. Start at `__main__.py`; `parts.py`
says which tests belong to which code, `mutations.py` what is changed, `checkout.py` where it runs.
"""
