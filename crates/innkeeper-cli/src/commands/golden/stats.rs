//! `golden stats`: counts what the goldens cover.

use std::collections::BTreeMap;

use innkeeper_agent::golden::{Category, Exchange, Golden, ReplyRecord, StreamEnd};
use innkeeper_agent::transport::ProviderId;
use serde::Serialize;

use super::files::GoldenFiles;
use super::run_view::RunView;
use crate::cli::StatsArgs;
use crate::exit::CliError;
use crate::output::{Output, Style, Table};

type Counts = BTreeMap<String, usize>;

pub(super) fn run(args: &StatsArgs, output: &mut Output) -> Result<(), CliError> {
    let mut files = GoldenFiles::find(&args.paths)?;
    let mut stats = GoldenStats::default();
    for file in files.by_ref() {
        let file = file?;
        let run = RunView::from_file(&file)?;
        stats.add(&file.golden, &run);
    }
    if output.is_json() {
        output.print_json(&stats.to_json())?;
    } else {
        print(&stats, output)?;
    }
    files.report_skipped(output)
}

/// The counts over several goldens.
#[derive(Debug, Default, Serialize)]
struct GoldenStats {
    goldens: usize,
    succeeded: usize,
    #[serde(flatten)]
    coverage: Coverage,
    /// The calls that reached a server, by public name.
    tools: BTreeMap<String, ToolCounts>,
    requests: usize,
    /// The failed requests, by class: a status, a lost connection, or silence.
    request_failures: Counts,
    /// How the model made its calls: `native`, or written in a text and recovered.
    mechanisms: Counts,
}

/// Where the goldens come from, and what they cover.
#[derive(Debug, Default, Serialize)]
struct Coverage {
    providers: Counts,
    categories: Counts,
    origins: Counts,
    apis: Counts,
}

#[derive(Debug, Default, Serialize)]
struct ToolCounts {
    calls: usize,
    /// The calls without a good result, by class.
    failures: Counts,
}

/// The counts with what is missing.
#[derive(Debug, Serialize)]
struct StatsJson<'s> {
    #[serde(flatten)]
    stats: &'s GoldenStats,
    missing_categories: Vec<&'static str>,
    missing_providers: Vec<&'static str>,
}

impl GoldenStats {
    fn add(&mut self, golden: &Golden, run: &RunView) {
        self.goldens += 1;
        self.succeeded += usize::from(run.success);
        self.coverage.add(golden);
        for call in &golden.tool_calls {
            let tool = self.tools.entry(call.name.clone()).or_default();
            tool.calls += 1;
            if let Some(class) = call.outcome.failure_class() {
                increment(&mut tool.failures, class);
            }
        }
        for exchange in &golden.provider_responses {
            self.requests += 1;
            if let Some(class) = request_failure(exchange) {
                increment(&mut self.request_failures, &class);
            }
        }
        for call in run.tool_chain.iter().filter(|call| !call.mechanism.is_empty()) {
            increment(&mut self.mechanisms, &call.mechanism);
        }
    }

    fn to_json(&self) -> StatsJson<'_> {
        StatsJson {
            stats: self,
            missing_categories: self.coverage.missing_categories(),
            missing_providers: self.coverage.missing_providers(),
        }
    }
}

impl Coverage {
    fn add(&mut self, golden: &Golden) {
        let category = golden.category.map_or("none", Category::as_str);
        increment(&mut self.providers, &golden.input.provider);
        increment(&mut self.categories, category);
        increment(&mut self.origins, golden.origin.as_str());
        increment(&mut self.apis, &golden.input.api);
    }

    /// Returns the categories without a golden.
    fn missing_categories(&self) -> Vec<&'static str> {
        let names = Category::ALL.into_iter().map(Category::as_str);
        names.filter(|name| !self.categories.contains_key(*name)).collect()
    }

    /// Returns the providers without a golden.
    fn missing_providers(&self) -> Vec<&'static str> {
        let names = ProviderId::ALL.into_iter().map(ProviderId::name);
        names.filter(|name| !self.providers.contains_key(*name)).collect()
    }
}

fn increment(counts: &mut Counts, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => {
            counts.insert(name.to_owned(), 1);
        }
    }
}

/// Returns the class of a failed request; `None` for a complete response.
fn request_failure(exchange: &Exchange) -> Option<String> {
    match &exchange.response {
        ReplyRecord::Http(response) if !(200..300).contains(&response.status) => {
            Some(format!("status_{}", response.status))
        }
        ReplyRecord::Http(response) => match &response.end {
            StreamEnd::Complete { .. } | StreamEnd::Unread {} => None,
            StreamEnd::Failed { kind, .. } => Some(format!("cut_{kind}")),
        },
        ReplyRecord::Failed { kind, .. } => Some(kind.clone()),
        ReplyRecord::Silent {} => Some("silent".to_owned()),
    }
}

fn print(stats: &GoldenStats, output: &mut Output) -> Result<(), CliError> {
    let mut table = Table::without_headings();
    table.add_fact("goldens", &stats.goldens.to_string());
    table.add_fact("succeeded", &stats.succeeded.to_string());
    table.add_fact("providers", &counts_text(&stats.coverage.providers));
    table.add_fact("categories", &counts_text(&stats.coverage.categories));
    table.add_fact("origins", &counts_text(&stats.coverage.origins));
    table.add_fact("APIs", &counts_text(&stats.coverage.apis));
    table.add_fact("requests", &stats.requests.to_string());
    table.add_fact("failed requests", &counts_text(&stats.request_failures));
    table.add_fact("mechanisms", &counts_text(&stats.mechanisms));
    output.print_table(&table)?;
    if !stats.tools.is_empty() {
        let mut table = Table::new(["tool", "calls", "failures"]);
        for (name, tool) in &stats.tools {
            table.add_row([name.clone(), tool.calls.to_string(), counts_text(&tool.failures)]);
        }
        output.print_data("")?;
        output.print_table(&table)?;
    }
    output.print_data("")?;
    for (what, missing) in [
        ("categories", stats.coverage.missing_categories()),
        ("providers", stats.coverage.missing_providers()),
    ] {
        let label = output.paint(Style::Note, &format!("missing {what}"));
        let names = if missing.is_empty() { "none".to_owned() } else { missing.join(", ") };
        output.print_message(&format!("{label}: {names}"))?;
    }
    Ok(())
}

/// Returns the counts by name: `native 3, recovered 1`.
fn counts_text(counts: &Counts) -> String {
    let parts: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::samples::sample;
    use super::*;
    use crate::output::capture::captured_output;

    fn stats_of(goldens: &[Golden]) -> GoldenStats {
        let mut stats = GoldenStats::default();
        for golden in goldens {
            stats.add(golden, &RunView::from_golden(golden).unwrap());
        }
        stats
    }

    #[test]
    fn the_counts_name_failures_by_class_and_what_is_missing() {
        let mut other = sample();
        other.category = None;
        other.input.provider = "ollama".to_owned();
        let (mut output, out, _) = captured_output(false, false);
        print(&stats_of(&[sample(), other]), &mut output).unwrap();
        insta::assert_snapshot!(out.text());
    }

    #[test]
    fn without_goldens_everything_is_missing() {
        let json = serde_json::to_value(stats_of(&[]).to_json()).unwrap();
        assert_eq!(json["goldens"], 0);
        assert_eq!(json["missing_categories"].as_array().unwrap().len(), 4);
        assert_eq!(json["missing_providers"].as_array().unwrap().len(), 5);
    }
}
