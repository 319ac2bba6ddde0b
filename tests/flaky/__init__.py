"""`make flaky`: test files run many times beside processes that keep each core busy. Start at `__main__.py`."""
