//! The raw pipe: the same bytes over the same kind of pipe on tokio, without a client.
//!
//! The loop assumes increasing ids and responses in any order; the loop does not build, decode,
//! check or copy messages. The figures are a lower bound for every client.

use std::hint::black_box;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::select;

use crate::figures::{CallFigures, StartFigures, cpu_time, status_kb};
use crate::json_scan::{find_member, parse_digits};
use crate::workload::{BenchCase, Workload};

/// Number of digits of an id in the request template.
const ID_DIGITS: usize = 9;
/// Capacity for a long response, so that the buffer never grows; unused memory costs nothing.
const READ_BUFFER_BYTES: usize = 2 << 20;
/// Duration of the calls before the measurement.
const WARM_UP_TIME: Duration = Duration::from_millis(150);

struct RawPipe {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    buffer: Vec<u8>,
    length: usize,
    scanned: usize,
}

impl RawPipe {
    fn open(work: &Workload) -> Self {
        let mut child = Command::new(&work.echo_program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("cannot start the echo server");
        let input = child.stdin.take().expect("stdin is not a pipe");
        let output = child.stdout.take().expect("stdout is not a pipe");
        if work.pipe_bytes > 0 {
            // If the kernel rejects the size, the pipe stays as it is; the figures show the
            // difference.
            let _ = rustix::pipe::fcntl_setpipe_size(&input, work.pipe_bytes);
            let _ = rustix::pipe::fcntl_setpipe_size(&output, work.pipe_bytes);
        }
        Self { child, input, output, buffer: vec![0; READ_BUFFER_BYTES], length: 0, scanned: 0 }
    }

    async fn read(&mut self) {
        if self.length == self.buffer.len() {
            self.buffer.resize(self.length * 2, 0);
        }
        let count =
            self.output.read(&mut self.buffer[self.length..]).await.expect("cannot read stdout");
        assert!(count > 0, "the echo server exited");
        self.length += count;
    }

    /// Passes every complete line to `line`, then discards the lines.
    fn drain_lines(&mut self, mut line: impl FnMut(&[u8])) {
        let mut start = 0;
        while let Some(at) = memchr::memchr(b'\n', &self.buffer[self.scanned..self.length]) {
            line(&self.buffer[start..self.scanned + at]);
            self.scanned += at + 1;
            start = self.scanned;
        }
        if start > 0 {
            self.buffer.copy_within(start..self.length, 0);
            self.length -= start;
        }
        self.scanned = self.length;
    }

    async fn request(&mut self, request: &str) -> Vec<u8> {
        self.input.write_all(request.as_bytes()).await.expect("cannot write a request");
        let mut answer = None;
        while answer.is_none() {
            self.read().await;
            self.drain_lines(|line| answer = Some(line.to_vec()));
        }
        answer.unwrap_or_default()
    }

    async fn handshake(&mut self) {
        self.request(concat!(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
            r#""capabilities":{},"clientInfo":{"name":"bare","version":"1"}}}"#,
            "\n"
        ))
        .await;
        self.input
            .write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
            .await
            .expect("cannot write a notification");
    }
}

/// A request line with an id that is replaced in place.
struct RequestTemplate {
    line: Vec<u8>,
    id_offset: usize,
    /// Number of text bytes of a correct response.
    response_len: usize,
}

impl RequestTemplate {
    fn new(case: BenchCase) -> Self {
        let message = serde_json::to_string(&case.message()).unwrap_or_default();
        let bytes = case.bytes().map(|bytes| format!(r#","bytes":{bytes}"#)).unwrap_or_default();
        let head = r#"{"jsonrpc":"2.0","id":"#;
        let line = format!(
            "{head}{:09},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"message\":{message}{bytes}}}}}}}\n",
            0
        );
        Self {
            line: line.into_bytes(),
            id_offset: head.len(),
            response_len: case.response_text_len(),
        }
    }

    fn with_id(&mut self, mut id: usize) -> &[u8] {
        // The first digit stays 1, because a JSON number has no leading zero.
        for at in (1..ID_DIGITS).rev() {
            self.line[self.id_offset + at] = b'0' + u8::try_from(id % 10).unwrap_or(0);
            id /= 10;
        }
        self.line[self.id_offset] = b'1';
        &self.line
    }
}

/// Reads the id of the response, which no client can omit.
fn check_response(line: &[u8], length: usize) {
    assert!(line.len() > length, "incomplete response");
    black_box(parse_digits(find_member(line, b"id").unwrap_or_default()));
}

/// Runs the calls of one case.
pub async fn measure_calls(work: &Workload) -> CallFigures {
    let mut pipe = RawPipe::open(work);
    pipe.handshake().await;
    run_calls(&mut pipe, work, WARM_UP_TIME).await;
    let calls = run_calls(&mut pipe, work, work.duration).await;
    drop(pipe.input);
    let _ = pipe.child.wait().await;
    calls
}

async fn run_calls(pipe: &mut RawPipe, work: &Workload, span: Duration) -> CallFigures {
    let template = RequestTemplate::new(work.case);
    let (before, start) = (cpu_time(), Instant::now());
    let until = start + span;
    let mut calls = if work.in_flight() == 1 {
        run_sequential(pipe, template, until).await
    } else {
        run_concurrent(pipe, work, template, until).await
    };
    calls.wall_time = start.elapsed();
    calls.cpu_time = cpu_time().saturating_sub(before);
    calls
}

async fn run_sequential(
    pipe: &mut RawPipe,
    mut template: RequestTemplate,
    until: Instant,
) -> CallFigures {
    let length = template.response_len;
    let mut calls = CallFigures::default();
    let mut start = Instant::now();
    while start < until {
        let request = template.with_id(calls.count);
        pipe.input.write_all(request).await.expect("cannot write a request");
        let before = calls.count;
        while calls.count == before {
            pipe.read().await;
            pipe.drain_lines(|line| {
                check_response(line, length);
                calls.count += 1;
            });
        }
        let end = Instant::now();
        calls.call_nanos.push(u64::try_from((end - start).as_nanos()).unwrap_or(u64::MAX));
        start = end;
    }
    calls
}

async fn run_concurrent(
    pipe: &mut RawPipe,
    work: &Workload,
    mut template: RequestTemplate,
    until: Instant,
) -> CallFigures {
    let length = template.response_len;
    let mut calls = CallFigures::default();
    let (mut sent, mut written, mut pending) = (0, 0, Vec::new());
    while sent < work.in_flight() {
        pending.extend_from_slice(template.with_id(sent));
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
                    written += count.expect("cannot write requests");
                    continue;
                }
                count = pipe.output.read(&mut pipe.buffer[pipe.length..]) => {
                    pipe.length += count.expect("cannot read stdout");
                }
            }
        }
        let open = Instant::now() < until;
        pipe.drain_lines(|line| {
            check_response(line, length);
            calls.count += 1;
            if open {
                pending.extend_from_slice(template.with_id(sent));
                sent += 1;
            }
        });
    }
    calls
}

/// Starts, lists, idles and closes all servers at once.
pub async fn measure_start(work: &Workload) -> StartFigures {
    let begin = Instant::now();
    let tasks: Vec<_> =
        (0..work.server_count).map(|_| tokio::spawn(list_tools(RawPipe::open(work)))).collect();
    let (mut pipes, mut tools) = (Vec::new(), 0);
    for task in tasks {
        let (pipe, found) = task.await.expect("a server task panicked");
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
    StartFigures { ready_time: ready, tools, idle_kb, supervisors_kb: 0, close_time: end.elapsed() }
}

async fn list_tools(mut pipe: RawPipe) -> (RawPipe, usize) {
    pipe.handshake().await;
    let mut tools = 0;
    for (id, kind) in ["tools", "prompts", "resources"].into_iter().enumerate() {
        let request =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"{kind}/list\"}}\n", id + 1);
        let answer = pipe.request(&request).await;
        if kind == "tools" {
            let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap_or_default();
            tools = answer["result"]["tools"].as_array().map_or(0, Vec::len);
        }
    }
    (pipe, tools)
}
