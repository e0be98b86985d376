// Runs the workload of a benchmark client with the client of the official TypeScript SDK.
//
// The arguments are those of `bench/src/workload.rs`, the printed line is that of `bench/src/figures.rs`.
// The working directory is that of the installed package.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

const require = createRequire(join(process.cwd(), "package.json"));
const { Client } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

// Seconds of calls before the measurement; more than those of the other clients: V8 compiles the SDK
// during the first second.
const WARM_UP_SECONDS = 1;
// Idle milliseconds of a started client before the measurement of its memory.
const IDLE_MILLIS = 300;
const LETTERS = "etaoin shrdlu cmfwyp vbgkjq xz ";

// The sizes of messages and results in bytes, and the numbers of calls in flight and of servers.
const CASES = {
  sequential: { messageBytes: 100, inFlight: 1, servers: 1 },
  flight: { messageBytes: 100, inFlight: 50, servers: 1 },
  servers: { messageBytes: 100, inFlight: 500, servers: 10 },
  medium: { messageBytes: 10_000, inFlight: 1, servers: 1 },
  result: { messageBytes: 0, resultBytes: 1_000_000, inFlight: 1, servers: 1 },
  message: { messageBytes: 1_000_000, inFlight: 1, servers: 1 },
};

/** Returns text with a newline every 100 bytes, so that JSON must escape characters. */
function messageText(length) {
  const letter = (at) => (at % 100 === 0 ? "\n" : LETTERS[at % LETTERS.length]);
  return Array.from({ length }, (_, index) => letter(index + 1)).join("");
}

/** Starts a server and lists everything that the server offers. */
async function startSession(echo) {
  const client = new Client({ name: "bench", version: "1" });
  await client.connect(new StdioClientTransport({ command: echo }));
  const [{ tools }] = await Promise.all([
    client.listTools(),
    client.listPrompts(),
    client.listResources(),
  ]);
  return { client, tools: tools.length };
}

/** Starts the servers at once. */
const connect = (echo, servers) =>
  Promise.all(Array.from({ length: servers }, () => startSession(echo)));

const close = (sessions) => Promise.all(sessions.map(({ client }) => client.close()));

/** Calls until the time is over. */
async function runCalls(sessions, { messageBytes, resultBytes, inFlight }, seconds) {
  const message = messageText(messageBytes);
  const expected = resultBytes ?? messageBytes;
  const micros = [];
  const cpuFrom = process.cpuUsage();
  const start = performance.now();
  const until = start + seconds * 1e3;

  async function runCaller({ client }) {
    for (let begin = performance.now(); begin < until; ) {
      const args = { message };
      if (resultBytes) args.bytes = resultBytes;
      const result = await client.callTool({ name: "echo", arguments: args });
      if (result.content[0].text.length !== expected) throw new Error("incomplete response");
      const end = performance.now();
      micros.push((end - begin) * 1e3);
      begin = end;
    }
  }

  const callers = Array.from({ length: inFlight }, (_, at) => sessions[at % sessions.length]);
  await Promise.all(callers.map(runCaller));
  const wallSeconds = (performance.now() - start) / 1e3;
  const { user, system } = process.cpuUsage(cpuFrom);
  return { micros, wallSeconds, cpuMicros: user + system };
}

/** Runs the calls of one case. */
async function measureCalls({ echo, seconds }, load) {
  const sessions = await connect(echo, load.servers);
  await runCalls(sessions, load, WARM_UP_SECONDS);
  const { micros, wallSeconds, cpuMicros } = await runCalls(sessions, load, Number(seconds));
  await close(sessions);
  const latencies = load.inFlight === 1 ? micros.toSorted((a, b) => a - b) : [];
  const quantile = (share) => latencies[Math.floor(latencies.length * share)] ?? null;
  return {
    calls: micros.length,
    per_second: micros.length / wallSeconds,
    p50_us: quantile(0.5),
    p99_us: quantile(0.99),
    cpu_us: cpuMicros / micros.length,
    rss_kb: statusField("VmRSS"),
    peak_rss_kb: statusField("VmHWM"),
  };
}

/** Starts, lists, idles and closes all servers. The client has no processes besides the servers. */
async function measureStart({ echo, servers }) {
  const begin = performance.now();
  const sessions = await connect(echo, Number(servers));
  const ready = performance.now();
  await sleep(IDLE_MILLIS);
  const idle = statusField("VmRSS");
  const end = performance.now();
  await close(sessions);
  return {
    ready_ms: ready - begin,
    tools: sessions.reduce((sum, { tools }) => sum + tools, 0),
    idle_kb: idle,
    supervisors_kb: 0,
    total_kb: idle,
    close_ms: performance.now() - end,
  };
}

/** Returns the first number of a line in `/proc/self/status`. */
function statusField(key) {
  const status = readFileSync("/proc/self/status", "utf8");
  return Number(new RegExp(`^${key}:\\s*(\\d+)`, "m").exec(status)[1]);
}

/** Restricts all threads and the servers to the first available CPU, as `bench/src/program.rs` does. */
function pinToOneCpu() {
  const cpu = statusField("Cpus_allowed_list");
  const args = ["--all-tasks", "--cpu-list", "--pid", `${cpu}`, `${process.pid}`];
  const { error, status, stderr } = spawnSync("taskset", args, { encoding: "utf8" });
  if (error || status !== 0) throw new Error(`cannot set the CPU affinity: ${error ?? stderr}`);
}

// The SDK has one runtime, and no log of calls.
const { values } = parseArgs({
  options: {
    case: { type: "string", default: "sequential" },
    runtime: { type: "string", default: "current" },
    seconds: { type: "string", default: "1" },
    servers: { type: "string", default: "20" },
    log: { type: "string" },
    echo: { type: "string" },
  },
});
if (values.echo === undefined) throw new Error("`--echo` with the path of the echo server is required");
const load = CASES[values.case];
if (load === undefined && values.case !== "start") throw new Error(`unknown case \`${values.case}\``);
if (load !== undefined) pinToOneCpu();
const figures = await (load === undefined ? measureStart(values) : measureCalls(values, load));
console.log(JSON.stringify({ peer: "typescript", case: values.case, runtime: values.runtime, ...figures }));
