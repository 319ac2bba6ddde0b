"""Permission checks for tool calls: policy, dangerous commands, grants. agent/run asks the person. Start at
policy.py."""
