"""The tool `code`: reads, writes, patches, lists and searches files of the workspace. Start at tool.py."""
