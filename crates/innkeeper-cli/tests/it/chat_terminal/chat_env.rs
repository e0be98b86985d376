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
