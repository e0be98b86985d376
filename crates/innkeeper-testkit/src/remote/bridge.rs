//! One fixture server behind a remote one: messages in as lines, lines out to their streams.

use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::fault::Act;
use super::routes::{Entry, Out, Routes};
use super::tasks::Tasks;
use crate::Fixture;

/// Messages on their way in either direction before whoever sends them waits.
const IN_FLIGHT: usize = 64;

/// Longest line of a fixture server, so that none fills the memory; more than any test sends.
const LONGEST_LINE: u64 = 512 * 1024 * 1024;

/// A running fixture server and the streams of its conversation.
///
/// A stream that nobody reads holds up the others once 64 messages wait for it.
#[derive(Debug)]
pub(super) struct Bridge {
    input: Sender<Bytes>,
    routes: Arc<Mutex<Routes>>,
    child: Mutex<Child>,
    serial: AtomicU64,
}

impl Bridge {
    /// Starts a fixture server.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    pub(super) fn start(fixture: &Fixture, tasks: &Tasks) -> Arc<Self> {
        let mut command = tokio::process::Command::from(fixture.command());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.process_group(0).kill_on_drop(true).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("innkeeper-fx: {error}"));
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (input, lines) = channel(IN_FLIGHT);
        let routes = Arc::new(Mutex::new(Routes::default()));
        if let (Some(stdin), Some(stdout)) = (stdin, stdout) {
            tasks.spawn(write_lines(stdin, lines));
            tasks.spawn(read_lines(stdout, Arc::clone(&routes)));
        }
        let serial = AtomicU64::new(0);
        Arc::new(Self { input, routes, child: Mutex::new(child), serial })
    }

    /// Whether the fixture server says nothing more.
    pub(super) fn has_ended(&self) -> bool {
        lock(&self.routes).has_ended()
    }

    /// The process id while it has not been waited for.
    pub(super) fn pid(&self) -> Option<u32> {
        lock(&self.child).id()
    }

    /// Hands a message to the fixture server; waits while it reads none.
    pub(super) async fn send(&self, message: Bytes) {
        // One that has ended loses what it is sent, as over any connection.
        drop(self.input.send(message).await);
    }

    /// Takes note of a request about to be sent: its answer comes on a stream of its own.
    pub(super) fn open(&self, request: &Value, manner: &Manner) -> Open {
        let (to, lines) = channel(IN_FLIGHT);
        let serial = self.register(request, manner, Some(to));
        let id = request["id"].clone();
        let cancel = manner.cancels.then(|| (self.input.clone(), id));
        Open { lines, routes: Arc::clone(&self.routes), serial, cancel }
    }

    /// Takes note of a request whose answer comes where everything comes.
    pub(super) fn note(&self, request: &Value, act: Option<Act>) {
        self.register(request, &Manner { act, ..Manner::default() }, None);
    }

    /// Opens the stream for what belongs to no request.
    pub(super) fn open_general(&self) -> (Vec<Out>, Receiver<Out>) {
        let (to, lines) = channel(IN_FLIGHT);
        (lock(&self.routes).open_general(to), lines)
    }

    /// Kills the process group at once.
    pub(super) fn kill(&self) {
        let mut child = lock(&self.child);
        // Nobody has waited for it while it has an id, so the group is still its own.
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = group {
            // Who has ended and was not waited for cannot be killed, and need not be.
            let _ = kill_process_group(group, Signal::KILL);
            drop(child.start_kill());
        }
    }

    /// Kills the process group and waits until the fixture server is gone.
    pub(super) async fn gone(&self) {
        self.kill();
        while matches!(lock(&self.child).try_wait(), Ok(None)) {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    }

    fn register(&self, request: &Value, manner: &Manner, to: Option<Sender<Out>>) -> u64 {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        lock(&self.routes).add(Entry {
            serial,
            id: request["id"].clone(),
            token: request.pointer("/params/_meta/progressToken").cloned(),
            listens: request["method"] == "subscriptions/listen",
            single: manner.single,
            to,
            act: manner.act.clone(),
        });
        serial
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a request is answered.
#[derive(Debug, Default)]
pub(super) struct Manner {
    /// By one message alone.
    pub(super) single: bool,
    /// What goes wrong with the answer.
    pub(super) act: Option<Act>,
    /// Whether it is cancelled when its stream is closed before the answer.
    pub(super) cancels: bool,
}

/// A request on its way through a fixture server; dropped, it waits for its answer no more.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) lines: Receiver<Out>,
    routes: Arc<Mutex<Routes>>,
    serial: u64,
    cancel: Option<(Sender<Bytes>, Value)>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let unanswered = lock(&self.routes).remove(self.serial);
        if let (true, Some((input, id))) = (unanswered, &self.cancel) {
            let params = json!({"requestId": id});
            let method = "notifications/cancelled";
            let text = json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
            // One that reads nothing would not read this either.
            drop(input.try_send(Bytes::from(text)));
        }
    }
}

async fn write_lines(mut stdin: ChildStdin, mut lines: Receiver<Bytes>) {
    while let Some(line) = lines.recv().await {
        // A message over several lines is one line to a fixture server.
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
        let read = (&mut output).take(LONGEST_LINE).read_until(b'\n', &mut line).await;
        if !matches!(read, Ok(1..)) {
            break;
        }
        while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            line.pop();
        }
        let routed = lock(&routes).route(Bytes::from(line));
        if let Some((to, out)) = routed {
            // A stream that was closed meanwhile loses it.
            drop(to.send(out).await);
        }
    }
    lock(&routes).end();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
