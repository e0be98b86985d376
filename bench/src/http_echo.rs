//! The echo server over Streamable HTTP, in a process next to the client.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::workload::{Transport, Workload};

/// A running server process, which a drop kills.
#[derive(Debug)]
pub struct HttpEchoServer {
    child: Child,
    /// The URL of the server.
    pub url: String,
}

impl HttpEchoServer {
    /// Starts the server, unless the workload uses pipes.
    pub fn start(work: &Workload) -> Option<Self> {
        let path = match work.transport {
            Transport::Stdio => return None,
            Transport::HttpJson => "json",
            Transport::HttpEvents => "events",
        };
        let mut child = Command::new(work.echo_program.with_file_name("echo-http"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("cannot start the echo server");
        let mut address = String::new();
        let output = child.stdout.take().expect("stdout is not a pipe");
        BufReader::new(output).read_line(&mut address).expect("the echo server printed no address");
        Some(Self { child, url: format!("http://{}/{path}", address.trim()) })
    }
}

impl Drop for HttpEchoServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
