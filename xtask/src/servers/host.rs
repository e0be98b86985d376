//! The hosts: how each lists and calls, and what its output says.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::list::ToolCall;
use crate::TaskResult;
use crate::program::{MeasuredRun, Program};

/// Maximum time of a first run in seconds: the runner downloads the package.
pub(super) const FIRST_TIME_LIMIT: u64 = 240;

/// Maximum time of a measured run in seconds.
pub(super) const TIME_LIMIT: u64 = 30;

/// The exit code of `timeout` after the time limit.
const TIME_LIMIT_CODE: i32 = 124;

/// Maximum number of characters of a cause in the table.
const MAX_CAUSE_CHARS: usize = 160;

/// A host with a command line.
#[derive(Debug)]
pub(super) struct HostProgram {
    program: PathBuf,
    kind: HostKind,
}

#[derive(Clone, Copy, Debug)]
enum HostKind {
    Innkeeper,
    Mcporter,
    Inspector,
}

impl HostProgram {
    pub(super) fn innkeeper(program: &Path) -> Self {
        Self { program: program.to_owned(), kind: HostKind::Innkeeper }
    }

    pub(super) fn mcporter(program: &Path) -> Self {
        Self { program: program.to_owned(), kind: HostKind::Mcporter }
    }

    pub(super) fn inspector(program: &Path) -> Self {
        Self { program: program.to_owned(), kind: HostKind::Inspector }
    }

    /// Returns the arguments that list the tools of the server.
    pub(super) fn list_arguments(&self, server: &str) -> Vec<String> {
        let arguments: &[&str] = match self.kind {
            HostKind::Innkeeper => &["tools", "--json"],
            HostKind::Mcporter => &["list", server, "--json"],
            HostKind::Inspector => &["--server", server, "--method", "tools/list"],
        };
        arguments.iter().map(|argument| (*argument).to_owned()).collect()
    }

    /// Returns the arguments that call a tool with this host.
    #[expect(clippy::unused_self, reason = "only this host calls")]
    pub(super) fn call_arguments(&self, server: &str, call: &ToolCall) -> Vec<String> {
        let (target, arguments) = (format!("{server}.{}", call.tool), call.arguments.to_string());
        vec!["call".to_owned(), target, "--args".to_owned(), arguments, "--json".to_owned()]
    }

    /// Runs the host with a configuration.
    pub(super) fn run(
        &self,
        config: &Path,
        arguments: &[String],
        dir: &Path,
        path: &str,
        time_limit: u64,
    ) -> TaskResult<MeasuredRun> {
        let program = Program::with_time_limit(&self.program, time_limit);
        let program = program.env("PATH", path).current_dir(dir);
        let program = match self.kind {
            HostKind::Innkeeper | HostKind::Mcporter => program.arg("--config").path_arg(config),
            // Without a desktop, the search for its keychain takes time.
            HostKind::Inspector => program
                .env("MCP_INSPECTOR_SECRET_STORE", "memory")
                .arg("--cli")
                .arg("--config")
                .path_arg(config),
        };
        let state = dir.join("state").display().to_string();
        let program = program.env("XDG_STATE_HOME", &state);
        arguments.iter().fold(program, Program::arg).measure(dir)
    }

    /// Returns the number of tools in the output, and the negotiated revision if the host prints it.
    fn parse(&self, server: &str, stdout: &str) -> Option<(usize, Option<String>)> {
        let value: Value = serde_json::from_str(stdout).ok()?;
        let (tools, revision) = match self.kind {
            HostKind::Innkeeper => {
                let entry = &value["servers"][server];
                (&entry["tools"], entry["protocolVersion"].as_str())
            }
            HostKind::Mcporter | HostKind::Inspector => (&value["tools"], None),
        };
        Some((tools.as_array()?.len(), revision.map(str::to_owned)))
    }
}

/// The listings of one server with one host.
#[derive(Debug, Default)]
pub(super) struct Listing {
    times: Vec<Duration>,
    /// The number of tools; `None` if a listing failed.
    pub(super) tools: Option<usize>,
    pub(super) revision: Option<String>,
    pub(super) cause: Option<String>,
    pub(super) leftovers: usize,
    /// Whether the host had to be ended after the time limit.
    pub(super) has_no_end: bool,
}

impl Listing {
    /// Adds one listing; the last one determines tools and cause.
    pub(super) fn add(&mut self, host: &HostProgram, server: &str, run: &MeasuredRun) {
        self.times.push(run.elapsed);
        self.has_no_end |= run.code == Some(TIME_LIMIT_CODE);
        let parsed = host.parse(server, &run.stdout);
        let parsed = parsed.filter(|(tools, _)| run.code == Some(0) || *tools > 0);
        self.cause = parsed.is_none().then(|| describe_failure(run));
        (self.tools, self.revision) = match parsed {
            Some((tools, revision)) => (Some(tools), revision),
            None => (None, None),
        };
    }

    /// Returns the median time in seconds.
    pub(super) fn median_seconds(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() / 2).map_or(f64::NAN, Duration::as_secs_f64)
    }
}

/// Describes the outcome of a call: a result, an error of the tool, or the error of the host.
pub(super) fn describe_call(run: &MeasuredRun) -> String {
    let value: Value = serde_json::from_str(&run.stdout).unwrap_or_default();
    match (run.code, &value["error"]["message"], &value["isError"]) {
        (Some(0), ..) => "result".to_owned(),
        (_, Value::String(message), _) => shorten(message),
        (_, _, Value::Bool(true)) => {
            let text = value["content"][0]["text"].as_str().unwrap_or_default();
            format!("tool error: {}", shorten(text))
        }
        _ => describe_failure(run),
    }
}

/// Returns the first line that names the cause, in the words of the host.
fn describe_failure(run: &MeasuredRun) -> String {
    if run.code == Some(TIME_LIMIT_CODE) {
        return "no end before the time limit".to_owned();
    }
    let value: Value = serde_json::from_str(&run.stdout).unwrap_or_default();
    let servers = value["servers"].as_object().into_iter().flat_map(|servers| servers.values());
    let reason = servers.filter_map(|server| server["reason"].as_str()).next();
    let message = reason.or_else(|| value["error"]["message"].as_str());
    let message = message.or_else(|| value["error"].as_str());
    let lines = || run.stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let error_line = lines().find_map(|line| line.strip_prefix("error: "));
    shorten(message.or(error_line).or_else(|| lines().next()).unwrap_or("no output"))
}

/// Returns the first line of a text, at most [`MAX_CAUSE_CHARS`] long and without table syntax.
fn shorten(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let visible: String = line.chars().filter(|c| !c.is_control()).take(MAX_CAUSE_CHARS).collect();
    visible.replace('|', "\\|").replace('<', "‹").replace('>', "›")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(code: i32, stdout: &str, stderr: &str) -> MeasuredRun {
        let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
        MeasuredRun { elapsed: Duration::from_secs(1), code: Some(code), stdout, stderr }
    }

    #[test]
    fn a_listing_has_the_number_of_tools_or_the_cause() {
        let host = HostProgram::innkeeper(Path::new("innkeeper"));
        let mut listing = Listing::default();
        let out = r#"{"servers":{"a":{"protocolVersion":"2025-11-25","tools":[{},{}]}}}"#;
        listing.add(&host, "a", &run(0, out, ""));
        assert_eq!((listing.tools, listing.revision.as_deref()), (Some(2), Some("2025-11-25")));
        let out = r#"{"servers":{"a":{"protocolVersion":null,"reason":"no | key","tools":[]}}}"#;
        listing.add(&host, "a", &run(1, out, "x"));
        assert_eq!((listing.tools, listing.cause.as_deref()), (None, Some("no \\| key")));
    }

    #[test]
    fn a_call_has_a_result_or_the_error_of_the_tool_or_of_the_host() {
        assert_eq!(describe_call(&run(0, r#"{"content":[]}"#, "")), "result");
        let failed = r#"{"isError":true,"content":[{"type":"text","text":"no network\nat x"}]}"#;
        assert_eq!(describe_call(&run(1, failed, "")), "tool error: no network");
        assert_eq!(describe_call(&run(2, r#"{"error":{"message":"bad"}}"#, "")), "bad");
    }
}
