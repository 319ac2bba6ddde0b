"""Checkpoints: what tasks change in files, kept so that it can be compared, undone and redone (decision 41).

`recorder.py` is what a task's tools use. `undo.py` answers the clients; `history.py` has the rules, `contents.py` the
stored bytes. A command is covered by the baseline of its workspace (`baselines.py`, `baseline.py`), which knows what
each file held before; where there is none, the files that it names are kept (`commands.py`).

Whether all that commands change in a workspace can be undone is told by `Baselines`, as a `Coverage` with a reason in
words: `coverage_of(workspace)` costs nothing, and says no of a workspace that was never looked at; `await
prepare(workspace)` looks first, for at most ten seconds, and costs nothing afterwards. The object is
`services.checkpoints.baselines`, and `ToolDependencies.baselines` where a task is built.
"""
