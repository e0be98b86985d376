//! The work every client is given, and how the command line says it.

use std::path::PathBuf;
use std::time::Duration;

/// Bytes of a short message.
const SHORT: usize = 100;
/// Bytes of a long result.
const LONG: usize = 1_000_000;

/// What a pipe of an ordinary user holds at most.
const PIPE: usize = 1 << 20;

/// One shape of load.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Case {
    /// 100 bytes there and back, one call at a time.
    Sequential,
    /// 100 bytes there and back, fifty calls in flight.
    Flight,
    /// A short request answered by one megabyte of text.
    Result,
    /// One megabyte there and back.
    Message,
    /// Start the servers, list what they offer, idle, close.
    Start,
}

/// How the server is reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Over {
    /// A child process and its pipes.
    Pipes,
    /// Streamable HTTP, answers as JSON.
    Json,
    /// Streamable HTTP, each answer as a stream of one event.
    Events,
}

/// The work of one process.
#[derive(Clone, Debug)]
pub struct Work {
    /// What the command line calls the load.
    pub name: String,
    /// The shape of the load.
    pub case: Case,
    /// How the server is reached.
    pub over: Over,
    /// Whether calls run on a multi-thread runtime.
    pub threads: bool,
    /// How long calls are counted.
    pub span: Duration,
    /// How many servers the start case starts.
    pub servers: usize,
    /// Bytes the bare loop asks its pipes to hold; zero leaves them alone. By default as many as
    /// an ordinary user gets, which is what the host asks for: a limit has no smaller pipe.
    pub pipe: usize,
    /// Whether our host logs each call.
    pub log: bool,
    /// The echo server's program; the one that serves HTTP is beside it.
    pub echo: PathBuf,
}

impl Work {
    /// Reads `--name value` pairs.
    ///
    /// # Errors
    ///
    /// A sentence naming the argument that is missing or not understood.
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut work = Self {
            name: "sequential".to_owned(),
            case: Case::Sequential,
            over: Over::Pipes,
            threads: false,
            span: Duration::from_secs(1),
            servers: 20,
            pipe: PIPE,
            log: true,
            echo: PathBuf::new(),
        };
        for pair in arguments.chunks(2) {
            let [name, value] = pair else { return Err(format!("`{}` needs a value", pair[0])) };
            let wrong = || format!("`{name}` does not take `{value}`");
            match name.as_str() {
                "--case" => {
                    (work.case, work.over) = named(value).ok_or_else(wrong)?;
                    work.name.clone_from(value);
                }
                "--runtime" => work.threads = value == "multi",
                "--seconds" => {
                    work.span = Duration::from_secs_f64(value.parse().map_err(|_| wrong())?);
                }
                "--servers" => work.servers = value.parse().map_err(|_| wrong())?,
                "--pipe" => work.pipe = value.parse().map_err(|_| wrong())?,
                "--log" => work.log = value != "off",
                "--echo" => work.echo = PathBuf::from(value),
                _ => return Err(format!("`{name}` is not an argument of this program")),
            }
        }
        if work.echo.as_os_str().is_empty() {
            return Err("`--echo` names the echo server".to_owned());
        }
        Ok(work)
    }

    /// Calls kept in flight.
    pub fn in_flight(&self) -> usize {
        if self.case == Case::Flight { 50 } else { 1 }
    }
}

/// A load, and over what, by the word of the command line.
fn named(name: &str) -> Option<(Case, Over)> {
    Some(match name {
        "sequential" => (Case::Sequential, Over::Pipes),
        "flight" => (Case::Flight, Over::Pipes),
        "result" => (Case::Result, Over::Pipes),
        "message" => (Case::Message, Over::Pipes),
        "start" => (Case::Start, Over::Pipes),
        "http" => (Case::Sequential, Over::Json),
        "http-events" => (Case::Sequential, Over::Events),
        "http-flight" => (Case::Flight, Over::Json),
        "http-result" => (Case::Result, Over::Json),
        _ => return None,
    })
}

impl Case {
    /// The `message` argument of a call.
    pub fn message(self) -> String {
        match self {
            Self::Sequential | Self::Flight => prose(SHORT),
            Self::Message => prose(LONG),
            Self::Result | Self::Start => String::new(),
        }
    }

    /// The `bytes` argument of a call, where it has one.
    pub fn bytes(self) -> Option<usize> {
        (self == Self::Result).then_some(LONG)
    }

    /// Bytes of text that a right answer holds.
    pub fn answer_length(self) -> usize {
        self.bytes().unwrap_or_else(|| self.message().len())
    }
}

/// Text of `length` bytes whose every hundredth is a newline, so that JSON has something to escape.
pub fn prose(length: usize) -> String {
    const LETTERS: &[u8] = b"etaoin shrdlu cmfwyp vbgkjq xz ";
    (1..=length)
        .map(|at| if at % 100 == 0 { '\n' } else { char::from(LETTERS[at % LETTERS.len()]) })
        .collect()
}
