"""A proxy of FastMCP: its server over HTTP, its client before one stdio server.

The address is the first line of the output.
"""

import socket
import sys

import uvicorn
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

proxy = create_proxy(StdioTransport(sys.argv[1], []))
listener = socket.create_server(("127.0.0.1", 0))
print(f"127.0.0.1:{listener.getsockname()[1]}", flush=True)
config = uvicorn.Config(proxy.http_app(), log_level="warning", lifespan="on")
uvicorn.Server(config).run(sockets=[listener])
