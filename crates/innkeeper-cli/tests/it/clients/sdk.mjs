// Uses a gateway with an official TypeScript client, and prints one line of JSON.
//
// Arguments: the directory of the client's package (1.x or 2.x), the era (2.x), then a URL, or a
// program with its arguments.
const [, , directory, era, ...target] = process.argv;
const legacy = era === "legacy";

async function first() {
  const load = (name) => import(`${directory}/dist/esm/${name}.js`);
  const types = await load("types");
  return {
    ...(await load("client/index")),
    ...(await load("client/streamableHttp")),
    ...(await load("client/sse")),
    ...(await load("client/stdio")),
    requests: [types.ElicitRequestSchema, types.CreateMessageRequestSchema, types.ListRootsRequestSchema],
    call: (client, params, options) => client.callTool(params, undefined, options),
  };
}

async function second() {
  return {
    ...(await import(`${directory}/dist/index.mjs`)),
    ...(await import(`${directory}/dist/stdio.mjs`)),
    requests: ["elicitation/create", "sampling/createMessage", "roots/list"],
    call: (client, params, options) => client.callTool(params, options),
  };
}

const sdk = await (directory.endsWith("/sdk") ? first() : second());
const seen = { asked: 0, sampled: 0 };
let changed;
const listChanged = new Promise((resolve) => (changed = resolve));
const client = new sdk.Client({ name: "test", version: "1" }, {
  capabilities: { elicitation: {}, sampling: {}, roots: {} },
  listChanged: { tools: { onChanged: (_, tools) => changed(tools), debounceMs: 1 } },
  versionNegotiation: { mode: legacy ? "legacy" : { pin: "2026-07-28" } },
});
const [elicitation, sampling, roots] = sdk.requests;
client.setRequestHandler(elicitation, async () => {
  seen.asked += 1;
  return { action: "decline" };
});
client.setRequestHandler(sampling, async () => {
  seen.sampled += 1;
  return { model: "m", role: "assistant", content: { type: "text", text: "sampled" } };
});
client.setRequestHandler(roots, async () => ({ roots: [] }));
function transport() {
  if (target[0].endsWith("/sse")) return new sdk.SSEClientTransport(new URL(target[0]));
  if (target[0].startsWith("http")) return new sdk.StreamableHTTPClientTransport(new URL(target[0]));
  return new sdk.StdioClientTransport({ command: target[0], args: target.slice(1) });
}
await client.connect(transport());

const call = (name, args, options) => sdk.call(client, { name, arguments: args }, options);
const everything = (name, args, options) => call(`everything.${name}`, args, options);
seen.tools = (await client.listTools()).tools.length;
seen.echo = (await everything("echo", { message: "hi" })).content[0].text;
await everything("trigger-elicitation-request", {});
const sampled = await everything("trigger-sampling-request", { prompt: "p", maxTokens: 5 });
seen.sample = JSON.stringify(sampled.content).includes("sampled");
let progress = 0;
const steps = { duration: 1, steps: 4 };
await everything("trigger-long-running-operation", steps, { onprogress: () => (progress += 1) });
seen.progressed = progress > 0;
const stop = new AbortController();
const long = { duration: 60, steps: 2 };
const slow = everything("trigger-long-running-operation", long, { signal: stop.signal });
setTimeout(() => stop.abort(), 100);
seen.aborted = await slow.then(() => false, () => true);
const uri = (await client.listResources()).resources[0].uri;
seen.read = (await client.readResource({ uri })).contents[0].uri === uri;
const prompts = (await client.listPrompts()).prompts;
seen.prompt = (await client.getPrompt({ name: prompts[0].name, arguments: {} })).messages.length > 0;
if (legacy) {
  await client.subscribeResource({ uri });
  await client.unsubscribeResource({ uri });
  await client.setLoggingLevel("warning");
}
await call("a.grow", { what: "tools" });
// Without the notification, the result is wrong.
setTimeout(() => changed([]), 20_000);
seen.grown = (await listChanged).length - seen.tools;
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
