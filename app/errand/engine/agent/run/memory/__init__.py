"""Memory in a task: what it is given with each message, and what it proposes to remember of one."""
