//! The limit of a gateway: an HTTP handler that writes the request to the pipe of one stdio server
//! and returns what comes back. It changes ids, and decodes, checks and records nothing.

use std::collections::HashMap;
use std::convert::Infallible;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use innkeeper_bench::json_scan::find_member;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

/// Size of the read buffer.
const READ_BUFFER_BYTES: usize = 1 << 20;

/// The id of the client, and where the response goes.
type Pending = (Bytes, oneshot::Sender<Bytes>);

/// The pipe to the server.
struct Pipe {
    lines: mpsc::UnboundedSender<Vec<u8>>,
    pending: Mutex<HashMap<u64, Pending>>,
    next: AtomicU64,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> std::io::Result<()> {
    let program = std::env::args().nth(1).unwrap_or_default();
    let mut server = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (Some(stdin), Some(stdout)) = (server.stdin.take(), server.stdout.take()) else {
        return Ok(());
    };
    let (lines, queue) = mpsc::unbounded_channel();
    let pipe = Pipe { lines, pending: Mutex::default(), next: AtomicU64::new(1) };
    let pipe = Arc::new(pipe);
    tokio::spawn(write(queue, stdin));
    tokio::spawn(read(pipe.clone(), stdout));
    innkeeper_bench_gateway::serve(service_fn(move |request| handle(pipe.clone(), request))).await
}

async fn write(mut queue: mpsc::UnboundedReceiver<Vec<u8>>, mut stdin: ChildStdin) {
    while let Some(mut lines) = queue.recv().await {
        while let Ok(line) = queue.try_recv() {
            lines.extend_from_slice(&line);
        }
        if stdin.write_all(&lines).await.is_err() {
            return;
        }
    }
}

async fn read(pipe: Arc<Pipe>, mut stdout: ChildStdout) {
    let mut buffer = Vec::with_capacity(READ_BUFFER_BYTES);
    while stdout.read_buf(&mut buffer).await.is_ok_and(|count| count > 0) {
        let mut start = 0;
        while let Some(end) = memchr::memchr(b'\n', &buffer[start..]) {
            pipe.respond(&buffer[start..start + end]);
            start += end + 1;
        }
        buffer.drain(..start);
    }
}

impl Pipe {
    fn pending(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a response to its request.
    fn respond(&self, line: &[u8]) {
        let Some(id) = find_member(line, b"id") else { return };
        let number = std::str::from_utf8(id).ok().and_then(|id| id.parse().ok());
        let Some((client_id, response)) = number.and_then(|id| self.pending().remove(&id)) else {
            return;
        };
        let _ = response.send(with_id(line, id, &client_id).into());
    }
}

/// Returns the message with another id.
fn with_id(message: &[u8], id: &[u8], new: &[u8]) -> Vec<u8> {
    // `id` is a part of `message`.
    let start = id.as_ptr() as usize - message.as_ptr() as usize;
    [&message[..start], new, &message[start + id.len()..]].concat()
}

async fn handle(
    pipe: Arc<Pipe>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::default());
    let Ok(body) = request.into_body().collect().await else {
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(response);
    };
    let body = body.to_bytes();
    let Some(id) = find_member(&body, b"id") else {
        *response.status_mut() = StatusCode::ACCEPTED;
        return Ok(response);
    };
    let number = pipe.next.fetch_add(1, Ordering::Relaxed);
    let (sender, receiver) = oneshot::channel();
    pipe.pending().insert(number, (body.slice_ref(id), sender));
    let mut line = with_id(&body, id, number.to_string().as_bytes());
    line.push(b'\n');
    let _ = pipe.lines.send(line);
    match receiver.await {
        Ok(answer) => *response.body_mut() = Full::new(answer),
        Err(_) => *response.status_mut() = StatusCode::BAD_GATEWAY,
    }
    let kind = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}
