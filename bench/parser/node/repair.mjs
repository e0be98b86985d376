// Runs the package on malformed calls, with its middleware for each format.
// `repair.mjs DIR`, in the directory of the installed package: `DIR/tools.jsonl` has the tools of each
// question, `DIR/cases.jsonl` the responses. Prints one line per response: the calls as names with the
// text of their arguments, or `null` if the package has no middleware for the format.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { hermesToolMiddleware, originalToolsSchema, qwen3CoderToolMiddleware } = createRequire(
  join(process.cwd(), "package.json"),
)("@ai-sdk-tool/parser");

// The Hermes middleware falls back to bare JSON.
const middlewares = {
  "name/arguments": hermesToolMiddleware,
  hermes: hermesToolMiddleware,
  "qwen-xml": qwen3CoderToolMiddleware,
};

const lines = (name) =>
  readFileSync(join(process.argv[2], name), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

const offered = lines("tools.jsonl").map((tools) =>
  tools.map(({ name, description, parameters }) => ({
    type: "function",
    name,
    description,
    inputSchema: parameters,
  })),
);

for (const { entry, form, text } of lines("cases.jsonl")) {
  const middleware = middlewares[form];
  if (middleware === undefined) {
    console.log("null");
    continue;
  }
  const originalTools = originalToolsSchema.encode(offered[entry]);
  const params = { tools: [], prompt: [], providerOptions: { toolCallMiddleware: { originalTools } } };
  const answer = { content: [{ type: "text", text }], finishReason: "stop", usage: {}, warnings: [] };
  const { content } = await middleware.wrapGenerate({ doGenerate: async () => answer, params });
  const calls = content.filter((part) => part.type === "tool-call");
  console.log(JSON.stringify(calls.map(({ toolName, input }) => [toolName, input])));
}
