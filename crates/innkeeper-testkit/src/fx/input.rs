//! Reading standard input and watching for SIGTERM, each on a thread of its own.

use std::io::{self, BufRead, Read};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use serde_json::json;
use signal_hook::consts::SIGTERM;

use super::journal::Recorder;
use super::switch::Switches;

/// Lines read ahead of the one being handled; small, so that a slow server fills the pipe.
const READ_AHEAD: usize = 16;

/// What came in.
#[derive(Debug)]
pub(super) enum Input {
    Line(Vec<u8>),
    End,
}

/// Starts reading standard input.
///
/// The sender is returned too: as long as it is kept, an ended input does not end the wait.
pub(super) fn read_stdin(switches: &Switches) -> (SyncSender<Input>, Receiver<Input>) {
    let (sender, receiver) = sync_channel(READ_AHEAD);
    let kept = sender.clone();
    let stop_at_call = switches.on("--stop-reading");
    let stop_after =
        switches.on("--stop-reading-after").then(|| switches.count("--stop-reading-after"));
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut read = 0;
        loop {
            if stop_after.is_some_and(|limit| read >= limit) {
                stay();
            }
            let mut line = Vec::new();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => read += 1,
            }
            let is_call = stop_at_call && contains(&line, b"\"tools/call\"");
            if sender.send(Input::Line(line)).is_err() {
                return;
            }
            if is_call {
                stay();
            }
        }
        drop(sender.send(Input::End));
    });
    (kept, receiver)
}

/// Records SIGTERM, then dies of it unless it is to be ignored.
///
/// On a thread of its own, because the main one may be stuck writing.
pub(super) fn watch_sigterm(recorder: Recorder, ignore: bool) -> io::Result<()> {
    let (mut reader, writer) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(SIGTERM, writer)?;
    thread::spawn(move || {
        let mut byte = [0];
        while reader.read_exact(&mut byte).is_ok() {
            recorder.event("signal", &json!({"signal": SIGTERM, "ignored": ignore}));
            if !ignore {
                drop(signal_hook::low_level::emulate_default_handler(SIGTERM));
            }
        }
    });
    Ok(())
}

/// Never comes back, and leaves what is in the pipe there.
fn stay() -> ! {
    loop {
        thread::park();
    }
}

fn contains(line: &[u8], needle: &[u8]) -> bool {
    line.windows(needle.len()).any(|window| window == needle)
}
