//! The stdio echo server: one read and one write for all available lines.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use innkeeper_bench::echo::EchoServer;

/// Size of the read buffer: the maximum pipe size of an unprivileged user.
const READ_BUFFER_BYTES: usize = 1 << 20;

fn main() -> io::Result<()> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut echo = EchoServer::new();
    let (mut line, mut out) = (Vec::new(), Vec::with_capacity(READ_BUFFER_BYTES));
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    loop {
        let count = input.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let mut rest = &buffer[..count];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if line.is_empty() {
                echo.respond(&rest[..end], &mut out);
            } else {
                line.extend_from_slice(&rest[..end]);
                echo.respond(&line, &mut out);
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
