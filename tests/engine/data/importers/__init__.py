"""Conversations of other programs; files/ holds samples."""
