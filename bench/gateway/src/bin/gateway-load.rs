//! The load: clients that call one tool in a closed loop, each on its connection.
//!
//! `gateway-load CLIENTS BYTES LENGTH PROGRESS TOOL ADDRESS -- PROGRAM ARGUMENTS` starts the gateway,
//! measures, and prints one line of JSON. `LENGTH` is a time such as `0.5s` or a number of calls such
//! as `1000000`. With `PROGRESS` `sent` each call requests progress, so that the response is an event
//! stream; with `dropped` the client also accepts JSON only, so that the gateway drops the progress;
//! with `none` no call requests progress. `ADDRESS` is the address of the gateway, or `printed` for a
//! gateway that prints its address.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Time before the measurement.
const WARM_UP: Duration = Duration::from_millis(300);

/// Maximum time of the start of a gateway.
const START_TIME: Duration = Duration::from_secs(20);

/// A running gateway, which a drop ends.
struct Gateway {
    child: Child,
    address: String,
}

impl Gateway {
    fn start(command: &[String], address: &str) -> Result<Self, String> {
        let (program, args) = command.split_first().ok_or("no program")?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let (sender, lines) = mpsc::channel();
        let outputs: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|output| Box::new(output) as Box<dyn Read + Send>),
            child.stderr.take().map(|output| Box::new(output) as Box<dyn Read + Send>),
        ];
        for output in outputs.into_iter().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let _ = sender.send(line);
                }
            });
        }
        drop(sender);
        if address != "printed" {
            let gateway = Self { child, address: address.to_owned() };
            return gateway.wait_for_port().map(|()| gateway);
        }
        let mut seen = String::new();
        while let Ok(line) = lines.recv_timeout(START_TIME) {
            if let Some(start) = line.find("127.0.0.1:") {
                let address = line[start..].split(['/', ' ']).next().unwrap_or_default();
                return Ok(Self { child, address: address.to_owned() });
            }
            seen.push_str(&line);
            seen.push('\n');
        }
        Err(format!("{program} printed no address: {seen}"))
    }

    /// Waits until the gateway accepts connections.
    fn wait_for_port(&self) -> Result<(), String> {
        let started = Instant::now();
        while std::net::TcpStream::connect(&self.address).is_err() {
            if started.elapsed() > START_TIME {
                return Err(format!("nobody listens on {}", self.address));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Returns a line of the memory statistics in KiB.
    fn memory(&self, key: &str) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

/// What the clients do about progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    None,
    Sent,
    Dropped,
}

impl Progress {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::None),
            "sent" => Some(Self::Sent),
            "dropped" => Some(Self::Dropped),
            _ => None,
        }
    }

    /// Returns the value of the `Accept` header.
    fn accept(self) -> &'static str {
        match self {
            Self::None | Self::Sent => "application/json, text/event-stream",
            Self::Dropped => "application/json",
        }
    }
}

/// One connection of HTTP/1.1.
struct Connection {
    stream: TcpStream,
    address: String,
    accept: &'static str,
    session: Option<String>,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(address: &str, accept: &'static str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut connection =
            Self { stream, address: address.to_owned(), accept, session: None, buffer: Vec::new() };
        let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "load", "version": "1" },
        }});
        let head = connection.post(&connection.request(&initialize.to_string())).await?;
        connection.session = header(&head, "mcp-session-id").map(ToOwned::to_owned);
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        connection.post(&connection.request(&initialized.to_string())).await?;
        Ok(connection)
    }

    fn request(&self, body: &str) -> Vec<u8> {
        let session = self.session.as_ref();
        let session = session.map(|id| format!("mcp-session-id: {id}\r\n")).unwrap_or_default();
        format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             accept: {}\r\nmcp-protocol-version: 2025-11-25\r\n\
             {session}content-length: {}\r\n\r\n{body}",
            self.address,
            self.accept,
            body.len()
        )
        .into_bytes()
    }

    /// Sends a request and reads its response. The body stays in the buffer; returns the head.
    async fn post(&mut self, request: &[u8]) -> std::io::Result<String> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let head_end = loop {
            if let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n\r\n") {
                break end;
            }
            self.read().await?;
        };
        let head = String::from_utf8_lossy(&self.buffer[..head_end]).into_owned();
        self.buffer.drain(..head_end + 4);
        if let Some(length) = header(&head, "content-length") {
            let length: usize = length.parse().unwrap_or_default();
            while self.buffer.len() < length {
                self.read().await?;
            }
        } else if header(&head, "transfer-encoding").is_some() {
            while !self.buffer.ends_with(b"0\r\n\r\n") {
                self.read().await?;
            }
        }
        Ok(head)
    }

    async fn read(&mut self) -> std::io::Result<()> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

/// Returns the value of a header.
fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

static MEASURING: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicBool = AtomicBool::new(false);
/// The number of responses during the measurement.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// How long a measurement is.
#[derive(Clone, Copy, Debug)]
enum Length {
    Time(Duration),
    Calls(u64),
}

impl Length {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('s') {
            Some(seconds) => {
                Duration::try_from_secs_f64(seconds.parse().ok()?).ok().map(Self::Time)
            }
            None => text.parse().ok().map(Self::Calls),
        }
    }

    async fn wait(self) {
        match self {
            Self::Time(time) => tokio::time::sleep(time).await,
            Self::Calls(calls) => {
                while CALLS.load(Ordering::Relaxed) < calls {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        }
    }
}

/// Calls until the end; returns the latencies in nanoseconds.
async fn run_client(
    address: String,
    accept: &'static str,
    body: String,
    bytes: usize,
) -> Result<Vec<u64>, String> {
    let fail = |error: std::io::Error| error.to_string();
    let mut connection = Connection::open(&address, accept).await.map_err(fail)?;
    let request = connection.request(&body);
    let mut latencies = Vec::with_capacity(1 << 16);
    while !STOPPED.load(Ordering::Relaxed) {
        let start = Instant::now();
        connection.post(&request).await.map_err(fail)?;
        let answer = &connection.buffer;
        if answer.len() < bytes || memchr::memmem::find(answer, b"\"content\"").is_none() {
            return Err(format!("not a result: {}", String::from_utf8_lossy(answer)));
        }
        if MEASURING.load(Ordering::Relaxed) {
            CALLS.fetch_add(1, Ordering::Relaxed);
            latencies.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
    }
    Ok(latencies)
}

async fn measure(
    gateway: &Gateway,
    (clients, bytes, length): (usize, usize, Length),
    progress: Progress,
    tool: &str,
) -> Result<serde_json::Value, String> {
    let message = innkeeper_bench::workload::message_text(bytes);
    let mut params = json!({ "name": tool, "arguments": { "message": message } });
    if progress != Progress::None {
        params["_meta"] = json!({ "progressToken": 1 });
    }
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let running: Vec<_> = (0..clients)
        .map(|_| {
            let (address, accept) = (gateway.address.clone(), progress.accept());
            tokio::spawn(run_client(address, accept, call.to_string(), bytes))
        })
        .collect();
    tokio::time::sleep(WARM_UP).await;
    let memory = gateway.memory("VmRSS");
    MEASURING.store(true, Ordering::Relaxed);
    let start = Instant::now();
    length.wait().await;
    MEASURING.store(false, Ordering::Relaxed);
    let elapsed = start.elapsed().as_secs_f64();
    STOPPED.store(true, Ordering::Relaxed);
    let mut latencies = Vec::new();
    for client in running {
        latencies.extend(client.await.map_err(|error| error.to_string())??);
    }
    latencies.sort_unstable();
    let count = latencies.len();
    let micros = |share: f64| {
        let index = (count as f64 * share) as usize;
        latencies.get(index).map(|nanos| *nanos as f64 / 1e3)
    };
    Ok(json!({
        "per_second": count as f64 / elapsed,
        "p50_us": micros(0.5),
        "p99_us": micros(0.99),
        "peak_rss_kb": gateway.memory("VmHWM"),
        "start_rss_kb": memory,
        "end_rss_kb": gateway.memory("VmRSS"),
    }))
}

fn run() -> Result<serde_json::Value, String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [clients, bytes, length, progress, tool, address, dashes, command @ ..] = &args[..] else {
        return Err("CLIENTS BYTES LENGTH PROGRESS TOOL ADDRESS -- PROGRAM ARGUMENTS".to_owned());
    };
    if dashes != "--" {
        return Err("`--` precedes the program".to_owned());
    }
    let wrong = |value: &String| format!("`{value}` is no number, and no time such as `0.5s`");
    let load = (
        clients.parse().map_err(|_| wrong(clients))?,
        bytes.parse().map_err(|_| wrong(bytes))?,
        Length::parse(length).ok_or_else(|| wrong(length))?,
    );
    let progress = Progress::parse(progress)
        .ok_or_else(|| format!("`{progress}` is not `none`, `sent` or `dropped`"))?;
    let gateway = Gateway::start(command, address)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(measure(&gateway, load, progress, tool))
}

fn main() -> ExitCode {
    match run() {
        Ok(figures) => {
            println!("{figures}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
