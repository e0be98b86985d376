//! Builds a prompt for another model: a model collects the facts with the tools of the servers.
//!
//! `cargo run --example build_prompt -- mcp.json anthropic 'Write the release notes.'`
//!
//! The prompt goes to stdout. The provider and its API key are selected as in `ask_a_model`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::process::ExitCode;

use innkeeper::Environment;
use innkeeper::ghost::{GhostConfig, GhostServers, mcp_ghost};
use innkeeper::text::display_safe;

const USAGE: &str = "usage: build_prompt CONFIG PROVIDER TASK [MODEL [BASE_URL]]";

const SYSTEM_PROMPT: &str = "You prepare a task for another model, which has no tools. Collect with \
    your tools what that model needs, then answer with one prompt: the task, the facts, and where \
    each fact comes from.";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [config, provider, task, optional @ ..] = &words[..] else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let servers = GhostServers::File(config.into());
    let environment = Environment::from_process();
    let mut config = GhostConfig::new(servers, SYSTEM_PROMPT, provider, task, environment);
    config.model.model = optional.first().cloned();
    config.model.base_url = optional.get(1).cloned();
    let report = mcp_ghost(config).await;
    for error in &report.result.errors {
        eprintln!("{}", display_safe(&error.error));
    }
    if !report.result.is_success() {
        eprintln!("no prompt: {}", display_safe(&format!("{:?}", report.result.outcome)));
        return ExitCode::FAILURE;
    }
    println!("{}", display_safe(&report.result.text));
    ExitCode::SUCCESS
}
