//! A directory with servers and a model for a chat, and the processes of the chat.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use innkeeper_testkit::{
    Fixture, ProcessTag, ScriptedLlm, fixture_program, mcp_json, tagged_processes, wait_gone,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::innkeeper;

/// A directory with the configuration of a server, and the stored conversations.
pub(super) struct ChatEnv {
    dir: TempDir,
    tag: ProcessTag,
}

impl ChatEnv {
    pub(super) fn new(server: Fixture) -> Self {
        let (dir, tag) = (tempfile::tempdir().unwrap(), ProcessTag::new());
        std::fs::write(
            dir.path().join("mcp.json"),
            mcp_json([server.process_tag(&tag)]).to_string(),
        )
        .unwrap();
        Self { dir, tag }
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns `chat` with more arguments; all its processes have the tag.
    pub(super) fn chat(&self, args: &[&str]) -> Command {
        let mut command = innkeeper(&[&["chat"], args].concat(), self.path());
        command.env(ProcessTag::VARIABLE, self.tag.as_str());
        command.env("XDG_STATE_HOME", self.path().join("state"));
        command
    }

    /// Returns `chat` with a model that has these responses.
    pub(super) fn scripted(&self, replies: &[Value], args: &[&str]) -> Command {
        std::fs::write(self.path().join("script.json"), json!(replies).to_string()).unwrap();
        let model = ["--config", "mcp.json", "--provider", "scripted", "--script", "script.json"];
        self.chat(&[&model, args].concat())
    }

    /// Returns `chat` with a model over HTTP.
    pub(super) fn with_http_model(&self, llm: &ScriptedLlm, args: &[&str]) -> Command {
        self.with_model_at(llm.origin(), args)
    }

    pub(super) fn with_model_at(&self, origin: &str, args: &[&str]) -> Command {
        let url = format!("{origin}/v1");
        let model = ["--provider", "openai-compatible", "--model", "scripted", "--base-url", &url];
        self.chat(&[&["--config", "mcp.json"], &model[..], args].concat())
    }

    /// Returns the process id of the fixture server.
    pub(super) fn server_pid(&self) -> u32 {
        let program = fixture_program().display().to_string();
        let processes = tagged_processes(&self.tag);
        let server = processes.iter().find(|process| process.command.starts_with(&program));
        server.unwrap_or_else(|| panic!("no server: {processes:?}")).pid
    }

    /// Repeats the messages of the only stored conversation this many times, with other ids of calls.
    pub(super) fn repeat_stored_messages(&self, count: usize) {
        let chats = std::fs::read_dir(self.path().join("state/innkeeper/chats")).unwrap();
        let [file] = &*chats.map(|entry| entry.unwrap().path()).collect::<Vec<_>>() else {
            panic!("more than one conversation");
        };
        let text = std::fs::read_to_string(file).unwrap();
        let (header, messages) = text.split_once('\n').unwrap();
        let id = messages.split(r#""id":""#).nth(1).unwrap().split('"').next().unwrap();
        let repeated = (0..count).map(|number| messages.replace(id, &format!("{id}-{number}")));
        std::fs::write(file, format!("{header}\n{}", repeated.collect::<String>())).unwrap();
    }

    /// Waits until no process has the directory in its command line, such as a server of the demo.
    #[track_caller]
    pub(super) fn wait_no_process_of_directory(&self) {
        let path = self.path().display().to_string();
        let mut running = Vec::new();
        for _ in 0..500 {
            let processes = std::fs::read_dir("/proc").unwrap().flatten();
            let lines = processes.filter_map(|entry| {
                let line = std::fs::read(entry.path().join("cmdline")).ok()?;
                Some(String::from_utf8_lossy(&line).into_owned())
            });
            running = lines.filter(|line| line.contains(&path)).collect();
            if running.is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("processes are left: {running:?}");
    }

    /// Waits until no process of the chat is left.
    #[track_caller]
    pub(super) fn wait_no_process(&self) {
        wait_gone(&self.tag, Duration::from_secs(5)).unwrap();
    }
}

/// Sends a signal to a process.
pub(super) fn send_signal(name: &str, pid: u32) {
    #[expect(clippy::disallowed_methods, reason = "the signal comes from outside")]
    let sent = Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}
