// Answers a prompt with Anthropic's tool runner, calls tools with the official TypeScript client, and
// prints the answer.
//
// Arguments: an `mcp.json` with the server `innkeeper`, then the prompt. Needs ANTHROPIC_API_KEY, and
// the packages in a `node_modules` next to this file or above; ANTHROPIC_BASE_URL says where the model
// is. The wire is Messages, streamed.
import { readFileSync } from "node:fs";
import Anthropic from "@anthropic-ai/sdk";
import { mcpTools } from "@anthropic-ai/sdk/helpers/beta/mcp";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [, , config, prompt] = process.argv;
const { innkeeper } = JSON.parse(readFileSync(config, "utf8")).mcpServers;
const client = new Client({ name: "typescript-sdk", version: "1" });
await client.connect(new StdioClientTransport(innkeeper));
const { tools } = await client.listTools();
const message = await new Anthropic().beta.messages.toolRunner({
  model: "claude-haiku-4-5",
  max_tokens: 1024,
  messages: [{ role: "user", content: prompt }],
  tools: mcpTools(tools, client),
  stream: true,
});
console.log(message.content.flatMap((block) => (block.type === "text" ? block.text : [])).join(""));
await client.close();
