// Parses one text in chunks with the package repeatedly and prints one JSON line of figures.
// `peer.mjs FILE CHUNK SECONDS`, in the directory of the installed package.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { hermesProtocol } = createRequire(join(process.cwd(), "package.json"))("@ai-sdk-tool/parser");

const [file, pieceWord, seconds] = process.argv.slice(2);
const text = readFileSync(file, "latin1");
const piece = Number(pieceWord);
const properties = { path: { type: "string" }, content: { type: "string" } };
const tools = [
  { type: "function", name: "write_file", inputSchema: { type: "object", properties } },
];

async function pass() {
  const stream = hermesProtocol().createStreamParser({ tools });
  let shown = 0;
  let content = null;
  const reader = stream.readable.getReader();
  const reading = (async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      if (value.type === "text-delta") shown += value.delta.length;
      if (value.type === "tool-call") content = JSON.parse(value.input).content.length;
    }
  })();
  const writer = stream.writable.getWriter();
  for (let at = 0; at < text.length; at += piece) {
    await writer.write({ type: "text-delta", id: "1", delta: text.slice(at, at + piece) });
  }
  await writer.write({ type: "finish", finishReason: "stop", usage: {} });
  await writer.close();
  await reading;
  return content ?? shown;
}

const passes = [];
let seenBytes = 0;
const start = performance.now();
while (passes.length === 0 || performance.now() - start < Number(seconds) * 1e3) {
  const from = process.cpuUsage();
  seenBytes = await pass();
  const { user, system } = process.cpuUsage(from);
  passes.push((user + system) / 1e3);
}
passes.sort((a, b) => a - b);
const ms = passes[Math.floor(passes.length / 2)];
console.log(
  JSON.stringify({
    ms,
    ns_per_byte: (ms * 1e6) / text.length,
    mb_per_second: text.length / ms / 1e3,
    seen_bytes: seenBytes,
  }),
);
