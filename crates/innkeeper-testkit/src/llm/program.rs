//! `innkeeper-llm`: a scripted model for clients that are no Rust.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::{Value, json};
use tokio::sync::oneshot::{Receiver, channel};

use super::{Script, ScriptedLlm, Seen};

/// Exit code for a command line that cannot be understood.
const USAGE: u8 = 2;

const HELP: &str = "\
usage: innkeeper-llm SCRIPT [--requests FILE]

Reads a script, prints its origin on one line, answers until its input ends. Each request is
appended to FILE as a line of JSON: method, path, query, headers, body.

A script is JSON: {\"steps\": [STEP…], \"then_always\": STEP, \"chunks\": BYTES, \"models\": [NAME…],
\"props\": {…} or \"chat_template_caps\": {…}}. A step has one of
  \"answer\": {\"parts\": [{\"says\": TEXT}, {\"thinks\": TEXT},
             {\"calls\": {\"name\": NAME, \"arguments\": {…}}},
             {\"raw_arguments\": {\"name\": NAME, \"text\": TEXT}}],
             \"usage\": [READ, WRITTEN], \"cached_tokens\": N, \"reasoning_tokens\": N,
             \"cut\": true, \"refuses\": true, \"ends_in_error\": TEXT}
  \"failure\": {\"status\": N, \"error\": TEXT, \"code\": WORD}
  \"raw\": {\"status\": N, \"content_type\": TYPE, \"body\": TEXT}
and may have \"headers\": {…}, \"breaks_off_after\": BYTES, \"hangs_after\": BYTES, \"hangs\": true.
";

/// Runs the program with these arguments (without its name) until its input ends.
///
/// Ends with 0 on end of input, 2 when the arguments or the script cannot be understood.
#[must_use]
pub fn run(arguments: Vec<String>) -> ExitCode {
    if arguments.iter().any(|argument| argument == "--help") {
        return end(io::stdout(), HELP, 0);
    }
    let problem = |text: String| end(io::stderr(), &format!("innkeeper-llm: {text}\n"), USAGE);
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
    let (mut script, mut requests) = (None, None);
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
            return Err(format!("`{argument}` is not known; see `--help`"));
        }
    }
    Ok((script.ok_or("a script is missing; see `--help`")?, requests))
}

async fn serve(script: Script, mut requests: Option<File>) -> io::Result<()> {
    let llm = ScriptedLlm::start(script).await;
    let mut out = io::stdout();
    out.write_all(format!("{}\n", llm.origin()).as_bytes())?;
    out.flush()?;
    let mut input = ended_input();
    let mut written = 0;
    loop {
        let over = tokio::select! {
            _ = &mut input => true,
            () = llm.served.log().beyond(written) => false,
        };
        let seen = llm.served.log().since(written);
        written += seen.len();
        if let Some(file) = &mut requests {
            let lines: String = seen.iter().map(line).collect();
            file.write_all(lines.as_bytes())?;
        }
        if over {
            llm.stop().await;
            return Ok(());
        }
    }
}

/// Comes when nobody can write to the program any more.
fn ended_input() -> Receiver<()> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        // Input that cannot be read has ended, too.
        drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
        let _ = sender.send(());
    });
    receiver
}

/// A request as a line of JSON, its body as it came.
fn line(seen: &Seen) -> String {
    let headers: serde_json::Map<String, Value> =
        seen.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let body = match seen.body {
        Value::Null => "null".to_owned(),
        // Between tokens of JSON, one space is as good as another.
        _ => seen.text.replace(['\n', '\r'], " "),
    };
    let (method, path) = (json!(seen.method), json!(seen.path));
    let (query, headers) = (json!(seen.query), json!(headers));
    format!(
        "{{\"method\":{method},\"path\":{path},\"query\":{query},\"headers\":{headers},\
         \"body\":{body}}}\n"
    )
}

fn end(mut out: impl Write, text: &str, code: u8) -> ExitCode {
    match out.write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(code),
        Err(_) => ExitCode::FAILURE,
    }
}
