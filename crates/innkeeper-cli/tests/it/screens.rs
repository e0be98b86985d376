//! Runs a command on a pipe and on terminals, and compares everything that a user sees.
//!
//! Each row has a complaint about an earlier output, and the test of the whole output of today.
//!
//! | complaint | test |
//! | --- | --- |
//! | one bad server hides all other servers | `tools_shows_the_good_servers_and_the_reason_of_each_bad_server` |
//! | an unset variable refuses everything | `a_call_of_a_server_whose_variable_is_unset_names_the_variable_and_its_place` |
//! | a command that is not installed is one error of all servers | `a_call_of_a_server_that_is_not_installed_names_the_program` |
//! | a failed `prompts/list` takes the tools with it | `a_server_whose_prompts_cannot_be_listed_has_its_tools` |
//! | a failed start hides the words of the server | `a_call_of_a_server_without_its_key_starts_with_the_words_of_the_server` |
//! | rows of the table wrap at 80 columns | `tools_shows_the_good_servers_and_the_reason_of_each_bad_server` |
//! | nothing says how to call a tool | `one_server_is_shown_with_signatures_parameters_and_lines_to_copy` in `tools.rs` |
//! | `why` prints a definition as one line of JSON | `why_lays_out_a_definition_or_the_last_failure` |
//! | a result is a wall of JSON | `the_result_of_a_call_is_text_for_people_and_one_object_for_programs` |
//! | a wrong argument does not say what to type | `wrong_arguments_are_named_with_what_to_type_instead` |
//! | a prompt and a resource are printed as JSON | `a_prompt_is_its_messages_and_a_missing_argument_names_itself`, `a_resource_is_its_text` |
//! | a first try needs a file | `a_server_of_the_command_line_is_used_without_a_file` |
//! | a URL without a server breaks the protocol | `a_url_without_a_server_says_so` |
//! | `import` is silent about what it leaves out | `import_prints_what_it_can_read_and_names_the_rest` |
//! | `check` does not find what fails later | `check_finds_what_fails_later` |
//! | Ctrl-C is followed by silence | `an_interrupted_call_says_which_server_it_waits_for` |
//! | a log line repeats the error, with `audit=… security=true` | `a_server_that_dies_during_a_call_is_one_error`, `a_suspicious_definition_is_one_warning` |
//! | a changed version is a wall of differences | `a_changed_version_is_a_summary_and_a_call_under_it_warns_once` |
//! | nothing moves while a model thinks | `an_answer_of_a_thinking_model_is_its_text_below_the_calls`, and `activity.rs` |
//! | a server in the place of a tool has no name | `a_name_that_is_no_tool_has_the_next_step`, `with_bare_names_a_server_is_still_no_tool` |
//! | a fault of progress is a line each time | `a_repeated_fault_of_a_server_is_one_warning` |
//! | `login` says `signed in` for a server without a sign-in | `login_of_a_server_without_a_sign_in_says_so` |
//! | an unreviewed file says that nobody has decided | `servers_of_an_unapproved_file_are_not_started` |

mod calls;
mod files;
mod servers;

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use innkeeper_testkit::{Fixture, mcp_json};
use tempfile::TempDir;

use crate::program::innkeeper;
use crate::terminal::{Reply, run_in_terminal_while, screen_text};

/// The widths of the terminals.
const COLUMNS: [u16; 2] = [80, 120];

/// A directory with an `mcp.json`, or an empty directory.
struct Project(TempDir);

impl Project {
    fn new(servers: impl IntoIterator<Item = Fixture>) -> Self {
        Self::with_text(&serde_json::to_string_pretty(&mcp_json(servers)).unwrap())
    }

    fn with_text(text: &str) -> Self {
        let project = Self::empty();
        project.write("mcp.json", text);
        project
    }

    fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, line: &str) -> Command {
        let args = shlex::split(line).unwrap();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        innkeeper(&args, self.path())
    }

    /// Runs a command with `--config mcp.json` everywhere.
    fn screens(&self, line: &str) -> String {
        self.screens_while(&format!("{line} --config mcp.json"), |_| {})
    }

    /// Runs a command everywhere, and does something while the program runs.
    fn screens_while(&self, line: &str, action: impl Fn(&mut Child)) -> String {
        self.screens_with_reply(line, None, action)
    }

    /// Runs a command everywhere, and replies to a question on a terminal.
    fn screens_with_reply(
        &self,
        line: &str,
        reply: Option<Reply>,
        action: impl Fn(&mut Child),
    ) -> String {
        let mut texts = vec![format!("$ innkeeper {line}")];
        let mut command = self.command(line);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        action(&mut child);
        let output = child.wait_with_output().unwrap();
        texts.push(format!("-- pipe, {}", exit_text(output.status)));
        for (stream, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
            if !bytes.is_empty() {
                let text = without_measurements(&String::from_utf8(bytes).unwrap());
                texts.push(format!("-- {stream}\n{}", text.trim_end()));
            }
        }
        let mut earlier: Option<String> = None;
        for columns in COLUMNS {
            let (status, text) = run_in_terminal_while(self.command(line), columns, reply, &action);
            let screen = screen_text(&text, columns);
            let shown = format!("{}\n{screen}", exit_text(status));
            texts.push(match &earlier {
                Some(same) if *same == shown => format!("-- terminal of {columns} columns: same"),
                _ => format!("-- terminal of {columns} columns, {shown}"),
            });
            earlier = Some(shown);
        }
        texts.join("\n")
    }
}

fn exit_text(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exit code {code}"),
        None => status.to_string(),
    }
}

/// Replaces the times, numbers and durations of log lines, and sorts successive log lines: servers
/// run at the same time.
fn without_measurements(text: &str) -> String {
    let replace = |word: &str| match word.split_once('=') {
        Some((name @ ("id" | "latency_ms"), _)) => format!("{name}=NUMBER"),
        None if word.starts_with("20") && word.ends_with('Z') => "TIME".to_owned(),
        Some(_) | None => word.to_owned(),
    };
    let lines = text.lines().map(|line| line.split(' ').map(replace).collect::<Vec<_>>().join(" "));
    let mut lines: Vec<String> = lines.collect();
    let is_log = |line: &String| line.starts_with("TIME ");
    for run in lines.chunk_by_mut(|line, next| is_log(line) && is_log(next)) {
        run.sort();
    }
    lines.join("\n")
}
