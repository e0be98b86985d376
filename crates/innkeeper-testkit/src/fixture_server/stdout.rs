//! Writer of standard output, with framing faults.

use std::io::{self, Write};
use std::time::Duration;

use super::switches::Switches;

/// Standard output with the framing faults of the switches.
#[derive(Debug)]
pub(super) struct StdoutWriter {
    crlf: bool,
    bom: bool,
    noise_lines: usize,
    chunk_bytes: usize,
    chunk_delay: Duration,
    is_closed: bool,
}

impl StdoutWriter {
    pub(super) fn new(switches: &Switches) -> Self {
        let noise_lines = switches.count("--noise").max(usize::from(switches.is_set("--bad-json")));
        Self {
            crlf: switches.is_set("--crlf"),
            bom: switches.is_set("--bom"),
            noise_lines,
            chunk_bytes: switches.count("--chunk"),
            chunk_delay: switches.millis("--chunk-delay"),
            is_closed: false,
        }
    }

    /// Sends a response as one line, after the noise lines of the switches.
    pub(super) fn write_response(&mut self, text: &[u8]) {
        for number in 0..self.noise_lines {
            let noise = format!("npm WARN \u{1b}[33mnot json\u{1b}[0m {number}\n");
            self.write_raw(noise.as_bytes());
        }
        self.write_line(text);
    }

    pub(super) fn write_line(&mut self, text: &[u8]) {
        let mut bytes = Vec::with_capacity(text.len() + 5);
        if std::mem::take(&mut self.bom) {
            bytes.extend_from_slice("\u{feff}".as_bytes());
        }
        bytes.extend_from_slice(text);
        bytes.extend_from_slice(if self.crlf { b"\r\n" } else { b"\n" });
        self.write_raw(&bytes);
    }

    /// Sends bytes unchanged.
    ///
    /// After the reader has closed the pipe this does nothing: such a server exits at the end of
    /// the input.
    pub(super) fn write_raw(&mut self, bytes: &[u8]) {
        if !self.is_closed && self.write(bytes).is_err() {
            self.is_closed = true;
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.chunk_bytes == 0 {
            out.write_all(bytes)?;
            return out.flush();
        }
        for chunk in bytes.chunks(self.chunk_bytes) {
            out.write_all(chunk)?;
            out.flush()?;
            if !self.chunk_delay.is_zero() {
                std::thread::sleep(self.chunk_delay);
            }
        }
        Ok(())
    }
}

/// Closes standard output while the process keeps running.
pub(super) fn close_stdout() -> io::Result<()> {
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(&null)?)
}
