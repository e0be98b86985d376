//! The workload of a benchmark client and its command line.

use std::path::PathBuf;
use std::time::Duration;

/// Length of a short message in bytes.
const SHORT_MESSAGE_BYTES: usize = 100;
/// Length of a medium message in bytes.
const MEDIUM_MESSAGE_BYTES: usize = 10_000;
/// Length of a long result in bytes.
const LONG_RESULT_BYTES: usize = 1_000_000;
/// Length of the longest result in bytes.
const LONGEST_RESULT_BYTES: usize = 10_000_000;

/// Maximum pipe size of an unprivileged user in bytes.
const DEFAULT_PIPE_BYTES: usize = 1 << 20;

/// The load of a benchmark.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BenchCase {
    /// 100 bytes per message and result, one call at a time.
    Sequential,
    /// As `Sequential`; client and server use all CPUs.
    Unpinned,
    /// 100 bytes per message and result, fifty calls in flight.
    Concurrent,
    /// 100 bytes per message and result, 500 calls in flight over ten servers.
    ManyServers,
    /// A message of ten kilobytes and the same result, one call at a time.
    MediumMessage,
    /// A short request with a result of one megabyte of text.
    LargeResult,
    /// A short request with a result of ten megabytes of text.
    LargestResult,
    /// A message of one megabyte and the same result, which the caller passes on as it is.
    LargeMessage,
    /// Start of the servers, lists, idle time, shutdown.
    Start,
}

/// The transport to the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Transport {
    /// A child process with pipes.
    Stdio,
    /// Streamable HTTP with JSON responses.
    HttpJson,
    /// Streamable HTTP; each response is an SSE stream of one event.
    HttpEvents,
}

/// The workload of one client process.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The name of the load on the command line.
    pub name: String,
    /// The load.
    pub case: BenchCase,
    /// The transport to the server.
    pub transport: Transport,
    /// Whether calls run on a multi-thread runtime.
    pub multi_thread: bool,
    /// The duration of the measurement.
    pub duration: Duration,
    /// The number of servers of the start case.
    pub server_count: usize,
    /// The pipe size in bytes that the raw pipe requests; zero keeps the default of the kernel.
    ///
    /// By default the maximum for an unprivileged user, which the host also requests: a lower bound
    /// must not have a smaller pipe.
    pub pipe_bytes: usize,
    /// Whether the host logs each call.
    pub log_calls: bool,
    /// The program of the echo server; the HTTP echo server is in the same directory.
    pub echo_program: PathBuf,
}

impl Workload {
    /// Parses `--name value` pairs.
    ///
    /// # Errors
    ///
    /// A message that names the missing or invalid argument.
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut work = Self {
            name: "sequential".to_owned(),
            case: BenchCase::Sequential,
            transport: Transport::Stdio,
            multi_thread: false,
            duration: Duration::from_secs(1),
            server_count: 20,
            pipe_bytes: DEFAULT_PIPE_BYTES,
            log_calls: true,
            echo_program: PathBuf::new(),
        };
        for pair in arguments.chunks(2) {
            let [name, value] = pair else { return Err(format!("`{}` needs a value", pair[0])) };
            let wrong = || format!("invalid value `{value}` for `{name}`");
            match name.as_str() {
                "--case" => {
                    (work.case, work.transport) = from_name(value).ok_or_else(wrong)?;
                    work.name.clone_from(value);
                }
                "--runtime" => work.multi_thread = value == "multi",
                "--seconds" => {
                    work.duration = Duration::from_secs_f64(value.parse().map_err(|_| wrong())?);
                }
                "--servers" => work.server_count = value.parse().map_err(|_| wrong())?,
                "--pipe" => work.pipe_bytes = value.parse().map_err(|_| wrong())?,
                "--log" => work.log_calls = value != "off",
                "--echo" => work.echo_program = PathBuf::from(value),
                _ => return Err(format!("unknown argument `{name}`")),
            }
        }
        if work.echo_program.as_os_str().is_empty() {
            return Err("`--echo` with the path of the echo server is required".to_owned());
        }
        Ok(work)
    }

    /// The number of concurrent calls.
    pub fn in_flight(&self) -> usize {
        match self.case {
            BenchCase::Concurrent => 50,
            BenchCase::ManyServers => 500,
            _ => 1,
        }
    }

    /// Whether the client and its servers run on one CPU.
    ///
    /// With two CPUs, the duration of a call is the wake-up time of the other CPU, which in a virtual
    /// machine is ten times the measured duration. Many calls in flight on several threads keep all
    /// CPUs awake.
    pub fn is_pinned(&self) -> bool {
        let keeps_cpus_awake = self.multi_thread && self.in_flight() > 1;
        !keeps_cpus_awake && !matches!(self.case, BenchCase::Unpinned | BenchCase::Start)
    }

    /// The number of servers that get the calls.
    pub fn called_servers(&self) -> usize {
        if self.case == BenchCase::ManyServers { 10 } else { 1 }
    }
}

/// The load and the transport of a name on the command line.
fn from_name(name: &str) -> Option<(BenchCase, Transport)> {
    Some(match name {
        "sequential" => (BenchCase::Sequential, Transport::Stdio),
        "unpinned" => (BenchCase::Unpinned, Transport::Stdio),
        "flight" => (BenchCase::Concurrent, Transport::Stdio),
        "servers" => (BenchCase::ManyServers, Transport::Stdio),
        "medium" => (BenchCase::MediumMessage, Transport::Stdio),
        "result" => (BenchCase::LargeResult, Transport::Stdio),
        "largest-result" => (BenchCase::LargestResult, Transport::Stdio),
        "message" => (BenchCase::LargeMessage, Transport::Stdio),
        "start" => (BenchCase::Start, Transport::Stdio),
        "http" => (BenchCase::Sequential, Transport::HttpJson),
        "http-events" => (BenchCase::Sequential, Transport::HttpEvents),
        "http-flight" => (BenchCase::Concurrent, Transport::HttpJson),
        "http-result" => (BenchCase::LargeResult, Transport::HttpJson),
        _ => return None,
    })
}

impl BenchCase {
    /// The `message` argument of a call.
    pub fn message(self) -> String {
        message_text(self.message_len())
    }

    fn message_len(self) -> usize {
        match self {
            Self::Sequential | Self::Unpinned | Self::Concurrent | Self::ManyServers => {
                SHORT_MESSAGE_BYTES
            }
            Self::MediumMessage => MEDIUM_MESSAGE_BYTES,
            Self::LargeMessage => LONG_RESULT_BYTES,
            Self::LargeResult | Self::LargestResult | Self::Start => 0,
        }
    }

    /// The `bytes` argument of a call, if the case has one.
    pub fn bytes(self) -> Option<usize> {
        match self {
            Self::LargeResult => Some(LONG_RESULT_BYTES),
            Self::LargestResult => Some(LONGEST_RESULT_BYTES),
            Self::Sequential
            | Self::Unpinned
            | Self::Concurrent
            | Self::ManyServers
            | Self::MediumMessage
            | Self::LargeMessage
            | Self::Start => None,
        }
    }

    /// Whether the caller reads the text of a result. A client that cannot pass a result on decodes
    /// it anyway.
    pub fn reads_text(self) -> bool {
        self != Self::LargeMessage
    }

    /// The number of text bytes of a correct response.
    pub fn response_text_len(self) -> usize {
        self.bytes().unwrap_or_else(|| self.message_len())
    }
}

/// Text of `length` bytes with a newline every 100 bytes, so that JSON must escape characters.
pub fn message_text(length: usize) -> String {
    const LETTERS: &[u8] = b"etaoin shrdlu cmfwyp vbgkjq xz ";
    (1..=length)
        .map(|at| if at % 100 == 0 { '\n' } else { char::from(LETTERS[at % LETTERS.len()]) })
        .collect()
}
