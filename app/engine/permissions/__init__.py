"""Whether a call may run: policy, dangerous commands, grants. Asking the person is agent/run. Start at policy.py."""
