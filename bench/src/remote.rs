//! The echo server over Streamable HTTP, in a process of its own beside the client's.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::work::{Over, Work};

/// A running server, which ends with this.
#[derive(Debug)]
pub struct Remote {
    child: Child,
    /// Where it answers.
    pub url: String,
}

impl Remote {
    /// Starts it, unless the work goes over pipes.
    pub fn start(work: &Work) -> Option<Self> {
        let path = match work.over {
            Over::Pipes => return None,
            Over::Json => "json",
            Over::Events => "events",
        };
        let mut child = Command::new(work.echo.with_file_name("echo-http"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the echo server starts");
        let mut address = String::new();
        let output = child.stdout.take().expect("stdout is a pipe");
        BufReader::new(output).read_line(&mut address).expect("the server says its address");
        Some(Self { child, url: format!("http://{}/{path}", address.trim()) })
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
