//! `bench --against`: compares the figures of this checkout with those of another one.
//!
//! The speed of a shared machine changes from minute to minute, so two separate runs say little about
//! two versions of the code. Here the programs of both checkouts run directly one after the other, and
//! each such pair gives one ratio. A figure counts as worse only if the whole confidence interval of
//! the median ratio lies beyond the bound: one slow round changes nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::report::{Samples, format_number, median};
use super::runs::{BENCH_RUNS, BenchRun, FigureColumn, INNKEEPER, case_columns};
use super::toolcalls::cases::{BenchParser, CASES};
use super::toolcalls::{self, input};
use super::{BenchArgs, build_client, gateway, measure, rust_client};
use crate::program::repository_root;
use crate::{TaskResult, output};

/// Minimum and default number of rounds: with fewer, the interval is as wide as the noise.
pub(super) const MIN_ROUNDS: usize = 15;
/// Default of the difference that counts, in percent.
pub(super) const DEFAULT_BOUND_PERCENT: f64 = 10.0;
/// The probability that the interval contains the true median is at least 95 %: this much may lie
/// beyond each end.
const MAX_TAIL: f64 = 0.025;

/// Checks the options next to `--against`.
///
/// # Errors
///
/// Another option does not go with `--against`, or a number is too small.
pub(super) fn check(args: &BenchArgs) -> TaskResult {
    if args.json || args.write || !args.include_innkeeper {
        return Err("`--against` takes no `--json`, `--write` or `--peers-only`".to_owned());
    }
    if args.rounds() < MIN_ROUNDS {
        return Err(format!("`--rounds` must be at least {MIN_ROUNDS} with `--against`"));
    }
    if !args.bound_percent.is_finite() || args.bound_percent < 0.0 {
        return Err("`--bound` must be a number of percent, 0 or more".to_owned());
    }
    Ok(())
}

/// Builds the programs of both checkouts, runs the rounds and prints the table.
///
/// # Errors
///
/// A program does not build or run, no figure has both sides, or a figure is worse than the bound.
pub(super) fn run(args: &BenchArgs, directory: &str) -> TaskResult {
    let other = fs::canonicalize(directory).map_err(|error| format!("`{directory}`: {error}"))?;
    let rows = if args.gateway {
        compare_gateways(args, &other)?
    } else if args.toolcalls {
        compare_parsers(args, &other)?
    } else {
        compare_hosts(args, &other)?
    };
    output::print_line(format_args!("\n{}", output::format_table(&table_rows(&rows))));
    if rows.iter().all(|row| row.outcome.verdict().is_none()) {
        return Err(format!("no figure could be compared with `{directory}`"));
    }
    let worse = rows.iter().filter(|row| row.outcome.verdict() == Some(Verdict::Worse)).count();
    if worse == 0 {
        return Ok(());
    }
    let figures = if worse == 1 { "1 figure is" } else { &format!("{worse} figures are") };
    Err(format!("{figures} worse than in `{directory}` by more than {} %", args.bound_percent))
}

/// Measures the host's rows in both checkouts.
fn compare_hosts(args: &BenchArgs, other: &Path) -> TaskResult<Vec<ComparedRow>> {
    let directories = Directories {
        ours: build_client(&repository_root(), INNKEEPER)?,
        theirs: build_client(other, INNKEEPER)?,
    };
    let entries: Vec<&BenchRun> =
        BENCH_RUNS.iter().copied().flatten().filter(|entry| entry.is_innkeeper()).collect();
    let mut pairs = SamplePairs::default();
    for round in 0..args.rounds() {
        print_round(round, args);
        for &entry in &entries {
            pairs.measure(entry, round, |checkout| {
                let directory = directories.get(checkout);
                measure(rust_client(directory, INNKEEPER), directory, entry, args)
            })?;
        }
    }
    let mut rows = Vec::new();
    for entry in entries {
        let (title, columns) = case_columns(entry.case);
        let title = format!("{title} ({})", entry.runtime);
        rows.extend(pairs.compared_rows(entry, &title, columns, args.bound_percent));
    }
    Ok(rows)
}

/// Measures the parser's rows in both checkouts, on the same texts.
fn compare_parsers(args: &BenchArgs, other: &Path) -> TaskResult<Vec<ComparedRow>> {
    let directories = Directories {
        ours: toolcalls::build(&repository_root())?,
        theirs: toolcalls::build(other)?,
    };
    let text = directories.ours.join("text");
    let entry = |case| BenchRun { case, peer: INNKEEPER, runtime: "" };
    let mut pairs = SamplePairs::default();
    for round in 0..args.rounds() {
        print_round(round, args);
        for case in CASES {
            input::write_text(&text, case)?;
            pairs.measure(&entry(case.name), round, |checkout| {
                let directory = directories.get(checkout);
                toolcalls::measure(directory, &text, case, BenchParser::Innkeeper, args.seconds)
            })?;
        }
    }
    let mut rows = Vec::new();
    for case in CASES {
        let columns = case.columns();
        rows.extend(pairs.compared_rows(&entry(case.name), case.name, columns, args.bound_percent));
    }
    Ok(rows)
}

/// Measures the gateway's rows in both checkouts, each with its own client and server.
fn compare_gateways(args: &BenchArgs, other: &Path) -> TaskResult<Vec<ComparedRow>> {
    let directories = Directories {
        ours: gateway::build_all(&repository_root())?,
        theirs: gateway::build_all(other)?,
    };
    let length = format!("{}s", args.seconds);
    let entry = |case: &gateway::GatewayCase, server: gateway::BenchServer| BenchRun {
        case: case.name,
        peer: server.name(),
        runtime: "",
    };
    let mut pairs = SamplePairs::default();
    for round in 0..args.rounds() {
        print_round(round, args);
        for case in gateway::CASES {
            for server in gateway::OWN_SERVERS {
                pairs.measure(&entry(case, *server), round, |checkout| {
                    gateway::measure(directories.get(checkout), case, *server, &length)
                })?;
            }
        }
    }
    let mut rows = Vec::new();
    for case in gateway::CASES {
        for server in gateway::OWN_SERVERS {
            let title = format!("{}, {}", case.name, server.name());
            let entry = entry(case, *server);
            rows.extend(pairs.compared_rows(&entry, &title, gateway::COLUMNS, args.bound_percent));
        }
    }
    Ok(rows)
}

fn print_round(round: usize, args: &BenchArgs) {
    output::print_line(format_args!("round {} of {}", round + 1, args.rounds()));
}

/// The checkout of `xtask`, or the one it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checkout {
    This,
    Other,
}

/// The order of a round's pairs: neither checkout always runs on the warmer caches of the other.
fn pair_order(round: usize) -> [Checkout; 2] {
    if round.is_multiple_of(2) {
        [Checkout::This, Checkout::Other]
    } else {
        [Checkout::Other, Checkout::This]
    }
}

/// The directories of the benchmark programs.
struct Directories {
    ours: PathBuf,
    theirs: PathBuf,
}

impl Directories {
    fn get(&self, checkout: Checkout) -> &Path {
        match checkout {
            Checkout::This => &self.ours,
            Checkout::Other => &self.theirs,
        }
    }
}

/// The figures of both checkouts; the figures of one round are a pair.
#[derive(Debug, Default)]
struct SamplePairs {
    ours: Samples,
    theirs: Samples,
    /// The runs that the other checkout does not have, by case, peer and runtime.
    only_ours: BTreeSet<[&'static str; 3]>,
}

impl SamplePairs {
    /// Runs both programs once.
    ///
    /// A run that fails in the other checkout in the first round counts as one that it does not have.
    fn measure(
        &mut self,
        entry: &BenchRun,
        round: usize,
        run: impl Fn(Checkout) -> TaskResult<Value>,
    ) -> TaskResult {
        let key = [entry.case, entry.peer, entry.runtime];
        for checkout in pair_order(round) {
            match checkout {
                Checkout::This => self.ours.add(entry, &run(checkout)?),
                Checkout::Other if self.only_ours.contains(&key) => {}
                Checkout::Other => match run(checkout) {
                    Ok(line) => self.theirs.add(entry, &line),
                    Err(problem) if round == 0 => {
                        let [case, peer, runtime] = key;
                        let name = format!("{case} {peer} {runtime}");
                        output::print_line(format_args!("{name}: only ours: {problem}"));
                        self.only_ours.insert(key);
                    }
                    Err(problem) => return Err(format!("the other checkout: {problem}")),
                },
            }
        }
        Ok(())
    }

    /// The figures of one case that at least one checkout has.
    fn compared_rows(
        &self,
        entry: &BenchRun,
        title: &str,
        columns: &[FigureColumn],
        bound_percent: f64,
    ) -> Vec<ComparedRow> {
        let mut rows = Vec::new();
        for column in columns {
            let key_path = [entry.case, entry.peer, entry.runtime, column.key];
            let ours = self.ours.rounds(key_path).unwrap_or_default();
            let theirs = self.theirs.rounds(key_path).unwrap_or_default();
            let outcome = match (ours.is_empty(), theirs.is_empty()) {
                (true, true) => continue,
                (false, true) => Outcome::OnlyOurs,
                (true, false) => Outcome::OnlyTheirs,
                (false, false) => judge(&slowdowns(column, ours, theirs), bound_percent),
            };
            let in_unit = |figures: &[f64]| median(figures.to_vec()).map(|it| it / column.divisor);
            rows.push(ComparedRow {
                title: format!("{title}: {}", column.heading),
                ours: in_unit(ours),
                theirs: in_unit(theirs),
                outcome,
            });
        }
        rows
    }
}

/// One figure of both checkouts: a row of the table.
#[derive(Debug, PartialEq)]
struct ComparedRow {
    title: String,
    /// The median of our rounds.
    ours: Option<f64>,
    /// The median of the other checkout's rounds.
    theirs: Option<f64>,
    outcome: Outcome,
}

#[derive(Debug, PartialEq)]
enum Outcome {
    Judged(MedianInterval, Verdict),
    OnlyOurs,
    OnlyTheirs,
    /// The figure has too few pairs for an interval.
    TooFewPairs,
}

impl Outcome {
    fn verdict(&self) -> Option<Verdict> {
        match self {
            Self::Judged(_, verdict) => Some(*verdict),
            Self::OnlyOurs | Self::OnlyTheirs | Self::TooFewPairs => None,
        }
    }

    fn describe(&self) -> &'static str {
        match self {
            Self::Judged(_, Verdict::Worse) => "WORSE",
            Self::Judged(_, Verdict::Same) => "same",
            Self::Judged(_, Verdict::Better) => "better",
            Self::OnlyOurs => "only ours",
            Self::OnlyTheirs => "only theirs",
            Self::TooFewPairs => "too few pairs",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Worse,
    Same,
    Better,
}

/// The ratio of each pair: above 1, ours is slower or needs more memory.
fn slowdowns(column: &FigureColumn, ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    let mut ratios = Vec::new();
    // A figure that is missing in a round would shift all later pairs.
    if ours.len() == theirs.len() {
        for (&ours, &theirs) in ours.iter().zip(theirs) {
            let ratio = if column.is_rate() { theirs / ours } else { ours / theirs };
            // Without memory on both sides, there is no difference.
            ratios.push(if ratio.is_nan() { 1.0 } else { ratio });
        }
    }
    ratios
}

/// Judges a figure by the ratios of its pairs.
fn judge(ratios: &[f64], bound_percent: f64) -> Outcome {
    match median_interval(ratios) {
        Some(interval) => {
            let verdict = interval.verdict(bound_percent);
            Outcome::Judged(interval, verdict)
        }
        None => Outcome::TooFewPairs,
    }
}

/// A median with its 95 % confidence interval.
#[derive(Debug, PartialEq)]
struct MedianInterval {
    median: f64,
    low: f64,
    high: f64,
}

impl MedianInterval {
    /// Compares the whole interval with the bound, a ratio: if ours is worse than theirs, then theirs
    /// is better than ours.
    fn verdict(&self, bound_percent: f64) -> Verdict {
        let bound = 1.0 + bound_percent / 100.0;
        if self.low > bound {
            Verdict::Worse
        } else if self.high < bound.recip() {
            Verdict::Better
        } else {
            Verdict::Same
        }
    }
}

/// The median of ratios with its interval, which has no assumption about their distribution: the true
/// median lies between two of the sorted ratios with a probability that the binomial distribution
/// gives. Fewer than six ratios have no such interval.
fn median_interval(ratios: &[f64]) -> Option<MedianInterval> {
    let mut sorted = ratios.to_vec();
    sorted.sort_by(f64::total_cmp);
    let from_each_end = interval_rank(sorted.len())?;
    Some(MedianInterval {
        low: sorted[from_each_end],
        high: sorted[sorted.len() - 1 - from_each_end],
        median: median(sorted)?,
    })
}

/// The number of sorted values to leave out at each end.
fn interval_rank(count: usize) -> Option<usize> {
    let total = count as f64;
    // The logarithm of a binomial probability, because 0.5 to a great power is 0.
    let mut log_probability = -total * std::f64::consts::LN_2;
    let mut tail = 0.0;
    let mut rank = None;
    for left_out in 0..count / 2 {
        tail += log_probability.exp();
        if tail > MAX_TAIL {
            break;
        }
        rank = Some(left_out);
        let taken = left_out as f64;
        log_probability += ((total - taken) / (taken + 1.0)).ln();
    }
    rank
}

/// The heading row and one row for each figure.
fn table_rows(rows: &[ComparedRow]) -> Vec<Vec<String>> {
    let heading = ["", "ours", "theirs", "ratio (greater is worse)", "95 % interval", ""];
    let mut table = vec![heading.map(str::to_owned).to_vec()];
    for row in rows {
        let mut ratio = format_number(None);
        let mut range = format_number(None);
        if let Outcome::Judged(interval, _) = &row.outcome {
            ratio = format!("{:.3}", interval.median);
            range = format!("{:.3} to {:.3}", interval.low, interval.high);
        }
        table.push(vec![
            row.title.clone(),
            format_number(row.ours),
            format_number(row.theirs),
            ratio,
            range,
            row.outcome.describe().to_owned(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests;
