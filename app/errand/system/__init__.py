"""What all programs of Errand use of the operating system: paths, files, locks, environment, log, mutual trust.

Start at `paths.py` (the folders of Errand) and `regular_file.py` (the only way to open a file that others name). What
people read is in `errand.text`; what only the engine needs is in `errand.engine.core`.
"""
