"""Attacks on a running Errand, one module or folder for each way in: socket, files, repository, models, terminal.

Each test plays an attack through a public door and states what must hold. `make test` runs the short form;
`make attacks` runs the same tests for longer, from a seed that is printed, and ends with a table of figures.
Everything stays on the loopback and in temporary folders, is bounded in time and memory, and ends only what it started.
"""
