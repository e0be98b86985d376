//! The benchmark cases with their clients.

/// One client in one case.
#[derive(Debug)]
pub(super) struct BenchRun {
    pub(super) case: &'static str,
    pub(super) peer: &'static str,
    pub(super) runtime: &'static str,
}

impl BenchRun {
    /// Whether the client is Innkeeper.
    pub(super) fn is_innkeeper(&self) -> bool {
        self.peer == INNKEEPER
    }

    /// Whether the client runs in a round.
    pub(super) fn is_due(&self, round: usize) -> bool {
        !matches!(self.peer, TYPESCRIPT_SDK | PYTHON_SDK)
            || round.is_multiple_of(SLOW_CLIENT_INTERVAL_ROUNDS)
    }
}

pub(super) const RAW_PIPE: &str = "bare";
pub(super) const RMCP: &str = "rmcp";
pub(super) const TYPESCRIPT_SDK: &str = "typescript";
pub(super) const PYTHON_SDK: &str = "python";
pub(super) const INNKEEPER: &str = "innkeeper";

/// The interval of the rounds of the clients whose start and warm-up take longer than their calls.
const SLOW_CLIENT_INTERVAL_ROUNDS: usize = 3;

/// The runs of one case: the clients on tokio with both runtimes, then the clients with one runtime.
macro_rules! bench_runs {
    ($case:literal, [$($peer:ident),*], [$($single:ident),*]) => {
        &[
            $(BenchRun { case: $case, peer: $peer, runtime: "current" },)*
            $(BenchRun { case: $case, peer: $peer, runtime: "multi" },)*
            $(BenchRun { case: $case, peer: $single, runtime: "current" },)*
        ]
    };
}

/// Every case with its clients.
///
/// HTTP has no raw pipe: every client over HTTP starts from an HTTP client. Neither have ten servers.
pub(super) const BENCH_RUNS: &[&[BenchRun]] = &[
    bench_runs!("sequential", [RAW_PIPE, RMCP, INNKEEPER], [TYPESCRIPT_SDK, PYTHON_SDK]),
    bench_runs!("unpinned", [RAW_PIPE, RMCP, INNKEEPER], []),
    bench_runs!("flight", [RAW_PIPE, RMCP, INNKEEPER], [TYPESCRIPT_SDK, PYTHON_SDK]),
    bench_runs!("servers", [RMCP, INNKEEPER], [TYPESCRIPT_SDK, PYTHON_SDK]),
    bench_runs!("medium", [RAW_PIPE, RMCP, INNKEEPER], [TYPESCRIPT_SDK, PYTHON_SDK]),
    bench_runs!("result", [RAW_PIPE, RMCP, INNKEEPER], [TYPESCRIPT_SDK, PYTHON_SDK]),
    bench_runs!("largest-result", [RAW_PIPE, RMCP, INNKEEPER], []),
    bench_runs!("message", [RAW_PIPE, RMCP, INNKEEPER], [TYPESCRIPT_SDK, PYTHON_SDK]),
    bench_runs!("start", [RAW_PIPE, RMCP, INNKEEPER], [TYPESCRIPT_SDK, PYTHON_SDK]),
    bench_runs!("http", [RMCP, INNKEEPER], []),
    bench_runs!("http-events", [RMCP, INNKEEPER], []),
    bench_runs!("http-flight", [RMCP, INNKEEPER], []),
    bench_runs!("http-result", [RMCP, INNKEEPER], []),
];

/// The title of a case and its figure columns.
pub(super) fn case_columns(case: &str) -> (&'static str, &'static [FigureColumn]) {
    match case {
        "sequential" => ("100 B, one at a time", &[MEDIAN_MICROS, P99_MICROS, CPU_PER_CALL]),
        "unpinned" => {
            ("100 B, one at a time, all CPUs", &[MEDIAN_MICROS, P99_MICROS, CPU_PER_CALL])
        }
        "flight" => ("100 B, 50 in flight", &[CALL_RATE, CPU_PER_CALL]),
        "servers" => ("100 B, 500 in flight over 10 servers", &[CALL_RATE, CPU_PER_CALL]),
        "medium" => ("10 kB round trip", &[MEDIAN_MICROS, P99_MICROS]),
        "result" => ("1 MB result", &[MEDIAN_MILLIS, PEAK_MEMORY]),
        "largest-result" => ("10 MB result", &[MEDIAN_MILLIS, PEAK_MEMORY]),
        "message" => ("1 MB round trip, not decoded", &[MEDIAN_MILLIS, PEAK_MEMORY]),
        "http" => ("HTTP, 100 B, one at a time", &[MEDIAN_MICROS, P99_MICROS, CPU_PER_CALL]),
        "http-events" => {
            ("HTTP (SSE), 100 B, one at a time", &[MEDIAN_MICROS, P99_MICROS, CPU_PER_CALL])
        }
        "http-flight" => ("HTTP, 100 B, 50 in flight", &[CALL_RATE, CPU_PER_CALL]),
        "http-result" => ("HTTP, 1 MB result", &[MEDIAN_MILLIS, PEAK_MEMORY]),
        _ => {
            ("20 servers", &[READY_TIME, IDLE_MEMORY, SUPERVISOR_MEMORY, TOTAL_MEMORY, CLOSE_TIME])
        }
    }
}

/// A column of a case: JSON key, heading, and the divisor that converts the unit.
#[derive(Debug)]
pub(super) struct FigureColumn {
    pub(super) key: &'static str,
    pub(super) heading: &'static str,
    pub(super) divisor: f64,
}

impl FigureColumn {
    /// Whether a greater figure is better: a rate, not a time or an amount of memory.
    pub(super) fn is_rate(&self) -> bool {
        self.key.ends_with("per_second")
    }
}

const MEDIAN_MICROS: FigureColumn =
    FigureColumn { key: "p50_us", heading: "median µs", divisor: 1.0 };
const P99_MICROS: FigureColumn =
    FigureColumn { key: "p99_us", heading: "99th percentile µs", divisor: 1.0 };
const MEDIAN_MILLIS: FigureColumn =
    FigureColumn { key: "p50_us", heading: "median ms", divisor: 1e3 };
const CALL_RATE: FigureColumn =
    FigureColumn { key: "per_second", heading: "thousand calls/s", divisor: 1e3 };
const CPU_PER_CALL: FigureColumn =
    FigureColumn { key: "cpu_us", heading: "CPU µs per call", divisor: 1.0 };
const PEAK_MEMORY: FigureColumn =
    FigureColumn { key: "peak_rss_kb", heading: "peak memory MB", divisor: 1024.0 };
const READY_TIME: FigureColumn =
    FigureColumn { key: "ready_ms", heading: "ready ms", divisor: 1.0 };
const IDLE_MEMORY: FigureColumn =
    FigureColumn { key: "idle_kb", heading: "idle memory MB", divisor: 1024.0 };
const SUPERVISOR_MEMORY: FigureColumn =
    FigureColumn { key: "supervisors_kb", heading: "supervisors' memory MB", divisor: 1024.0 };
const TOTAL_MEMORY: FigureColumn =
    FigureColumn { key: "total_kb", heading: "memory of both MB", divisor: 1024.0 };
const CLOSE_TIME: FigureColumn =
    FigureColumn { key: "close_ms", heading: "shutdown ms", divisor: 1.0 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_that_start_slowly_run_in_every_third_round() {
        let rounds = |peer| {
            let entry = BENCH_RUNS[0].iter().find(|entry| entry.peer == peer).unwrap();
            (0..7).filter(|round| entry.is_due(*round)).collect::<Vec<_>>()
        };
        assert_eq!(rounds(INNKEEPER), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(rounds(TYPESCRIPT_SDK), [0, 3, 6]);
        assert_eq!(rounds(PYTHON_SDK), [0, 3, 6]);
    }
}
