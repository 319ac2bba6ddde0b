"""The programs that may run without asking, and the flags they may have. Start at table.py."""
