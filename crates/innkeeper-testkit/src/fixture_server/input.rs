//! Threads for standard input and SIGTERM.

use std::io::{self, BufRead, Read};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use serde_json::json;
use signal_hook::consts::SIGTERM;

use super::journal_writer::JournalWriter;
use super::switches::Switches;

/// Maximum number of queued lines; small, so that a slow server fills the pipe.
const MAX_QUEUED_LINES: usize = 16;

#[derive(Debug)]
pub(super) enum InputEvent {
    Line(Vec<u8>),
    End,
}

/// Starts the thread that reads standard input.
///
/// The caller keeps the returned sender, so that the channel stays open after the end of the input.
pub(super) fn read_stdin(switches: &Switches) -> (SyncSender<InputEvent>, Receiver<InputEvent>) {
    let (sender, receiver) = sync_channel(MAX_QUEUED_LINES);
    let stdin_sender = sender.clone();
    let stop_at_call = switches.is_set("--stop-reading");
    let stop_after =
        switches.is_set("--stop-reading-after").then(|| switches.count("--stop-reading-after"));
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut read = 0;
        loop {
            if stop_after.is_some_and(|limit| read >= limit) {
                park_forever();
            }
            let mut line = Vec::new();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => read += 1,
            }
            let is_call = stop_at_call && contains(&line, b"\"tools/call\"");
            if sender.send(InputEvent::Line(line)).is_err() {
                return;
            }
            if is_call {
                park_forever();
            }
        }
        let _ = sender.send(InputEvent::End);
    });
    (stdin_sender, receiver)
}

/// Records SIGTERM, then exits by the signal unless `ignore` is set.
///
/// A separate thread, because the main thread may be blocked in a write.
pub(super) fn watch_sigterm(recorder: JournalWriter, ignore: bool) -> io::Result<()> {
    let (mut reader, writer) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(SIGTERM, writer)?;
    thread::spawn(move || {
        let mut byte = [0];
        while reader.read_exact(&mut byte).is_ok() {
            recorder.record_event("signal", &json!({"signal": SIGTERM, "ignored": ignore}));
            if !ignore {
                let _ = signal_hook::low_level::emulate_default_handler(SIGTERM);
            }
        }
    });
    Ok(())
}

/// Blocks forever without reading the pipe.
fn park_forever() -> ! {
    loop {
        thread::park();
    }
}

fn contains(line: &[u8], needle: &[u8]) -> bool {
    line.windows(needle.len()).any(|window| window == needle)
}
