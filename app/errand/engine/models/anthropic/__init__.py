"""Anthropic's Messages API over HTTP.

Start at messages_api.py.
"""
