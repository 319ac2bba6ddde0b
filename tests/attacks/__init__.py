"""Attacks on a running Errand, one module or folder per entry point: socket, files, repository, models, terminal.

Each test attacks a public interface and asserts what must hold. `make test` runs the short form; `make attacks` runs
the same tests for longer, from a printed seed, and prints a table of figures. Everything stays on the loopback and in
temporary folders, is bounded in time and memory, and ends only what it started.
"""
