"""Tool calls as XML text for models without native tool calls: prompt, history, streaming parser. Start at reply.py."""
