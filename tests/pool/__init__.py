"""`make test`: processes that take test files from one queue. Start at `pool.py`; `worker.py` runs inside pytest."""
