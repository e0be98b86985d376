//! The limit: the same bytes over the same kind of pipe on tokio, with nothing in between.
//!
//! It knows that ids count up and that answers come back with them; it builds, decodes, checks and
//! copies nothing. No client can be expected to pass it.

use std::hint::black_box;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::select;

use crate::figures::{Calls, Started, cpu, status_kb};
use crate::text::{member, number};
use crate::work::{Case, Work};

/// Digits of an id in the request's template.
const DIGITS: usize = 9;
/// Room for a long answer, so that the buffer need not grow; what is not used costs nothing.
const READ: usize = 2 << 20;
/// Calls made before any is counted.
const WARM_UP: Duration = Duration::from_millis(150);

struct Pipe {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    buffer: Vec<u8>,
    length: usize,
    searched: usize,
}

impl Pipe {
    fn open(work: &Work) -> Self {
        let mut child = Command::new(&work.echo)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the echo server starts");
        let input = child.stdin.take().expect("stdin is a pipe");
        let output = child.stdout.take().expect("stdout is a pipe");
        if work.pipe > 0 {
            // Where the kernel refuses, the pipe stays as it is: the figure shows it.
            let _ = rustix::pipe::fcntl_setpipe_size(&input, work.pipe);
            let _ = rustix::pipe::fcntl_setpipe_size(&output, work.pipe);
        }
        Self { child, input, output, buffer: vec![0; READ], length: 0, searched: 0 }
    }

    async fn read(&mut self) {
        if self.length == self.buffer.len() {
            self.buffer.resize(self.length * 2, 0);
        }
        let count = self.output.read(&mut self.buffer[self.length..]).await.expect("stdout reads");
        assert!(count > 0, "the echo server stays");
        self.length += count;
    }

    /// Hands out every whole line that has come, then forgets them.
    fn lines(&mut self, mut line: impl FnMut(&[u8])) {
        let mut start = 0;
        while let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..self.length]) {
            line(&self.buffer[start..self.searched + at]);
            self.searched += at + 1;
            start = self.searched;
        }
        if start > 0 {
            self.buffer.copy_within(start..self.length, 0);
            self.length -= start;
        }
        self.searched = self.length;
    }

    async fn ask(&mut self, request: &str) -> Vec<u8> {
        self.input.write_all(request.as_bytes()).await.expect("stdin takes a request");
        let mut answer = None;
        while answer.is_none() {
            self.read().await;
            self.lines(|line| answer = Some(line.to_vec()));
        }
        answer.unwrap_or_default()
    }

    async fn handshake(&mut self) {
        self.ask(concat!(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
            r#""capabilities":{},"clientInfo":{"name":"bare","version":"1"}}}"#,
            "\n"
        ))
        .await;
        self.input
            .write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
            .await
            .expect("stdin takes a notification");
    }
}

/// A request line whose id is patched in place.
struct Template {
    line: Vec<u8>,
    id: usize,
    /// Bytes of text that a right answer holds.
    answer: usize,
}

impl Template {
    fn new(case: Case) -> Self {
        let message = serde_json::to_string(&case.message()).unwrap_or_default();
        let bytes = case.bytes().map(|bytes| format!(r#","bytes":{bytes}"#)).unwrap_or_default();
        let head = r#"{"jsonrpc":"2.0","id":"#;
        let line = format!(
            "{head}{:09},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"message\":{message}{bytes}}}}}}}\n",
            0
        );
        Self { line: line.into_bytes(), id: head.len(), answer: case.answer_length() }
    }

    fn number(&mut self, mut id: usize) -> &[u8] {
        // The first digit stays 1: a JSON number has no leading zero.
        for at in (1..DIGITS).rev() {
            self.line[self.id + at] = b'0' + u8::try_from(id % 10).unwrap_or(0);
            id /= 10;
        }
        self.line[self.id] = b'1';
        &self.line
    }
}

/// Reads whose answer it is, which no client can do without.
fn answered(line: &[u8], length: usize) {
    assert!(line.len() > length, "an answer came back whole");
    black_box(number(member(line, b"id").unwrap_or_default()));
}

/// Runs the calls of one case.
pub async fn calls(work: &Work) -> Calls {
    let mut pipe = Pipe::open(work);
    pipe.handshake().await;
    run(&mut pipe, work, WARM_UP).await;
    let calls = run(&mut pipe, work, work.span).await;
    drop(pipe.input);
    let _ = pipe.child.wait().await;
    calls
}

async fn run(pipe: &mut Pipe, work: &Work, span: Duration) -> Calls {
    let template = Template::new(work.case);
    let (before, start) = (cpu(), Instant::now());
    let until = start + span;
    let mut calls = if work.in_flight() == 1 {
        one_after_another(pipe, template, until).await
    } else {
        many(pipe, work, template, until).await
    };
    calls.wall = start.elapsed();
    calls.cpu = cpu().saturating_sub(before);
    calls
}

async fn one_after_another(pipe: &mut Pipe, mut template: Template, until: Instant) -> Calls {
    let length = template.answer;
    let mut calls = Calls::default();
    let mut start = Instant::now();
    while start < until {
        let request = template.number(calls.count);
        pipe.input.write_all(request).await.expect("stdin takes a request");
        let before = calls.count;
        while calls.count == before {
            pipe.read().await;
            pipe.lines(|line| {
                answered(line, length);
                calls.count += 1;
            });
        }
        let end = Instant::now();
        calls.nanos.push(u64::try_from((end - start).as_nanos()).unwrap_or(u64::MAX));
        start = end;
    }
    calls
}

async fn many(pipe: &mut Pipe, work: &Work, mut template: Template, until: Instant) -> Calls {
    let length = template.answer;
    let mut calls = Calls::default();
    let (mut sent, mut written, mut pending) = (0, 0, Vec::new());
    while sent < work.in_flight() {
        pending.extend_from_slice(template.number(sent));
        sent += 1;
    }
    while calls.count < sent {
        if written == pending.len() {
            pending.clear();
            written = 0;
            pipe.read().await;
        } else {
            select! {
                count = pipe.input.write(&pending[written..]) => {
                    written += count.expect("stdin takes requests");
                    continue;
                }
                count = pipe.output.read(&mut pipe.buffer[pipe.length..]) => {
                    pipe.length += count.expect("stdout reads");
                }
            }
        }
        let open = Instant::now() < until;
        pipe.lines(|line| {
            answered(line, length);
            calls.count += 1;
            if open {
                pending.extend_from_slice(template.number(sent));
                sent += 1;
            }
        });
    }
    calls
}

/// Starts, lists, idles and closes, all servers at once.
pub async fn start(work: &Work) -> Started {
    let begin = Instant::now();
    let tasks: Vec<_> = (0..work.servers).map(|_| tokio::spawn(listed(Pipe::open(work)))).collect();
    let (mut pipes, mut tools) = (Vec::new(), 0);
    for task in tasks {
        let (pipe, found) = task.await.expect("a server's task ends well");
        pipes.push(pipe);
        tools += found;
    }
    let ready = begin.elapsed();
    let idle_kb = status_kb("VmRSS:");
    let end = Instant::now();
    let children: Vec<_> = pipes.into_iter().map(|pipe| pipe.child).collect();
    for mut child in children {
        let _ = child.wait().await;
    }
    Started { ready, tools, idle_kb, beside_kb: 0, closed: end.elapsed() }
}

async fn listed(mut pipe: Pipe) -> (Pipe, usize) {
    pipe.handshake().await;
    let mut tools = 0;
    for (id, kind) in ["tools", "prompts", "resources"].into_iter().enumerate() {
        let request =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"{kind}/list\"}}\n", id + 1);
        let answer = pipe.ask(&request).await;
        if kind == "tools" {
            let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap_or_default();
            tools = answer["result"]["tools"].as_array().map_or(0, Vec::len);
        }
    }
    (pipe, tools)
}
