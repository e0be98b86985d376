//! Parses one text in chunks repeatedly and prints one JSON line of figures.
//!
//! `parser PARSER FILE CHUNK SECONDS [REFERENCE]`: `CHUNK` is a number of bytes. The text is ASCII,
//! so that a chunk has the same number of bytes in every parser. `REFERENCE` is a text that
//! Innkeeper parses between the chunks of the other text, for a comparison of the two.

mod byte_search;
mod innkeeper_parser;
mod tool_parser;

use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

/// A parser of the benchmark.
trait BenchParser {
    /// Parses the whole text in chunks; returns the number of reported bytes: of the call's content
    /// if the text has a call, else of the visible text.
    fn parse(&mut self, text: &str, piece: usize) -> Result<usize, String>;

    /// CPU time and number of bytes of the reference text in the last pass.
    fn reference_time(&self) -> (Duration, usize) {
        (Duration::ZERO, 0)
    }
}

/// Maximum number of passes over a short text.
const MAX_PASSES: usize = 2000;

fn main() -> ExitCode {
    match measure() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

fn measure() -> Result<String, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [peer, file, piece, seconds, beside @ ..] = arguments.as_slice() else {
        return Err("usage: parser PARSER FILE CHUNK SECONDS [REFERENCE]".to_owned());
    };
    let read = |file| fs::read_to_string(file).map_err(|error| format!("`{file}`: {error}"));
    let text = read(file)?;
    let beside = beside.first().map(read).transpose()?;
    let piece: usize = piece.parse().map_err(|_| format!("invalid number of bytes `{piece}`"))?;
    let seconds: f64 = seconds.parse().map_err(|_| format!("invalid duration `{seconds}`"))?;
    if !text.is_ascii() || text.is_empty() || piece == 0 {
        return Err(
            "the text must be ASCII, and neither the text nor a chunk may be empty".to_owned()
        );
    }
    let mut peer: Box<dyn BenchParser> = match (peer.as_str(), beside) {
        ("innkeeper", Some(beside)) => {
            Box::new(innkeeper_parser::InnkeeperParser::with_reference_text(text.len(), beside))
        }
        (name, beside) => parser_by_name(name, beside.is_some(), text.len())?,
    };
    let before = status_kb("VmRSS:");
    let mut growth = 0;
    let mut passes = Vec::new();
    let span = Duration::from_secs_f64(seconds);
    let begun = Instant::now();
    let (mut seen_bytes, mut other, mut other_bytes) = (0, Duration::ZERO, 0);
    while passes.is_empty() || begun.elapsed() < span && passes.len() < MAX_PASSES {
        let from = cpu_time();
        seen_bytes = peer.parse(&text, piece)?;
        let pass = cpu_time().saturating_sub(from);
        let (spent, bytes) = peer.reference_time();
        let pass = pass.saturating_sub(spent);
        other += spent;
        other_bytes += bytes;
        if passes.is_empty() {
            growth = status_kb("VmHWM:").saturating_sub(before);
        }
        passes.push(pass);
    }
    let all = passes.iter().sum::<Duration>().as_secs_f64() / (passes.len() * text.len()) as f64;
    let other = other.as_secs_f64() / other_bytes as f64;
    passes.sort_unstable();
    let pass = passes[passes.len() / 2].as_secs_f64().max(1e-9);
    let line = json!({
        "ms": pass * 1e3,
        "ns_per_byte": pass * 1e9 / text.len() as f64,
        "mb_per_second": text.len() as f64 / pass / 1e6,
        "to_reference": (other_bytes > 0).then_some(all / other),
        "growth_kb": growth,
        "seen_bytes": seen_bytes,
    });
    Ok(line.to_string())
}

fn parser_by_name(name: &str, beside: bool, bytes: usize) -> Result<Box<dyn BenchParser>, String> {
    if beside {
        return Err(format!("`{name}` takes no reference text"));
    }
    Ok(match name {
        "innkeeper" => Box::new(innkeeper_parser::InnkeeperParser::new(bytes)),
        "innkeeper-default" => Box::new(innkeeper_parser::InnkeeperParser::with_default_limits()),
        "memchr" => Box::new(byte_search::MemchrSearch),
        "memchr3" => Box::new(byte_search::Memchr3Search),
        "tool-parser" => Box::new(tool_parser::ToolParserCrate::new()?),
        _ => return Err(format!("unknown parser `{name}`")),
    })
}

/// Splits an ASCII text into chunks.
fn chunks(text: &str, piece: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (head, tail) = rest.split_at(piece.min(rest.len()));
        rest = tail;
        (!head.is_empty()).then_some(head)
    })
}

/// The CPU time of this process. Other programs of a shared machine interrupt long passes more
/// often than short ones, so that wall-clock times could not be compared.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The value of a `kB` line in `/proc/self/status`.
fn status_kb(key: &str) -> u64 {
    fs::read_to_string("/proc/self/status")
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
