//! The tool `tally`: notes the number of each call it runs in a file, and answers with the fault the
//! call asks for.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::call::UNKNOWN_ID;
use super::catalog;
use super::message::{Answer, Request, code};
use super::server::{Action, Server};
use super::tool::{failed, text};

/// The tool's name.
pub(super) const NAME: &str = "tally";

/// When a late answer comes: after any deadline of a caller that asks for one.
const LATE: Duration = Duration::from_millis(600);

/// What it says of itself.
pub(super) fn tool() -> Value {
    let properties = json!({
        "id": {"type": "integer", "minimum": 0},
        "fault": {"type": "string"},
    });
    let schema = json!({"type": "object", "properties": properties, "required": ["id"]});
    catalog::tool(NAME, "Says the number back.", &schema)
}

/// The file with the numbers, opened at the first one; a process started anew goes on with it.
#[derive(Debug, Default)]
pub(super) struct Tally(Option<File>);

impl Tally {
    /// Eight bytes in one write, so that a crash leaves whole numbers.
    fn note(&mut self, path: &str, id: u64) -> io::Result<()> {
        let mut file = match self.0.take() {
            Some(file) => file,
            None => OpenOptions::new().create(true).append(true).open(path)?,
        };
        file.write_all(&id.to_le_bytes())?;
        self.0 = Some(file);
        Ok(())
    }
}

/// The numbers in the file of `--tally`, in the order the calls ran; none if it is not there.
#[must_use]
pub fn tallied(path: &Path) -> Vec<u64> {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes.chunks_exact(8).filter_map(|id| Some(u64::from_le_bytes(id.try_into().ok()?))).collect()
}

impl Server {
    /// Whether a call is one of the tool's, which has its faults by itself.
    pub(super) fn is_tally(&self, request: &Request) -> bool {
        self.switches.on("--tally") && request.param("name") == NAME
    }

    /// Notes the call and answers it.
    pub(super) fn run_tally(&mut self, request: &Request) -> Answer {
        let arguments = &request.params["arguments"];
        let path = self.switches.text("--tally").unwrap_or_default();
        let Some(id) = arguments["id"].as_u64() else {
            return Answer::error(code::INVALID_PARAMS, "no `id`");
        };
        if let Err(error) = self.tally.note(path, id) {
            return Answer::error(code::INVALID_REQUEST, format!("`--tally`: {error}"));
        }
        let number = id.to_string();
        let fault = arguments["fault"].as_str().unwrap_or_default();
        match fault {
            "" => return Answer::Result(text(&number)),
            "failure" => return Answer::Result(failed(&number)),
            "error" => return Answer::error(code::INVALID_REQUEST, number),
            "crash" => self.crash(),
            _ => {
                let answer = self.in_era(request, Answer::Result(text(&number)));
                self.answer_with(request, &answer, fault);
            }
        }
        Answer::Later
    }

    fn answer_with(&mut self, request: &Request, answer: &Answer, fault: &str) {
        let Some(mut line) = answer.response(&request.id) else { return };
        line.push('\n');
        match fault {
            "late" => return self.timers.after(LATE, Action::Raw(line.into_bytes())),
            "twice" => self.wire.raw(line.as_bytes()),
            "noise" => self.wire.raw(b"npm WARN \x1b[33mnot json\x1b[0m\n"),
            "stranger" => {
                let stray = answer.response(&json!(UNKNOWN_ID)).unwrap_or_default();
                self.wire.raw(format!("{stray}\n").as_bytes());
            }
            "malformed" => line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{}}}\n", request.id),
            other => {
                let words = format!("`{other}` is no fault");
                let refusal = Answer::error(code::INVALID_PARAMS, words);
                line = format!("{}\n", refusal.response(&request.id).unwrap_or_default());
            }
        }
        self.wire.raw(line.as_bytes());
    }
}
