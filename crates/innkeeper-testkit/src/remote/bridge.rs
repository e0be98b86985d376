//! The bridge between a remote server and its fixture server.

use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::fault::FaultAction;
use super::routes::{OutboundMessage, RequestRoute, Routes};
use super::tasks::ServerTasks;
use crate::Fixture;

/// Maximum number of queued messages per direction.
const CHANNEL_CAPACITY: usize = 64;

/// Maximum line length of a fixture server in bytes; more than any test sends.
const MAX_LINE_BYTES: u64 = 512 * 1024 * 1024;

/// A running fixture server with the streams of its session.
///
/// A stream without a reader blocks the other streams after 64 queued messages.
#[derive(Debug)]
pub(super) struct Bridge {
    input: Sender<Bytes>,
    routes: Arc<Mutex<Routes>>,
    child: Mutex<Child>,
    next_serial: AtomicU64,
}

impl Bridge {
    /// Starts a fixture server.
    ///
    /// # Panics
    ///
    /// If the start fails.
    pub(super) fn start(fixture: &Fixture, tasks: &ServerTasks) -> Arc<Self> {
        let mut command = tokio::process::Command::from(fixture.command());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.process_group(0).kill_on_drop(true).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("innkeeper-fixture-server: {error}"));
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let (input, lines) = channel(CHANNEL_CAPACITY);
        let routes = Arc::new(Mutex::new(Routes::default()));
        if let (Some(stdin), Some(stdout)) = (stdin, stdout) {
            tasks.spawn(write_lines(stdin, lines));
            tasks.spawn(read_lines(stdout, Arc::clone(&routes)));
        }
        let next_serial = AtomicU64::new(0);
        Arc::new(Self { input, routes, child: Mutex::new(child), next_serial })
    }

    /// Whether the output of the fixture server has ended.
    pub(super) fn has_ended(&self) -> bool {
        lock(&self.routes).has_ended()
    }

    /// The process id, until the process is reaped.
    pub(super) fn pid(&self) -> Option<u32> {
        lock(&self.child).id()
    }

    /// Sends a message to the fixture server; waits while the server does not read.
    pub(super) async fn send(&self, message: Bytes) {
        // An exited server loses the message, as over any connection.
        let _ = self.input.send(message).await;
    }

    /// Registers a request before it is sent; its response arrives on a separate stream.
    pub(super) fn open_request(&self, request: &Value, manner: &ReplyMode) -> OpenRequest {
        let (to, lines) = channel(CHANNEL_CAPACITY);
        let serial = self.register(request, manner, Some(to));
        let id = request["id"].clone();
        let cancel = manner.cancel_on_close.then(|| (self.input.clone(), id));
        OpenRequest { lines, routes: Arc::clone(&self.routes), serial, cancel }
    }

    /// Registers a request whose response arrives on the general stream.
    pub(super) fn register_request(&self, request: &Value, action: Option<FaultAction>) {
        self.register(request, &ReplyMode { fault: action, ..ReplyMode::default() }, None);
    }

    /// Opens the stream for messages that belong to no request.
    pub(super) fn open_general_stream(&self) -> (Vec<OutboundMessage>, Receiver<OutboundMessage>) {
        let (to, lines) = channel(CHANNEL_CAPACITY);
        (lock(&self.routes).open_general_stream(to), lines)
    }

    /// Kills the process group at once.
    pub(super) fn kill(&self) {
        let mut child = lock(&self.child);
        // The process is not reaped while it has an id, so the group id is still valid.
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = group {
            // An exited process that is not reaped cannot be killed.
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.start_kill();
        }
    }

    /// Kills the process group and waits for the exit of the fixture server.
    pub(super) async fn kill_and_wait(&self) {
        self.kill();
        while matches!(lock(&self.child).try_wait(), Ok(None)) {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    }

    fn register(
        &self,
        request: &Value,
        manner: &ReplyMode,
        sender: Option<Sender<OutboundMessage>>,
    ) -> u64 {
        let serial = self.next_serial.fetch_add(1, Ordering::Relaxed);
        lock(&self.routes).add(RequestRoute {
            serial,
            id: request["id"].clone(),
            progress_token: request.pointer("/params/_meta/progressToken").cloned(),
            is_subscription: request["method"] == "subscriptions/listen",
            single_message: manner.single_message,
            sender,
            fault: manner.fault.clone(),
        });
        serial
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The way a request is answered.
#[derive(Debug, Default)]
pub(super) struct ReplyMode {
    pub(super) single_message: bool,
    pub(super) fault: Option<FaultAction>,
    /// Whether a closed stream cancels the request.
    pub(super) cancel_on_close: bool,
}

/// A request in progress; a drop stops the wait for its response.
#[derive(Debug)]
pub(super) struct OpenRequest {
    pub(super) lines: Receiver<OutboundMessage>,
    routes: Arc<Mutex<Routes>>,
    serial: u64,
    cancel: Option<(Sender<Bytes>, Value)>,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let unanswered = lock(&self.routes).remove(self.serial);
        if let (true, Some((input, id))) = (unanswered, &self.cancel) {
            let params = json!({"requestId": id});
            let method = "notifications/cancelled";
            let text = json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
            // A server that does not read would not read the notification either.
            let _ = input.try_send(Bytes::from(text));
        }
    }
}

async fn write_lines(mut stdin: ChildStdin, mut lines: Receiver<Bytes>) {
    while let Some(line) = lines.recv().await {
        // A fixture server needs a message over several lines as one line.
        let mut line: Vec<u8> = line
            .iter()
            .map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte })
            .collect();
        line.push(b'\n');
        if stdin.write_all(&line).await.is_err() {
            return;
        }
    }
}

async fn read_lines(stdout: ChildStdout, routes: Arc<Mutex<Routes>>) {
    let mut output = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let read = (&mut output).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await;
        if !matches!(read, Ok(1..)) {
            break;
        }
        while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            line.pop();
        }
        let routed = lock(&routes).route(Bytes::from(line));
        if let Some((to, out)) = routed {
            // A stream that closed in the meantime loses the message.
            let _ = to.send(out).await;
        }
    }
    lock(&routes).end();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
