"""Permission checks for tool calls: policy, dangerous commands, grants. agent/run asks. Start at policy.py."""
