#!/usr/bin/env node
// A minimal MCP server with one tool.
const tool = { name: "ping", inputSchema: { type: "object" } };
const results = {
  initialize: {
    protocolVersion: "2025-06-18",
    capabilities: { tools: {} },
    serverInfo: { name: "tls-server", version: "1.0.0" },
  },
  "tools/list": { tools: [tool] },
  "tools/call": { content: [{ type: "text", text: "pong" }] },
};
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  const result = results[method];
  const outcome = result ? { result } : { error: { code: -32601, message: "unknown method" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
});
