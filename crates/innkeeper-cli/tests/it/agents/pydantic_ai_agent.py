"""Answers a prompt with a Pydantic AI agent that has its own MCP client, and prints the answer.

Arguments: an `mcp.json` with the server `innkeeper`, then the prompt. Needs OPENAI_API_KEY;
OPENAI_BASE_URL says where the model is. The wire is Responses.
"""

import sys

from pydantic_ai import Agent
from pydantic_ai.mcp import load_mcp_toolsets

config, prompt = sys.argv[1:]
agent = Agent("openai:gpt-5-mini", toolsets=load_mcp_toolsets(config))
print(agent.run_sync(prompt).output)
