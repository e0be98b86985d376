//! The program `innkeeper-llm`: a scripted model for clients in other languages.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::{Value, json};
use tokio::sync::oneshot::{Receiver, channel};

use super::{RecordedRequest, Script, ScriptedLlm};

/// Exit code for an invalid command line.
const USAGE_EXIT_CODE: u8 = 2;

const HELP: &str = "\
usage: innkeeper-llm SCRIPT [--requests FILE]

Reads a script, prints its origin on one line, serves until the end of its input. Each request
is appended to FILE as a line of JSON: method, path, query, headers, body.

A script is JSON: {\"steps\": [STEP…], \"then_always\": STEP, \"chunks\": BYTES, \"models\": [NAME…],
\"props\": {…} or \"chat_template_caps\": {…}}. A step has one of
  \"answer\": {\"parts\": [{\"text\": TEXT}, {\"reasoning\": TEXT},
             {\"tool_call\": {\"name\": NAME, \"arguments\": {…}}},
             {\"raw_tool_call\": {\"name\": NAME, \"text\": TEXT}}],
             \"usage\": [READ, WRITTEN], \"cached_tokens\": N, \"reasoning_tokens\": N,
             \"cut\": true, \"refuses\": true, \"ends_in_error\": TEXT}
  \"failure\": {\"status\": N, \"error\": TEXT, \"code\": WORD}
  \"raw\": {\"status\": N, \"content_type\": TYPE, \"body\": TEXT}
and may have \"headers\": {…}, \"breaks_off_after\": BYTES, \"hangs_after\": BYTES, \"hangs\": true.
";

/// Runs the program with these arguments (without its name) until the end of its input.
///
/// The exit code is 0 at the end of the input, 2 for invalid arguments or an invalid script.
#[must_use]
pub fn run(arguments: Vec<String>) -> ExitCode {
    if arguments.iter().any(|argument| argument == "--help") {
        return print_and_exit(io::stdout(), HELP, 0);
    }
    let problem = |text: String| {
        print_and_exit(io::stderr(), &format!("innkeeper-llm: {text}\n"), USAGE_EXIT_CODE)
    };
    let (script, requests) = match parse(arguments) {
        Ok(parsed) => parsed,
        Err(text) => return problem(text),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(serve(script, requests))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => problem(error.to_string()),
    }
}

fn parse(arguments: Vec<String>) -> Result<(Script, Option<File>), String> {
    let mut script = None;
    let mut requests = None;
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "--requests" {
            let path = arguments.next().ok_or("`--requests` needs a file")?;
            let file = OpenOptions::new().create(true).append(true).open(&path);
            requests = Some(file.map_err(|error| format!("`{path}`: {error}"))?);
        } else if script.is_none() && !argument.starts_with('-') {
            let text = std::fs::read_to_string(&argument);
            let text = text.map_err(|error| format!("`{argument}`: {error}"))?;
            let read = Script::from_json(&text);
            script = Some(read.map_err(|error| format!("`{argument}`: {error}"))?);
        } else {
            return Err(format!("unknown argument `{argument}`; see `--help`"));
        }
    }
    Ok((script.ok_or("a script is required; see `--help`")?, requests))
}

async fn serve(script: Script, mut requests: Option<File>) -> io::Result<()> {
    let llm = ScriptedLlm::start(script).await;
    let mut out = io::stdout();
    out.write_all(format!("{}\n", llm.origin()).as_bytes())?;
    out.flush()?;
    let mut input = watch_end_of_input();
    let mut logged = 0;
    loop {
        let is_finished = tokio::select! {
            _ = &mut input => true,
            () = llm.server.log().wait_for_more_than(logged) => false,
        };
        let new_requests = llm.server.log().since(logged);
        logged += new_requests.len();
        if let Some(file) = &mut requests {
            let lines: String = new_requests.iter().map(request_line).collect();
            file.write_all(lines.as_bytes())?;
        }
        if is_finished {
            llm.stop().await;
            return Ok(());
        }
    }
}

/// Returns a receiver that resolves at the end of standard input.
fn watch_end_of_input() -> Receiver<()> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        // A read error also counts as the end of the input.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = sender.send(());
    });
    receiver
}

/// Formats a request as a JSON line with an unchanged body.
fn request_line(request: &RecordedRequest) -> String {
    let headers: serde_json::Map<String, Value> =
        request.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let body = match request.body {
        Value::Null => "null".to_owned(),
        // A space between JSON tokens is equivalent.
        _ => request.text.replace(['\n', '\r'], " "),
    };
    let method = json!(request.method);
    let path = json!(request.path);
    let query = json!(request.query);
    let headers = json!(headers);
    format!(
        "{{\"method\":{method},\"path\":{path},\"query\":{query},\"headers\":{headers},\
         \"body\":{body}}}\n"
    )
}

fn print_and_exit(mut out: impl Write, text: &str, code: u8) -> ExitCode {
    match out.write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(code),
        Err(_) => ExitCode::FAILURE,
    }
}
