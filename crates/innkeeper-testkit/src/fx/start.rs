//! The fixture server's first moments: failing to start, talking on stderr, having children.

use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

use serde_json::json;

use super::USAGE;
use super::catalog::Catalog;
use super::input;
use super::journal::Recorder;
use super::process;
use super::server::Server;
use super::switch::Switches;

/// Exit code of a start that `--fail-starts` fails.
const FAILED_START: u8 = 1;

/// Length of a line of `--stderr-flood`.
const FLOOD_LINE: usize = 100;

/// Starts the server, or fails to, as the switches say.
pub(super) fn run(switches: Switches) -> ExitCode {
    match prepare(&switches) {
        Ok((recorder, catalog)) => serve(switches, recorder, catalog),
        Err(problem) => super::say(&mut io::stderr(), &format!("innkeeper-fx: {problem}\n"), USAGE),
    }
}

fn prepare(switches: &Switches) -> Result<(Recorder, Catalog), String> {
    let recorder = Recorder::open(switches.server(), switches.text("--journal"))
        .map_err(|error| format!("`--journal`: {error}"))?;
    Ok((recorder, Catalog::new(switches)?))
}

fn serve(switches: Switches, recorder: Recorder, catalog: Catalog) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    recorder.event("start", &json!({"args": arguments}));
    if let Some(text) = switches.text("--stderr") {
        to_stderr(format!("{text}\n").as_bytes());
    }
    if let Some(code) = refused_start(&switches) {
        recorder.event("exit", &json!({"code": code}));
        return ExitCode::from(code);
    }
    let ready = input::watch_sigterm(recorder.clone(), switches.on("--ignore-sigterm"))
        .and_then(|()| process::start_children(&switches, &recorder));
    if let Err(error) = ready {
        return super::say(&mut io::stderr(), &format!("innkeeper-fx: {error}\n"), FAILED_START);
    }
    flood_stderr(&switches);
    if switches.on("--spin") {
        thread::spawn(|| {
            loop {
                std::hint::spin_loop();
            }
        });
    }
    thread::sleep(switches.millis("--start-delay"));
    // Kept alive so that the loop outlives the reading thread.
    let (_sender, receiver) = input::read_stdin(&switches);
    let early = switches.on("--early-request");
    let mut server = Server::new(switches, recorder, catalog);
    if early {
        server.ask_early();
    }
    server.serve(&receiver)
}

/// The exit code of a start that is to fail.
fn refused_start(switches: &Switches) -> Option<u8> {
    if let Some(code) = switches.number("--exit-at-start") {
        return Some(u8::try_from(code).unwrap_or(u8::MAX));
    }
    let failures = switches.count("--fail-starts");
    let Some(file) = switches.text("--state") else {
        return (failures > 0).then(|| {
            to_stderr(b"innkeeper-fx: `--fail-starts` needs `--state`\n");
            USAGE
        });
    };
    let starts: usize =
        std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    if let Err(error) = std::fs::write(file, (starts + 1).to_string()) {
        to_stderr(format!("innkeeper-fx: `--state`: {error}\n").as_bytes());
        return Some(USAGE);
    }
    (starts < failures).then(|| {
        to_stderr(format!("start {} fails as asked\n", starts + 1).as_bytes());
        FAILED_START
    })
}

fn flood_stderr(switches: &Switches) {
    let mut line = vec![b'e'; FLOOD_LINE - 1];
    line.push(b'\n');
    let mut left = switches.count("--stderr-flood");
    while left > 0 {
        let piece = left.min(FLOOD_LINE);
        to_stderr(&line[FLOOD_LINE - piece..]);
        left -= piece;
    }
    to_stderr(&vec![b'e'; switches.count("--stderr-endless")]);
}

fn to_stderr(bytes: &[u8]) {
    // A host that does not listen loses it; that is what the flood is for.
    drop(io::stderr().write_all(bytes));
}
