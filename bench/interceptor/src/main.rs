//! Feeds one text in pieces to one parser, again and again, and prints one JSON line of figures.
//!
//! `interceptor PEER FILE PIECE SECONDS [BESIDE]`: `PIECE` is in bytes. The text is ASCII, so that a
//! piece has as many bytes for everyone. `BESIDE` is a text that ours reads between the pieces of
//! the other, to compare the two.

mod bytes;
mod gateway;
mod ours;

use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

/// What a parser has to be able to do here.
trait Peer {
    /// Reads the whole text in pieces; gives how many bytes it told: of the one call's content
    /// where there is a call, of text otherwise.
    fn read(&mut self, text: &str, piece: usize) -> Result<usize, String>;

    /// What of the last reading went to another text, and how many bytes of that were read.
    fn beside(&self) -> (Duration, usize) {
        (Duration::ZERO, 0)
    }
}

/// Passes of a short text are many.
const PASSES: usize = 2000;

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
        return Err("usage: interceptor PEER FILE PIECE SECONDS [BESIDE]".to_owned());
    };
    let read = |file| fs::read_to_string(file).map_err(|error| format!("`{file}`: {error}"));
    let text = read(file)?;
    let beside = beside.first().map(read).transpose()?;
    let piece: usize = piece.parse().map_err(|_| format!("`{piece}` is no number of bytes"))?;
    let seconds: f64 = seconds.parse().map_err(|_| format!("`{seconds}` is no time"))?;
    if !text.is_ascii() || text.is_empty() || piece == 0 {
        return Err("the text has to be ASCII, and neither it nor a piece empty".to_owned());
    }
    let mut peer: Box<dyn Peer> = match (peer.as_str(), beside) {
        ("innkeeper", Some(beside)) => Box::new(ours::Ours::with_beside(text.len(), beside)),
        (name, beside) => by_name(name, beside.is_some(), text.len())?,
    };
    let before = status_kb("VmRSS:");
    let mut growth = 0;
    let mut passes = Vec::new();
    let span = Duration::from_secs_f64(seconds);
    let begun = Instant::now();
    let (mut told, mut other, mut other_bytes) = (0, Duration::ZERO, 0);
    while passes.is_empty() || begun.elapsed() < span && passes.len() < PASSES {
        let from = processor_time();
        told = peer.read(&text, piece)?;
        let pass = processor_time().saturating_sub(from);
        let (spent, bytes) = peer.beside();
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
        "to_beside": (other_bytes > 0).then_some(all / other),
        "growth_kb": growth,
        "told": told,
    });
    Ok(line.to_string())
}

fn by_name(name: &str, beside: bool, bytes: usize) -> Result<Box<dyn Peer>, String> {
    if beside {
        return Err(format!("`{name}` reads nothing beside"));
    }
    Ok(match name {
        "innkeeper" => Box::new(ours::Ours::new(bytes)),
        "innkeeper-default" => Box::new(ours::Ours::with_default_limits()),
        "memchr" => Box::new(bytes::Memchr),
        "memchr3" => Box::new(bytes::Memchr3),
        "tool-parser" => Box::new(gateway::Gateway::new()?),
        _ => return Err(format!("`{name}` is no peer")),
    })
}

/// The pieces of an ASCII text.
fn pieces(text: &str, piece: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (head, tail) = rest.split_at(piece.min(rest.len()));
        rest = tail;
        (!head.is_empty()).then_some(head)
    })
}

/// Processor time of this process. On a shared machine a long pass is interrupted by others and a
/// short one is not: by the clock the two could not be compared.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// One `kB` line of this process' status.
fn status_kb(key: &str) -> u64 {
    fs::read_to_string("/proc/self/status")
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
