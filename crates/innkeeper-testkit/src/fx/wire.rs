//! Writing to standard output, with the framing faults asked for.

use std::io::{self, Write};
use std::time::Duration;

use super::switch::Switches;

/// Standard output as this server misuses it.
#[derive(Debug)]
pub(super) struct Wire {
    crlf: bool,
    bom: bool,
    noise: usize,
    chunk: usize,
    pause: Duration,
    broken: bool,
}

impl Wire {
    pub(super) fn new(switches: &Switches) -> Self {
        let noise = switches.count("--noise").max(usize::from(switches.on("--bad-json")));
        Self {
            crlf: switches.on("--crlf"),
            bom: switches.on("--bom"),
            noise,
            chunk: switches.count("--chunk"),
            pause: switches.millis("--chunk-delay"),
            broken: false,
        }
    }

    /// Sends a response as one line, with the noise lines asked for before it.
    pub(super) fn response(&mut self, text: &[u8]) {
        for number in 0..self.noise {
            let noise = format!("npm WARN \u{1b}[33mnot json\u{1b}[0m {number}\n");
            self.raw(noise.as_bytes());
        }
        self.line(text);
    }

    /// Sends one line.
    pub(super) fn line(&mut self, text: &[u8]) {
        let mut bytes = Vec::with_capacity(text.len() + 5);
        if std::mem::take(&mut self.bom) {
            bytes.extend_from_slice("\u{feff}".as_bytes());
        }
        bytes.extend_from_slice(text);
        bytes.extend_from_slice(if self.crlf { b"\r\n" } else { b"\n" });
        self.raw(&bytes);
    }

    /// Sends bytes as they are.
    ///
    /// After the reader has gone this does nothing: such a server ends by end of input, if at all.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        if !self.broken && self.write(bytes).is_err() {
            self.broken = true;
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.chunk == 0 {
            out.write_all(bytes)?;
            return out.flush();
        }
        for piece in bytes.chunks(self.chunk) {
            out.write_all(piece)?;
            out.flush()?;
            if !self.pause.is_zero() {
                std::thread::sleep(self.pause);
            }
        }
        Ok(())
    }
}

/// Lets go of standard output while the process lives on.
pub(super) fn close_stdout() -> io::Result<()> {
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(&null)?)
}
