"""An MCP server on the web, made with the SDK: streamable HTTP on a free port of this machine."""

import socket
import sys


def main() -> None:
    import uvicorn
    from mcp.server.mcpserver import Context, MCPServer

    server = MCPServer("web test")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    async def slow(ctx: Context) -> str:
        """Report progress, then answer."""
        for step in range(1, 4):
            await ctx.report_progress(step, 3, f"step {step}")
        return "done"

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(100)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
