//! What is measured: cases, and the clients that meet in each.

/// One client in one case.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) case: &'static str,
    pub(super) peer: &'static str,
    pub(super) runtime: &'static str,
}

impl Entry {
    /// Whether it is our host.
    pub(super) fn is_ours(&self) -> bool {
        self.peer == OURS
    }
}

pub(super) const BARE: &str = "bare";
pub(super) const SDK: &str = "rmcp";
pub(super) const OURS: &str = "innkeeper";

macro_rules! entries {
    ($case:literal) => {
        &[
            Entry { case: $case, peer: BARE, runtime: "current" },
            Entry { case: $case, peer: SDK, runtime: "current" },
            Entry { case: $case, peer: OURS, runtime: "current" },
            Entry { case: $case, peer: BARE, runtime: "multi" },
            Entry { case: $case, peer: SDK, runtime: "multi" },
            Entry { case: $case, peer: OURS, runtime: "multi" },
        ]
    };
}

/// Over HTTP there is no bare loop: an HTTP client is what a client over HTTP begins with.
macro_rules! http_entries {
    ($case:literal) => {
        &[
            Entry { case: $case, peer: SDK, runtime: "current" },
            Entry { case: $case, peer: OURS, runtime: "current" },
            Entry { case: $case, peer: SDK, runtime: "multi" },
            Entry { case: $case, peer: OURS, runtime: "multi" },
        ]
    };
}

/// Every case with those who meet in it.
pub(super) const PLAN: &[&[Entry]] = &[
    entries!("sequential"),
    entries!("flight"),
    entries!("result"),
    entries!("message"),
    entries!("start"),
    http_entries!("http"),
    http_entries!("http-events"),
    http_entries!("http-flight"),
    http_entries!("http-result"),
];

/// The words for a case and the figures people want of it: name in the line, heading, divisor.
pub(super) fn words(case: &str) -> (&'static str, &'static [Figure]) {
    match case {
        "sequential" => ("100 B, one at a time", &[MICROS, CPU]),
        "flight" => ("100 B, 50 in flight", &[RATE, CPU]),
        "result" => ("1 MB result", &[MILLIS, PEAK]),
        "message" => ("1 MB there and back", &[MILLIS, PEAK]),
        "http" => ("HTTP, 100 B, one at a time", &[MICROS, CPU]),
        "http-events" => ("HTTP, 100 B as an event, one at a time", &[MICROS, CPU]),
        "http-flight" => ("HTTP, 100 B, 50 in flight", &[RATE, CPU]),
        "http-result" => ("HTTP, 1 MB result", &[MILLIS, PEAK]),
        _ => ("20 servers", &[READY, IDLE, BESIDE, CLOSE]),
    }
}

/// One figure of a line: its key, what it is called, and what it is divided by to be readable.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) key: &'static str,
    pub(super) called: &'static str,
    pub(super) divisor: f64,
}

const MICROS: Figure = Figure { key: "p50_us", called: "median µs", divisor: 1.0 };
const MILLIS: Figure = Figure { key: "p50_us", called: "median ms", divisor: 1e3 };
const RATE: Figure = Figure { key: "per_second", called: "thousand calls/s", divisor: 1e3 };
const CPU: Figure = Figure { key: "cpu_us", called: "processor µs a call", divisor: 1.0 };
const PEAK: Figure = Figure { key: "peak_rss_kb", called: "peak memory MB", divisor: 1024.0 };
const READY: Figure = Figure { key: "ready_ms", called: "ready ms", divisor: 1.0 };
const IDLE: Figure = Figure { key: "idle_kb", called: "idle memory MB", divisor: 1024.0 };
const BESIDE: Figure =
    Figure { key: "beside_kb", called: "supervisors' memory MB", divisor: 1024.0 };
const CLOSE: Figure = Figure { key: "close_ms", called: "closed ms", divisor: 1.0 };
