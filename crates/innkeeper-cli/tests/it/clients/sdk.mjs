// Uses a gateway with the official TypeScript client, and prints one line of JSON.
//
// Arguments: the directory of the client, then a URL, or a program with its arguments.
const [, , sdk, ...target] = process.argv;
const load = (name) => import(`${sdk}/dist/esm/${name}.js`);
const { Client } = await load("client/index");
const types = await load("types");

async function transport() {
  if (target[0].endsWith("/sse")) {
    const { SSEClientTransport } = await load("client/sse");
    return new SSEClientTransport(new URL(target[0]));
  }
  if (target[0].startsWith("http")) {
    const { StreamableHTTPClientTransport } = await load("client/streamableHttp");
    return new StreamableHTTPClientTransport(new URL(target[0]));
  }
  const { StdioClientTransport } = await load("client/stdio");
  return new StdioClientTransport({ command: target[0], args: target.slice(1) });
}

const capabilities = { elicitation: {}, sampling: {}, roots: {} };
const client = new Client({ name: "test", version: "1" }, { capabilities });
const seen = { asked: 0, sampled: 0 };
client.setRequestHandler(types.ElicitRequestSchema, async () => {
  seen.asked += 1;
  return { action: "decline" };
});
client.setRequestHandler(types.CreateMessageRequestSchema, async () => {
  seen.sampled += 1;
  return { model: "m", role: "assistant", content: { type: "text", text: "sampled" } };
});
client.setRequestHandler(types.ListRootsRequestSchema, async () => ({ roots: [] }));
await client.connect(await transport());

const call = (name, args, options) =>
  client.callTool({ name: `everything.${name}`, arguments: args }, undefined, options);
seen.tools = (await client.listTools()).tools.length;
seen.echo = (await call("echo", { message: "hi" })).content[0].text;
await call("trigger-elicitation-request", {});
const sampled = await call("trigger-sampling-request", { prompt: "p", maxTokens: 5 });
seen.sample = JSON.stringify(sampled.content).includes("sampled");
let progress = 0;
const steps = { duration: 1, steps: 4 };
await call("trigger-long-running-operation", steps, { onprogress: () => (progress += 1) });
seen.progressed = progress > 0;
const stop = new AbortController();
const slow = call("trigger-long-running-operation", { duration: 60, steps: 2 }, { signal: stop.signal });
setTimeout(() => stop.abort(), 100);
seen.aborted = await slow.then(() => false, () => true);
const uri = (await client.listResources()).resources[0].uri;
seen.read = (await client.readResource({ uri })).contents[0].uri === uri;
await client.subscribeResource({ uri });
await client.unsubscribeResource({ uri });
const prompts = (await client.listPrompts()).prompts;
seen.prompt = (await client.getPrompt({ name: prompts[0].name, arguments: {} })).messages.length > 0;
await client.setLoggingLevel("warning");
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
