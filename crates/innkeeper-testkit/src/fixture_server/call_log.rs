//! The tool `tally`: logs the id of each call, responds with a requested fault.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::call::UNKNOWN_ID;
use super::catalog;
use super::message::{Request, Response, error_code};
use super::server::{FixtureServer, TimedAction};
use super::tool::{error_result, text_result};

pub(super) const TOOL_NAME: &str = "tally";

/// Delay of a late response: longer than the timeout of any caller that requests the fault.
const LATE_DELAY: Duration = Duration::from_millis(600);

pub(super) fn tool_definition() -> Value {
    let properties = json!({
        "id": {"type": "integer", "minimum": 0},
        "fault": {"type": "string"},
    });
    let schema = json!({"type": "object", "properties": properties, "required": ["id"]});
    catalog::tool(TOOL_NAME, "Says the number back.", &schema)
}

/// The file with the ids, which opens at the first call; a restarted process appends.
#[derive(Debug, Default)]
pub(super) struct CallLog(Option<File>);

impl CallLog {
    /// Writes eight bytes at once, so that the file contains complete ids after a crash.
    fn append(&mut self, path: &str, id: u64) -> io::Result<()> {
        let mut file = match self.0.take() {
            Some(file) => file,
            None => OpenOptions::new().create(true).append(true).open(path)?,
        };
        file.write_all(&id.to_le_bytes())?;
        self.0 = Some(file);
        Ok(())
    }
}

/// Returns the ids in the file of `--tally` in execution order; empty if the file does not exist.
#[must_use]
pub fn read_call_log(path: &Path) -> Vec<u64> {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes.chunks_exact(8).filter_map(|id| Some(u64::from_le_bytes(id.try_into().ok()?))).collect()
}

impl FixtureServer {
    /// Whether the request calls `tally`, which has its own faults.
    pub(super) fn is_tally_call(&self, request: &Request) -> bool {
        self.switches.is_set("--tally") && request.param("name") == TOOL_NAME
    }

    pub(super) fn run_tally(&mut self, request: &Request) -> Response {
        let arguments = &request.params["arguments"];
        let path = self.switches.value("--tally").unwrap_or_default();
        let Some(id) = arguments["id"].as_u64() else {
            return Response::error(error_code::INVALID_PARAMS, "no `id`");
        };
        if let Err(error) = self.open.calls.log.append(path, id) {
            return Response::error(error_code::INVALID_REQUEST, format!("`--tally`: {error}"));
        }
        let number = id.to_string();
        let fault = arguments["fault"].as_str().unwrap_or_default();
        match fault {
            "" => return Response::Result(text_result(&number)),
            "failure" => return Response::Result(error_result(&number)),
            "error" => return Response::error(error_code::INVALID_REQUEST, number),
            "crash" => self.crash(),
            _ => {
                let response =
                    self.with_era_metadata(request, Response::Result(text_result(&number)));
                self.respond_with_fault(request, &response, fault);
            }
        }
        Response::Deferred
    }

    fn respond_with_fault(&mut self, request: &Request, response: &Response, fault: &str) {
        let Some(mut line) = response.to_message(&request.id) else { return };
        line.push('\n');
        match fault {
            "late" => return self.timers.schedule(LATE_DELAY, TimedAction::Raw(line.into_bytes())),
            "twice" => self.stdout.write_raw(line.as_bytes()),
            "noise" => self.stdout.write_raw(b"npm WARN \x1b[33mnot json\x1b[0m\n"),
            "stranger" => {
                let stray = response.to_message(&json!(UNKNOWN_ID)).unwrap_or_default();
                self.stdout.write_raw(format!("{stray}\n").as_bytes());
            }
            "malformed" => line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{}}}\n", request.id),
            other => {
                let message = format!("`{other}` is no fault");
                let rejection = Response::error(error_code::INVALID_PARAMS, message);
                line = format!("{}\n", rejection.to_message(&request.id).unwrap_or_default());
            }
        }
        self.stdout.write_raw(line.as_bytes());
    }
}
