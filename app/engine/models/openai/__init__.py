"""The OpenAI chat completions API over aiohttp, used by most providers, and its wire format, which litellm and proxy
share. Start at model.py.
"""
