//! Start of the fixture server: start faults, stderr output, child processes.

use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

use serde_json::json;

use super::USAGE_EXIT_CODE;
use super::catalog::Catalog;
use super::input;
use super::journal_writer::JournalWriter;
use super::process;
use super::server::FixtureServer;
use super::switches::Switches;

/// Exit code of a start that `--fail-starts` fails.
const FAILED_START_EXIT_CODE: u8 = 1;

/// Length of a line of `--stderr-flood` in bytes.
const FLOOD_LINE_BYTES: usize = 100;

/// Starts the server, or fails as the switches define.
pub(super) fn run(switches: Switches) -> ExitCode {
    match prepare(&switches) {
        Ok((recorder, catalog)) => serve(switches, recorder, catalog),
        Err(problem) => super::print_and_exit(
            &mut io::stderr(),
            &format!("innkeeper-fixture-server: {problem}\n"),
            USAGE_EXIT_CODE,
        ),
    }
}

fn prepare(switches: &Switches) -> Result<(JournalWriter, Catalog), String> {
    let recorder = JournalWriter::open(switches.server_name(), switches.value("--journal"))
        .map_err(|error| format!("`--journal`: {error}"))?;
    Ok((recorder, Catalog::new(switches)?))
}

fn serve(switches: Switches, recorder: JournalWriter, catalog: Catalog) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    recorder.record_event("start", &json!({"args": arguments}));
    if let Some(text) = switches.value("--stderr") {
        write_stderr(format!("{text}\n").as_bytes());
    }
    if let Some(code) = failing_start_exit_code(&switches) {
        recorder.record_event("exit", &json!({"code": code}));
        return ExitCode::from(code);
    }
    let ready = input::watch_sigterm(recorder.clone(), switches.is_set("--ignore-sigterm"))
        .and_then(|()| process::start_children(&switches, &recorder));
    if let Err(error) = ready {
        return super::print_and_exit(
            &mut io::stderr(),
            &format!("innkeeper-fixture-server: {error}\n"),
            FAILED_START_EXIT_CODE,
        );
    }
    flood_stderr(&switches);
    if switches.is_set("--spin") {
        thread::spawn(|| {
            loop {
                std::hint::spin_loop();
            }
        });
    }
    thread::sleep(switches.millis("--start-delay"));
    // The sender keeps the loop alive after the end of the reading thread.
    let (_sender, receiver) = input::read_stdin(&switches);
    let early = switches.is_set("--early-request");
    let mut server = FixtureServer::new(switches, recorder, catalog);
    if early {
        server.send_early_request();
    }
    server.serve(&receiver)
}

/// The exit code of a start that must fail.
fn failing_start_exit_code(switches: &Switches) -> Option<u8> {
    if let Some(code) = switches.number("--exit-at-start") {
        return Some(u8::try_from(code).unwrap_or(u8::MAX));
    }
    let failures = switches.count("--fail-starts");
    let Some(file) = switches.value("--state") else {
        return (failures > 0).then(|| {
            write_stderr(b"innkeeper-fixture-server: `--fail-starts` needs `--state`\n");
            USAGE_EXIT_CODE
        });
    };
    let starts: usize =
        std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    if let Err(error) = std::fs::write(file, (starts + 1).to_string()) {
        write_stderr(format!("innkeeper-fixture-server: `--state`: {error}\n").as_bytes());
        return Some(USAGE_EXIT_CODE);
    }
    (starts < failures).then(|| {
        write_stderr(format!("start {} fails as asked\n", starts + 1).as_bytes());
        FAILED_START_EXIT_CODE
    })
}

fn flood_stderr(switches: &Switches) {
    let mut line = vec![b'e'; FLOOD_LINE_BYTES - 1];
    line.push(b'\n');
    let mut remaining = switches.count("--stderr-flood");
    while remaining > 0 {
        let chunk = remaining.min(FLOOD_LINE_BYTES);
        write_stderr(&line[FLOOD_LINE_BYTES - chunk..]);
        remaining -= chunk;
    }
    write_stderr(&vec![b'e'; switches.count("--stderr-endless")]);
}

fn write_stderr(bytes: &[u8]) {
    // A host that does not read stderr loses the text, which the flood tests.
    let _ = io::stderr().write_all(bytes);
}
