"""This installation: what is installed and set, keys, help for shells. Start at doctor.py."""
