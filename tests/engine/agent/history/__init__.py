"""Branches, participants, attachments, conversion."""
