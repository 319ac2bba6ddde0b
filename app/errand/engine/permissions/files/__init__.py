"""The policy for paths: which files may be read and written, with the folders that a task may use.

Start at file_policy.py. Files that commands name are judged by it too; how commands name them is in ../programs.
"""
