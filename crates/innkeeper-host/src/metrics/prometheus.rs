//! Metrics in the Prometheus text format 0.0.4.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use super::{DURATION_BUCKETS_SECS, MetricsSnapshot};
use crate::error::CallErrorKind;
use crate::event::CallOutcome;

/// The possible outcomes of a request. Other errors occur before the host sends a request and are
/// not counted.
const OUTCOMES: [CallOutcome; 8] = [
    CallOutcome::Ok,
    CallOutcome::ToolError,
    CallOutcome::Failed(CallErrorKind::Unavailable),
    CallOutcome::Failed(CallErrorKind::Timeout),
    CallOutcome::Failed(CallErrorKind::Protocol),
    CallOutcome::Failed(CallErrorKind::Server),
    CallOutcome::Failed(CallErrorKind::Withheld),
    CallOutcome::Cancelled,
];

#[derive(Debug)]
pub(crate) struct ServerSample {
    pub(crate) server: Arc<str>,
    pub(crate) up: bool,
    /// The number of restarts after which the server became ready.
    pub(crate) restarts: u32,
    /// The number of cache entries and their size in bytes.
    pub(crate) cache: (usize, u64),
    pub(crate) counts: MetricsSnapshot,
}

/// Renders all metrics of these servers. Each line ends with a line feed.
pub(crate) fn render(samples: &[ServerSample]) -> String {
    let mut page = TextWriter { text: String::new(), family_name: String::new() };
    page.write_family("server_up", "gauge", "Whether the server accepts calls.");
    page.write_per_server(samples, |sample| u8::from(sample.up));
    page.write_family("server_restarts_total", "counter", "Number of completed restarts.");
    page.write_per_server(samples, |sample| sample.restarts);
    page.write_family("calls_total", "counter", "Requests of the application, by outcome.");
    for ServerSample { server, counts, .. } in samples {
        for outcome in OUTCOMES {
            let labels = [("server", &**server), ("outcome", outcome.as_str())];
            page.write_line("", &labels, counts.count_for(outcome));
        }
    }
    page.write_family(
        "call_duration_seconds",
        "histogram",
        "Durations of requests that were not cancelled.",
    );
    for ServerSample { server, counts, .. } in samples {
        page.write_durations(server, counts);
    }
    let help = "Look-ups of prompts and resources in the cache, by result.";
    page.write_family("cache_lookups_total", "counter", help);
    for ServerSample { server, counts, .. } in samples {
        for (result, count) in [("hit", counts.cache.hits), ("miss", counts.cache.misses)] {
            page.write_line("", &[("server", server), ("result", result)], count);
        }
    }
    page.write_family("cache_entries", "gauge", "Number of cache entries.");
    page.write_per_server(samples, |sample| sample.cache.0);
    page.write_family("cache_bytes", "gauge", "Size of the cache in bytes.");
    page.write_per_server(samples, |sample| sample.cache.1);
    page.text
}

impl MetricsSnapshot {
    fn count_for(&self, outcome: CallOutcome) -> u64 {
        match outcome {
            CallOutcome::Ok => self.successes,
            CallOutcome::ToolError => self.tool_errors,
            CallOutcome::Failed(kind) => self.failures_by_kind[kind as usize],
            CallOutcome::Cancelled => self.cancelled,
        }
    }
}

/// The output and the name of the current metric family.
struct TextWriter {
    text: String,
    family_name: String,
}

impl TextWriter {
    fn write_family(&mut self, name: &str, kind: &str, help: &str) {
        self.family_name = format!("innkeeper_{name}");
        let Self { text, family_name } = self;
        text.push_str(&format!("# HELP {family_name} {help}\n# TYPE {family_name} {kind}\n"));
    }

    fn write_line(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escape_label(value)))
            .collect();
        let name = &self.family_name;
        let labels = labels.join(",");
        self.text.push_str(&format!("{name}{suffix}{{{labels}}} {value}\n"));
    }

    fn write_per_server<V: Display>(
        &mut self,
        samples: &[ServerSample],
        value: impl Fn(&ServerSample) -> V,
    ) {
        for sample in samples {
            self.write_line("", &[("server", &sample.server)], value(sample));
        }
    }

    /// Writes a histogram. The bounds have the precision of the recorded latencies, about 1 %.
    fn write_durations(&mut self, server: &str, counts: &MetricsSnapshot) {
        let total = counts.latencies.len();
        for bound in DURATION_BUCKETS_SECS {
            let micros = Duration::from_secs_f64(bound).as_micros();
            let micros = u64::try_from(micros).unwrap_or(u64::MAX);
            let within = counts.latencies.count_between(0, micros);
            self.write_line("_bucket", &[("server", server), ("le", &bound.to_string())], within);
        }
        self.write_line("_bucket", &[("server", server), ("le", "+Inf")], total);
        let seconds = Duration::from_micros(counts.total_latency_micros).as_secs_f64();
        self.write_line("_sum", &[("server", server)], seconds);
        self.write_line("_count", &[("server", server)], total);
    }
}

fn escape_label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tokio::time::Instant;

    use super::*;
    use crate::metrics::MetricsRecorder;

    /// Parses all values by name and labels. Panics on a line that is not in the format.
    fn parse_exposition(text: &str) -> BTreeMap<String, f64> {
        let mut values = BTreeMap::new();
        let (mut family, mut kinds) = (String::new(), BTreeMap::new());
        assert!(text.ends_with('\n'));
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                family = rest.split_once(' ').unwrap().0.to_owned();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(name, family);
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "twice: {name}");
            } else {
                let (key, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = key.split_once('{').unwrap();
                let suffix = name.strip_prefix(&*family).unwrap();
                let histogram = kinds[&family] == "histogram";
                let suffixes: &[&str] =
                    if histogram { &["_bucket", "_sum", "_count"] } else { &[""] };
                assert!(suffixes.contains(&suffix), "{line}");
                assert!(labels.starts_with("server=\"") && labels.ends_with("\"}"), "{line}");
                let value = value.parse().unwrap();
                assert!(values.insert(key.to_owned(), value).is_none(), "twice: {key}");
            }
        }
        values
    }

    fn sample(server: &str, calls: &[(CallOutcome, u64)]) -> ServerSample {
        let recorder = MetricsRecorder::new();
        for (outcome, millis) in calls {
            recorder.record(*outcome, Duration::from_millis(*millis), Instant::now());
        }
        recorder.record_cache_lookup(true);
        ServerSample {
            server: server.into(),
            up: true,
            restarts: 2,
            cache: (3, 400),
            counts: recorder.snapshot(),
        }
    }

    #[test]
    fn counts_outcomes_and_cumulative_durations_are_read_back_as_they_were_recorded() {
        let calls = [
            (CallOutcome::Ok, 1),
            (CallOutcome::Ok, 30),
            (CallOutcome::ToolError, 400),
            (CallOutcome::Failed(CallErrorKind::Timeout), 400_000),
            (CallOutcome::Cancelled, 5),
        ];
        let values = parse_exposition(&render(&[sample("a", &calls), sample("b", &[])]));
        let at = |name: &str, labels: &str| values[&format!("innkeeper_{name}{{{labels}}}")];
        assert_eq!(at("server_up", r#"server="a""#), 1.0);
        assert_eq!(at("server_restarts_total", r#"server="a""#), 2.0);
        for (outcome, count) in [
            ("ok", 2.0),
            ("tool_error", 1.0),
            ("timeout", 1.0),
            ("cancelled", 1.0),
            ("protocol", 0.0),
        ] {
            let labels = format!("server=\"a\",outcome=\"{outcome}\"");
            assert_eq!(at("calls_total", &labels), count, "{outcome}");
        }
        let bounds = DURATION_BUCKETS_SECS.map(|bound| bound.to_string());
        let within = bounds.iter().map(String::as_str).chain(["+Inf"]).map(|bound| {
            at("call_duration_seconds_bucket", &format!("server=\"a\",le=\"{bound}\""))
        });
        let within: Vec<f64> = within.collect();
        let expected = [1., 1., 2., 2., 2., 3., 3., 3., 3., 3., 3., 3., 3., 3., 4.];
        assert_eq!(within, expected);
        assert_eq!(at("call_duration_seconds_count", r#"server="a""#), 4.0);
        assert_eq!(at("call_duration_seconds_sum", r#"server="a""#), 400.431);
        assert_eq!(at("cache_lookups_total", r#"server="a",result="hit""#), 1.0);
        assert_eq!(at("cache_bytes", r#"server="a""#), 400.0);
        assert_eq!(at("call_duration_seconds_count", r#"server="b""#), 0.0);
    }

    /// Attack: terminal | a server name contains quotes and a line end to forge a metric | the
    /// label is escaped, and the text is valid | Foreign text stays text
    #[test]
    fn any_server_name_is_escaped_in_its_label() {
        let page = render(&[sample("a\\\"\n} 1", &[])]);
        assert!(page.contains(r#"innkeeper_server_up{server="a\\\"\n} 1"} 1"#), "{page}");
        parse_exposition(&page);
    }
}
