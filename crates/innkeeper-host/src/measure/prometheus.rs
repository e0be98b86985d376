//! Counts and latencies in the text format 0.0.4 of Prometheus.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use super::{BUCKETS, Counts};
use crate::error::CallKind;
use crate::event::CallOutcome;

/// How a request can end. Others are found wanting before anything is sent, and are not counted.
const OUTCOMES: [CallOutcome; 8] = [
    CallOutcome::Ok,
    CallOutcome::ToolError,
    CallOutcome::Failed(CallKind::Unavailable),
    CallOutcome::Failed(CallKind::Timeout),
    CallOutcome::Failed(CallKind::Protocol),
    CallOutcome::Failed(CallKind::Server),
    CallOutcome::Failed(CallKind::Withheld),
    CallOutcome::Cancelled,
];

/// One server at one moment.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) server: Arc<str>,
    pub(crate) up: bool,
    /// How often it has become ready again.
    pub(crate) restarts: u32,
    /// Copies kept now, and their bytes.
    pub(crate) cache: (usize, u64),
    pub(crate) counts: Counts,
}

/// Everything that is told of these servers; each line has its end.
pub(crate) fn text(samples: &[Sample]) -> String {
    let mut page = Page { text: String::new(), name: String::new() };
    page.family("server_up", "gauge", "Whether the server takes calls.");
    page.each(samples, |sample| u8::from(sample.up));
    page.family("server_restarts_total", "counter", "How often it became ready again.");
    page.each(samples, |sample| sample.restarts);
    page.family("calls_total", "counter", "Requests for the application, by how they ended.");
    for Sample { server, counts, .. } in samples {
        for outcome in OUTCOMES {
            let labels = [("server", &**server), ("outcome", outcome.as_str())];
            page.line("", &labels, counts.of(outcome));
        }
    }
    page.family("call_duration_seconds", "histogram", "Requests that were not cancelled.");
    for Sample { server, counts, .. } in samples {
        page.durations(server, counts);
    }
    let help = "Prompts and resources, by whether a copy was given.";
    page.family("cache_lookups_total", "counter", help);
    for Sample { server, counts, .. } in samples {
        for (result, count) in [("hit", counts.hits), ("miss", counts.misses)] {
            page.line("", &[("server", server), ("result", result)], count);
        }
    }
    page.family("cache_entries", "gauge", "Copies kept.");
    page.each(samples, |sample| sample.cache.0);
    page.family("cache_bytes", "gauge", "Bytes of the copies kept.");
    page.each(samples, |sample| sample.cache.1);
    page.text
}

impl Counts {
    fn of(&self, outcome: CallOutcome) -> u64 {
        match outcome {
            CallOutcome::Ok => self.ok,
            CallOutcome::ToolError => self.tool_errors,
            CallOutcome::Failed(kind) => self.failed[kind as usize],
            CallOutcome::Cancelled => self.cancelled,
        }
    }
}

/// The text so far, and the family that is being written.
struct Page {
    text: String,
    name: String,
}

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.name = format!("innkeeper_{name}");
        let Self { text, name } = self;
        text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let (name, labels) = (&self.name, labels.join(","));
        self.text.push_str(&format!("{name}{suffix}{{{labels}}} {value}\n"));
    }

    fn each<V: Display>(&mut self, samples: &[Sample], value: impl Fn(&Sample) -> V) {
        for sample in samples {
            self.line("", &[("server", &sample.server)], value(sample));
        }
    }

    /// The bounds are sharp to one hundredth, as the counts behind them are.
    fn durations(&mut self, server: &str, counts: &Counts) {
        let total = counts.latencies.len();
        for bound in BUCKETS {
            let micros = Duration::from_secs_f64(bound).as_micros();
            let micros = u64::try_from(micros).unwrap_or(u64::MAX);
            let within = counts.latencies.count_between(0, micros);
            self.line("_bucket", &[("server", server), ("le", &bound.to_string())], within);
        }
        self.line("_bucket", &[("server", server), ("le", "+Inf")], total);
        let seconds = Duration::from_micros(counts.micros).as_secs_f64();
        self.line("_sum", &[("server", server)], seconds);
        self.line("_count", &[("server", server)], total);
    }
}

/// A value as it stands between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tokio::time::Instant;

    use super::*;
    use crate::measure::Meter;

    /// Every value by its name and labels; fails on any line that the format does not have.
    fn read(text: &str) -> BTreeMap<String, f64> {
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

    fn sample(server: &str, calls: &[(CallOutcome, u64)]) -> Sample {
        let meter = Meter::new();
        for (outcome, millis) in calls {
            meter.record(*outcome, Duration::from_millis(*millis), Instant::now());
        }
        meter.looked_up(true);
        Sample {
            server: server.into(),
            up: true,
            restarts: 2,
            cache: (3, 400),
            counts: meter.counts(),
        }
    }

    #[test]
    fn counts_outcomes_and_cumulative_durations_are_read_back_as_they_were_recorded() {
        let calls = [
            (CallOutcome::Ok, 1),
            (CallOutcome::Ok, 30),
            (CallOutcome::ToolError, 400),
            (CallOutcome::Failed(CallKind::Timeout), 400_000),
            (CallOutcome::Cancelled, 5),
        ];
        let values = read(&text(&[sample("a", &calls), sample("b", &[])]));
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
        let bounds = BUCKETS.map(|bound| bound.to_string());
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

    #[test]
    fn whatever_a_server_is_called_its_label_ends_where_it_should() {
        let page = text(&[sample("a\\\"\n} 1", &[])]);
        assert!(page.contains(r#"innkeeper_server_up{server="a\\\"\n} 1"} 1"#), "{page}");
        read(&page);
    }
}
