"""Backup, restore and repair of real databases."""
