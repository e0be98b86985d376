//! Tests of the comparison with another checkout, with fixed numbers.

use serde_json::json;

use super::*;

const TIME: FigureColumn = FigureColumn { key: "p50_us", heading: "median µs", divisor: 1.0 };
const RATE: FigureColumn = FigureColumn { key: "per_second", heading: "calls/s", divisor: 1.0 };
const ENTRY: BenchRun = BenchRun { case: "sequential", peer: INNKEEPER, runtime: "current" };

fn run_ours_alone(checkout: Checkout) -> TaskResult<Value> {
    match checkout {
        Checkout::This => Ok(json!({"p50_us": 24.0})),
        Checkout::Other => Err("unknown case".to_owned()),
    }
}

fn interval(low: f64, high: f64) -> MedianInterval {
    MedianInterval { median: f64::midpoint(low, high), low, high }
}

#[test]
fn the_interval_has_the_ranks_of_the_published_tables() {
    let published = [(5, None), (6, Some(0)), (8, Some(0)), (9, Some(1)), (15, Some(3))];
    for (count, rank) in published {
        assert_eq!(interval_rank(count), rank, "{count} ratios");
    }
    assert_eq!(interval_rank(20), Some(5));
    assert_eq!(interval_rank(100), Some(39));
    // 1000 / 2 - 1.96 * sqrt(1000) / 2 = 469
    assert_eq!(interval_rank(1000), Some(468));
    assert!(interval_rank(5000).is_some_and(|rank| (2400..2500).contains(&rank)));
    assert_eq!(interval_rank(0), None);
}

#[test]
fn the_interval_of_fifteen_ratios_goes_from_the_fourth_to_the_twelfth() {
    let shuffled = [8, 1, 15, 3, 12, 5, 10, 7, 2, 9, 6, 11, 4, 13, 14].map(f64::from);
    let expected = MedianInterval { median: 8.0, low: 4.0, high: 12.0 };
    assert_eq!(median_interval(&shuffled), Some(expected));
    assert_eq!(median_interval(&shuffled[..5]), None);
}

#[test]
fn only_an_interval_beyond_the_bound_is_worse_or_better() {
    assert_eq!(interval(1.11, 1.30).verdict(10.0), Verdict::Worse);
    assert_eq!(interval(1.09, 1.90).verdict(10.0), Verdict::Same);
    assert_eq!(interval(0.50, 1.50).verdict(10.0), Verdict::Same);
    assert_eq!(interval(0.50, 0.92).verdict(10.0), Verdict::Same);
    assert_eq!(interval(0.50, 0.90).verdict(10.0), Verdict::Better);
    assert_eq!(interval(1.11, 1.30).verdict(25.0), Verdict::Same);
    assert_eq!(interval(1.01, 1.02).verdict(0.0), Verdict::Worse);
    assert_eq!(interval(1.00, 1.00).verdict(0.0), Verdict::Same);
}

#[test]
fn a_swap_of_the_checkouts_mirrors_the_verdict() {
    let fast: Vec<f64> = (0..15).map(|round| 100.0 + f64::from(round)).collect();
    let slow: Vec<f64> = fast.iter().map(|figure| figure * 1.12).collect();
    let verdict = |ours, theirs| judge(&slowdowns(&TIME, ours, theirs), 10.0).verdict();
    assert_eq!(verdict(&slow, &fast), Some(Verdict::Worse));
    assert_eq!(verdict(&fast, &slow), Some(Verdict::Better));
}

#[test]
fn three_slow_rounds_of_fifteen_change_no_verdict() {
    let mut ratios = vec![1.0; 12];
    ratios.extend([9.0, 9.0, 9.0]);
    assert_eq!(judge(&ratios, 10.0).verdict(), Some(Verdict::Same));
}

#[test]
fn a_greater_ratio_is_slower_for_times_and_for_rates() {
    assert_eq!(slowdowns(&TIME, &[30.0], &[20.0]), [1.5]);
    assert_eq!(slowdowns(&RATE, &[20.0], &[30.0]), [1.5]);
    assert_eq!(slowdowns(&TIME, &[0.0], &[0.0]), [1.0]);
    assert!(slowdowns(&TIME, &[1.0, 2.0], &[1.0]).is_empty());
}

#[test]
fn the_order_of_a_pair_alternates_from_round_to_round() {
    assert_eq!(pair_order(0), [Checkout::This, Checkout::Other]);
    assert_eq!(pair_order(1), [Checkout::Other, Checkout::This]);
    assert_eq!(pair_order(2), pair_order(0));
}

#[test]
fn a_figure_of_one_checkout_is_listed_and_not_judged() {
    let mut pairs = SamplePairs::default();
    for round in 0..15 {
        let run = |checkout| match checkout {
            Checkout::This => Ok(json!({"p50_us": 24.0, "cpu_us": 1.0})),
            Checkout::Other => Ok(json!({"p50_us": 20.0, "p99_us": 1.0})),
        };
        pairs.measure(&ENTRY, round, run).unwrap();
    }
    let columns = case_columns(ENTRY.case).1;
    let table = table_rows(&pairs.compared_rows(&ENTRY, "calls", columns, 10.0));
    let expected = [
        ["calls: median µs", "24.0", "20.0", "1.200", "1.200 to 1.200", "WORSE"],
        ["calls: 99th percentile µs", "–", "1.00", "–", "–", "only theirs"],
        ["calls: CPU µs per call", "1.00", "–", "–", "–", "only ours"],
    ];
    assert_eq!(table[1..], expected);
}

#[test]
fn a_case_that_the_other_checkout_lacks_is_listed_as_ours() {
    let mut pairs = SamplePairs::default();
    for round in 0..15 {
        pairs.measure(&ENTRY, round, run_ours_alone).unwrap();
    }
    let rows = pairs.compared_rows(&ENTRY, "calls", &[TIME], 10.0);
    assert_eq!(rows[0].outcome, Outcome::OnlyOurs);
}

#[test]
fn a_failure_after_the_first_round_or_in_our_checkout_is_an_error() {
    let mut pairs = SamplePairs::default();
    assert!(pairs.measure(&ENTRY, 1, run_ours_alone).is_err());
    assert!(pairs.measure(&ENTRY, 0, |_| Err("broken".to_owned())).is_err());
}

#[test]
fn options_that_do_not_go_with_another_checkout_are_refused() {
    let parse = |line: &str| {
        BenchArgs::parse(&line.split(' ').collect::<Vec<_>>()).map(|args| args.rounds())
    };
    assert_eq!(parse("--against other"), Ok(15));
    assert_eq!(parse("--toolcalls --against other --rounds 16 --bound 5"), Ok(16));
    assert_eq!(parse("--gateway --against other"), Ok(15));
    let few = Err("`--rounds` must be at least 15 with `--against`".to_owned());
    assert_eq!(parse("--against other --rounds 14"), few);
    for line in ["--json", "--write", "--peers-only", "--bound -1", "--bound nan"] {
        assert!(parse(&format!("{line} --against other")).is_err(), "{line}");
    }
}
