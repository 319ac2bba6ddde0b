"""The tools of a task: as its model is told of them, with those of MCP servers, and help for small models."""
