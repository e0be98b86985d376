//! The stdio echo server: one read and one write for as many lines as there are.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use innkeeper_bench::echo::Echo;

/// What one read may bring: a pipe of the largest size an ordinary user gets.
const READ: usize = 1 << 20;

fn main() -> io::Result<()> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut echo = Echo::new();
    let (mut line, mut out) = (Vec::new(), Vec::with_capacity(READ));
    let mut buffer = vec![0; READ];
    loop {
        let count = input.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let mut rest = &buffer[..count];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if line.is_empty() {
                echo.answer(&rest[..end], &mut out);
            } else {
                line.extend_from_slice(&rest[..end]);
                echo.answer(&line, &mut out);
                line.clear();
            }
            rest = &rest[end + 1..];
        }
        line.extend_from_slice(rest);
        if !out.is_empty() {
            output.write_all(&out)?;
            out.clear();
        }
    }
}
