"""Tools that control their task: its end, questions, messages, the to-do list, finding other tools."""
