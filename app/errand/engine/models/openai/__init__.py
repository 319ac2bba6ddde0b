"""The OpenAI chat completions API over aiohttp, used by most providers.

Its wire format is shared with litellm and proxy. Start at model.py.
"""
