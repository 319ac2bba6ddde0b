"""Model providers behind one interface, `ChatModel`.

No task, no conversation, no tool execution. Start at base.py; router.py opens a model by id.
"""
