//! Agents of other programs are recorded, and replay without a model, a network and a server. Three are
//! published; `ask`, with the program as its only MCP server, stands for all others.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use innkeeper_testkit::{
    Journal, ProcessTag, Script, ScriptedLlm, ScriptedReply, fixture, mcp_json,
};
use serde_json::{Value, json};
use tempfile::TempDir;

#[cfg(target_os = "linux")]
use innkeeper_testkit::tagged_processes;

use crate::program::innkeeper;
use crate::real_servers::install_dir;

const KEY: &str = "sk-planted-7Qw3zR9tYb5Nc1Xe";
const TOKEN: &str = "planted-token-4Hj6";
const PASSWORD: &str = "planted-pass-9Zk4";
const PROMPT: &str = "What is 2 + 3?";

/// Brings up the loopback interface of a new network, which has no other, and starts a program there.
const WITHOUT_NETWORK: &str = "import fcntl, os, socket, struct, sys
fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh', b'lo', 1))
os.execvp(sys.argv[1], sys.argv[1:])";

/// An agent with its configuration: `mcp.json` starts the program, `servers.json` has a real server.
struct Agent {
    directory: TempDir,
    command: Vec<String>,
}

impl Agent {
    fn new(command: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, value: &Value| {
            std::fs::write(directory.path().join(name), value.to_string()).unwrap();
        };
        let serve = ["serve", "--stdio", "--config", "servers.json"];
        let entry = json!({"command": "innkeeper", "args": serve});
        write("mcp.json", &json!({"mcpServers": {"innkeeper": entry}}));
        let journal = directory.path().join("journal");
        let mut servers = mcp_json([fixture("fx").journal(&journal).env("TOKEN", TOKEN)]);
        servers["serve"] = json!({"names": "flat"});
        write("servers.json", &servers);
        Self { directory, command: command.iter().map(|word| (*word).to_owned()).collect() }
    }

    /// Returns `ask` as an agent: `sh` gives it the base URL, as SDKs do.
    fn ask() -> Self {
        let ask = "exec innkeeper ask \"$1\" --provider openai --api chat --config mcp.json \
                   --base-url \"$OPENAI_BASE_URL\"";
        Self::new(&["sh", "-c", ask, "sh"])
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns `record` or `replay` with the agent and a prompt.
    fn command(&self, verb: &[&str], prompt: &str) -> Command {
        let agent = self.command.iter().map(String::as_str).chain(["mcp.json", prompt]);
        let agent: Vec<_> = match self.command[0].as_str() {
            "sh" => self.command.iter().map(String::as_str).chain([prompt]).collect(),
            _ => agent.collect(),
        };
        let mut command = innkeeper(&[verb, &["--"], &agent].concat(), self.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Records the agent with a scripted model, whose base URL has this path.
    async fn record(&self, path: &str, replies: impl IntoIterator<Item = ScriptedReply>) -> Output {
        let llm = ScriptedLlm::start(Script::new(replies)).await;
        let credentials = format!("http://ada:{PASSWORD}@");
        let upstream = format!("{}{path}", llm.origin().replace("http://", &credentials));
        let mut command = self.command(&["record", "run.json", "--upstream", &upstream], PROMPT);
        command.env("OPENAI_API_KEY", KEY).env("ANTHROPIC_API_KEY", KEY);
        let child = tokio::process::Command::from(command).spawn().unwrap();
        child.wait_with_output().await.unwrap()
    }

    /// Replays the agent.
    fn replay(&self, prompt: &str, variables: &[(&str, &str)]) -> Output {
        let mut command = self.command(&["replay", "run.json"], prompt);
        command.envs(variables.iter().copied()).output().unwrap()
    }

    /// Replays the agent after its servers are gone and where no network is, if the machine lets the
    /// user make such a network.
    fn replay_alone(&self) -> Output {
        std::fs::remove_file(self.path().join("servers.json")).unwrap();
        std::fs::remove_file(self.path().join("journal")).unwrap();
        let unshare = ["--net", "--map-root-user", "python3", "-c", WITHOUT_NETWORK];
        let probe = system_command("unshare").args(unshare).arg("true").output();
        if !probe.is_ok_and(|probe| probe.status.success()) {
            return self.replay(PROMPT, &[]);
        }
        let replay = self.command(&["replay", "run.json"], PROMPT);
        let mut command = system_command("unshare");
        command.args(unshare).arg(replay.get_program()).args(replay.get_args());
        command.current_dir(self.path()).env_clear().stdin(Stdio::null());
        for (name, value) in replay.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.output().unwrap()
    }

    fn golden(&self) -> Value {
        let text = std::fs::read_to_string(self.path().join("run.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Returns the number of tool calls that reached the real server.
    fn executions(&self) -> usize {
        let journal = self.path().join("journal");
        match journal.exists() {
            false => 0,
            true => Journal::read(&journal).count("tools/call"),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the program is the system's")]
fn system_command(program: &str) -> Command {
    Command::new(program)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn assert_output(output: &Output, code: i32, stdout: &str, stderr: &str) {
    let seen = (output.status.code(), text(&output.stdout), text(&output.stderr));
    assert_eq!(seen.0, Some(code), "{seen:?}");
    assert_eq!(seen.1, stdout, "{seen:?}");
    assert!(seen.2.contains(stderr), "{stderr} in {seen:?}");
}

/// The replies of a model that calls `add` by this name, and answers.
fn replies(tool: &str) -> [ScriptedReply; 2] {
    let call = ScriptedReply::text("I add.").with_tool_call(tool, json!({"a": 2, "b": 3}));
    [call, ScriptedReply::text("It is 5.")]
}

/// The tool of the real server, as `ask` sees it.
const ADD: &str = "innkeeper.add";

/// Records an agent, and replays it without anything.
async fn record_and_replay(agent: &Agent, path: &str, tool: &str) {
    let recorded = agent.record(path, replies(tool)).await;
    assert_output(&recorded, 0, "It is 5.\n", "recorded: 2 requests and 1 calls in run.json");
    assert_eq!(agent.executions(), 1);
    let file = agent.golden().to_string();
    for secret in [KEY, TOKEN, PASSWORD] {
        assert!(!file.contains(secret), "{file}");
    }
    let replayed = agent.replay_alone();
    assert_output(&replayed, 0, "It is 5.\n", "replayed: 2 requests and 1 calls of run.json");
    assert_eq!(agent.executions(), 0);
}

/// Proves: G63, G64
#[tokio::test]
async fn an_agent_is_recorded_with_its_model_and_servers_and_replays_without_them() {
    let agent = Agent::ask();
    record_and_replay(&agent, "/v1", ADD).await;
    let input = &agent.golden()["input"];
    assert_eq!((&input["provider"], &input["api"]), (&json!("openai"), &json!("chat")));
}

/// Proves: G63
#[tokio::test]
async fn a_server_that_is_the_program_itself_is_not_recorded_twice() {
    let agent = Agent::ask();
    let file = |name: &str| agent.path().join(name);
    std::fs::rename(file("servers.json"), file("inner.json")).unwrap();
    let serve = ["serve", "--stdio", "--config", "inner.json"];
    let entry = json!({"command": env!("CARGO_BIN_EXE_innkeeper"), "args": serve});
    let servers = json!({"serve": {"names": "flat"}, "servers": {"inner": entry}});
    std::fs::write(file("servers.json"), servers.to_string()).unwrap();
    let recorded = agent.record("/v1", replies(ADD)).await;
    assert_output(&recorded, 0, "It is 5.\n", "recorded: 2 requests and 1 calls in run.json");
    assert_eq!(agent.golden()["served"].as_array().unwrap().len(), 1);
}

fn published_agent(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/agents").join(file)
}

fn python_agent(file: &str) -> Agent {
    let python = install_dir().join("clients-venv/bin/python").display().to_string();
    Agent::new(&[&python, &published_agent(file).display().to_string()])
}

/// Proves: G63, G64
#[tokio::test]
async fn an_agent_on_the_openai_sdk_replays_its_streamed_chat_completions() {
    record_and_replay(&python_agent("openai_sdk.py"), "/v1", "add").await;
}

/// Proves: G63, G64
#[tokio::test]
async fn an_agent_of_pydantic_ai_replays_its_responses() {
    let agent = python_agent("pydantic_ai_agent.py");
    record_and_replay(&agent, "/v1", "innkeeper_add").await;
}

/// Proves: G63, G64
#[cfg(unix)]
#[tokio::test]
async fn an_agent_on_the_typescript_sdk_replays_its_streamed_messages() {
    let agent = Agent::new(&["node", "typescript_sdk.mjs"]);
    // Node finds the packages of a module above its file.
    let script = published_agent("typescript_sdk.mjs");
    std::fs::copy(script, agent.path().join("typescript_sdk.mjs")).unwrap();
    let packages = install_dir().join("clients/node_modules").canonicalize().unwrap();
    std::os::unix::fs::symlink(packages, agent.path().join("node_modules")).unwrap();
    record_and_replay(&agent, "", "add").await;
}

/// Proves: G64
#[tokio::test]
async fn an_agent_that_asks_for_something_else_ends_with_the_nearest_recording() {
    let agent = Agent::ask();
    agent.record("/v1", replies(ADD)).await;
    let replayed = agent.replay("What is 2 + 4?", &[]);
    let changed = "`/body/messages/1/content` was \"What is 2 + 3?\", is now \"What is 2 + 4?\"";
    assert_output(&replayed, 1, "", changed);
    let mut golden = agent.golden();
    golden["tool_calls"][0]["arguments"]["b"] = 4.into();
    std::fs::write(agent.path().join("run.json"), golden.to_string()).unwrap();
    let replayed = agent.replay(PROMPT, &[]);
    let refused = "no recording answers the call of `add` after request 1; the nearest is call 1 \
                   (`add`): `/arguments/b` was 4, is now 3";
    assert_output(&replayed, 1, "", refused);
    assert_eq!(agent.executions(), 1);
}

/// An agent whose threads work at their own speed: both ask the model and call a tool, and the answers
/// are printed in their order.
const THREADS: &str = r#"
import json, os, subprocess, threading, time, urllib.request

def ask(text):
    body = json.dumps({"text": text}).encode()
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
    try:
        urllib.request.urlopen(request).read()
    except urllib.error.HTTPError as error:
        error.read()
    print(text, flush=True)

def work(name, pauses):
    for number, pause in enumerate(pauses):
        time.sleep(pause)
        ask(f"{name}{number}")

pauses = json.loads(os.environ["PAUSES"])
threads = [threading.Thread(target=work, args=item) for item in pauses.items()]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"#;

/// Proves: G64, G67
#[tokio::test]
async fn the_threads_of_an_agent_get_their_answers_in_the_recorded_order_at_any_speed() {
    let agent = Agent::new(&["sh", "-c", "exec python3 threads.py", "sh"]);
    std::fs::write(agent.path().join("threads.py"), THREADS).unwrap();
    let llm = ScriptedLlm::start(Script::new([])).await;
    let upstream = format!("{}/v1", llm.origin());
    let mut command = agent.command(&["record", "run.json", "--upstream", &upstream], PROMPT);
    command.env("PAUSES", r#"{"a": [0, 0.3, 0.3], "b": [0.15, 0.3, 0.3]}"#);
    let child = tokio::process::Command::from(command).spawn().unwrap();
    let recorded = child.wait_with_output().await.unwrap();
    let order = "a0\nb0\na1\nb1\na2\nb2\n";
    assert_output(&recorded, 0, order, "warning: no MCP server is in it");
    let other_speeds =
        [r#"{"b": [0, 0, 0], "a": [0, 0, 0]}"#, r#"{"a": [0.2, 0, 0], "b": [0, 0, 0.2]}"#];
    for pauses in other_speeds {
        let replayed = agent.replay(PROMPT, &[("PAUSES", pauses)]);
        assert_output(&replayed, 0, order, "replayed: 6 requests");
    }
}

/// Proves: G64
#[tokio::test]
async fn a_closed_stdout_loses_no_recording_and_hides_no_difference() {
    let agent = Agent::ask();
    agent.record("/v1", replies(ADD)).await;
    let golden = agent.golden();
    let mut command = agent.command(&["replay", "run.json"], "What is 2 + 4?");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let mut command = agent.command(&["replay", "run.json"], PROMPT);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(agent.golden(), golden);
}

/// Proves: G64
#[tokio::test]
async fn a_changed_output_and_under_ci_an_unused_answer_fail_the_replay() {
    let agent = Agent::ask();
    agent.record("/v1", replies(ADD)).await;
    let golden = agent.golden();
    let write = |golden: &Value| {
        std::fs::write(agent.path().join("run.json"), golden.to_string()).unwrap();
    };
    let mut further = golden.clone();
    let mut last = further["provider_responses"][1].clone();
    last["request"]["begin_ms"] = 100_000.into();
    further["provider_responses"].as_array_mut().unwrap().push(last);
    write(&further);
    let unused = agent.replay(PROMPT, &[]);
    assert_output(&unused, 0, "It is 5.\n", "warning: nothing asked for request 3");
    let unused = agent.replay(PROMPT, &[("CI", "true")]);
    assert_output(&unused, 1, "It is 5.\n", "nothing asked for request 3");
    let mut changed = golden;
    changed["golden_output"]["final_result"] = "It is 6.\n".into();
    write(&changed);
    let changed = agent.replay(PROMPT, &[]);
    assert_output(
        &changed,
        1,
        "It is 5.\n",
        "`/final_result`: expected \"It is 6.\\n\", got \"It is 5.\\n\"",
    );
}

/// Proves: G64
#[tokio::test]
async fn failures_of_the_model_and_the_agent_replay_as_they_were() {
    let agent = Agent::ask();
    let [call, answer] = replies(ADD);
    let failures = [
        ScriptedReply::status(429).with_header("retry-after-ms", "1"),
        call,
        ScriptedReply::text("It is").disconnect_after(40),
        answer,
    ];
    let recorded = agent.record("/v1", failures).await;
    assert_output(&recorded, 0, "It is 5.\n", "recorded: 4 requests and 1 calls");
    let responses = agent.golden()["provider_responses"].clone();
    assert_eq!(responses[0]["response"]["http"]["status"], 429);
    assert!(responses[2]["response"]["http"]["end"]["failed"].is_object(), "{responses}");
    let replayed = agent.replay_alone();
    assert_output(&replayed, 0, "It is 5.\n", "replayed: 4 requests and 1 calls");

    let agent = Agent::new(&["sh", "-c", "curl --version >/dev/null; exec innkeeper call", "sh"]);
    let failing = agent.record("/v1", []).await;
    assert_output(&failing, 1, "", "the agent asked neither its model nor an MCP server");
    assert!(!agent.path().join("run.json").exists());

    let mut agent = Agent::ask();
    agent.command[2].insert_str(0, "trap 'exit 3' EXIT; ");
    agent.command[2] = agent.command[2].replace("exec ", "");
    for reason in ["the agent ended with exit code 3", "`run.json` stays as it was"] {
        let recorded = agent.record("/v1", replies(ADD)).await;
        assert_output(&recorded, 1, "It is 5.\n", reason);
        assert_eq!(agent.golden()["golden_output"]["exit_code"], 3);
    }
    let replayed = agent.replay(PROMPT, &[]);
    assert_output(&replayed, 0, "It is 5.\n", "replayed: 2 requests and 1 calls");
}

#[test]
fn what_cannot_be_recorded_or_replayed_is_refused_before_the_agent_starts() {
    let agent = Agent::new(&["touch", "started"]);
    let refused = |verb: &[&str], variables: &[(&str, &str)], reason: &str| {
        let mut command = agent.command(verb, PROMPT);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert_output(&output, 2, "", reason);
        assert!(!agent.path().join("started").exists());
    };
    refused(&["record", "a.json"], &[("CI", "true")], "`record` is refused where `CI` is set");
    refused(&["record", "missing/a.json"], &[], "cannot write `missing/a.json`");
    refused(&["record", "a.json", "--upstream", "ftp://h"], &[], "`ftp://h` is not the base URL");
    refused(&["replay", "missing.json"], &[], "missing.json");
    let own = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/goldens/openai/happy_path_database_query.json");
    let own = own.to_str().unwrap();
    refused(&["replay", own], &[], "is no recording of another program's agent");
    let agent = Agent::new(&["no-such-agent"]);
    let output = agent.command(&["record", "a.json"], PROMPT).output().unwrap();
    assert_output(&output, 2, "", "cannot start `no-such-agent`");
}

/// Proves: G64
#[tokio::test]
async fn golden_replay_skips_the_recordings_of_other_agents_and_says_so() {
    let agent = Agent::ask();
    agent.record("/v1", replies(ADD)).await;
    let replayed = innkeeper(&["golden", "replay", "."], agent.path()).output().unwrap();
    assert_output(&replayed, 1, "", "nothing was judged");
    assert!(text(&replayed.stderr).contains("`innkeeper replay FILE -- AGENT"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_signal_ends_the_agent_and_what_it_left_and_records_nothing() {
    let tag = ProcessTag::new();
    let agent = Agent::new(&["sh", "-c", "sleep 1000 & touch started; wait", "sh"]);
    let mut command = agent.command(&["record", "run.json"], PROMPT);
    command.env(ProcessTag::VARIABLE, tag.as_str()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = tokio::process::Command::from(command).spawn().unwrap();
    while !agent.path().join("started").exists() {
        tokio::task::yield_now().await;
    }
    let pid = rustix::process::Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(143));
    assert!(tagged_processes(&tag).is_empty(), "{:?}", tagged_processes(&tag));
    assert!(!agent.path().join("run.json").exists());
}
