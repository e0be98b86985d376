//! The order of calls under the strict policy: response by response.
//!
//! Responses with the same calls are aligned first, as the lines of two texts are. What remains
//! between them is explained: a call that came in another response, a call with other arguments, a
//! missing call, and an additional call.

use std::collections::HashSet;

use super::mismatch::{CallPlace, Mismatch};
use super::tool_chain::{
    Call, CallPair, Matching, argument_differences, extra_call, match_by, missing_call,
};
use crate::rules::ToolChainRule;

/// Maximum number of pairs of responses that are aligned. More are compared as one block: the report
/// is then less exact, the verdict is the same.
const MAX_ALIGNED_PAIRS: usize = 4_000_000;

struct Response<'c, 'r> {
    calls: &'c [Call<'r>],
    /// The keys of the calls, sorted, because parallel calls have no order.
    keys: Vec<&'c str>,
}

/// The responses between two pairs of equal responses.
struct Block<'b, 'c, 'r> {
    golden: &'b [Response<'c, 'r>],
    actual: &'b [Response<'c, 'r>],
}

/// Returns the mismatches; none if the responses have the same calls.
pub(super) fn find_mismatches(
    golden: &[Call<'_>],
    actual: &[Call<'_>],
    rule: &ToolChainRule,
) -> Vec<Mismatch> {
    let [golden, actual] = [golden, actual].map(responses);
    let mut mismatches = Vec::new();
    let mut blocks: Vec<Matching<'_, '_>> =
        blocks(&golden, &actual).iter().map(match_block).collect();
    // A call that is missing in one block and additional in another one has moved.
    let missing = blocks.iter().flat_map(|block| block.missing.iter().copied());
    let extra = blocks.iter().flat_map(|block| block.extra.iter().copied());
    let moved = match_by(missing, extra, |call| &*call.key).pairs;
    let moved_places: HashSet<(bool, CallPlace)> = moved
        .iter()
        .flat_map(|pair| [(true, pair.golden.place), (false, pair.actual.place)])
        .collect();
    for block in &mut blocks {
        block.missing.retain(|call| !moved_places.contains(&(true, call.place)));
        block.extra.retain(|call| !moved_places.contains(&(false, call.place)));
        let [missing, extra] = [&block.missing, &block.extra].map(|calls| calls.iter().copied());
        let changed = match_by(missing, extra, |call| call.tool);
        mismatches.extend(argument_differences(&changed.pairs, rule));
        mismatches.extend(changed.missing.into_iter().map(missing_call));
        mismatches.extend(changed.extra.into_iter().map(extra_call));
    }
    mismatches.extend(moved.iter().map(moved_call));
    // If nothing else explains the difference, the calls of one response were spread over two, or
    // those of two came together.
    if mismatches.is_empty() {
        let pairs = blocks.iter().flat_map(|block| &block.pairs);
        let apart = pairs.filter(|pair| pair.golden.place != pair.actual.place);
        mismatches.extend(apart.map(moved_call));
    }
    mismatches
}

/// Matches the equal calls of a block.
fn match_block<'c, 'r>(block: &Block<'_, 'c, 'r>) -> Matching<'c, 'r> {
    let [expected, got] = [block.golden, block.actual]
        .map(|responses| responses.iter().flat_map(|response| response.calls));
    match_by(expected, got, |call| &*call.key)
}

fn moved_call(pair: &CallPair<'_, '_>) -> Mismatch {
    Mismatch::MovedCall {
        call: pair.golden.describe(),
        expected: pair.golden.place,
        actual: pair.actual.place,
    }
}

fn responses<'c, 'r>(calls: &'c [Call<'r>]) -> Vec<Response<'c, 'r>> {
    let responses = calls.chunk_by(|left, right| left.place.response == right.place.response);
    let with_keys = responses.map(|calls| {
        let mut keys: Vec<&str> = calls.iter().map(|call| &*call.key).collect();
        keys.sort_unstable();
        Response { calls, keys }
    });
    with_keys.collect()
}

fn blocks<'b, 'c, 'r>(
    golden: &'b [Response<'c, 'r>],
    actual: &'b [Response<'c, 'r>],
) -> Vec<Block<'b, 'c, 'r>> {
    let is_equal = |(left, right): &(&Response<'_, '_>, &Response<'_, '_>)| left.keys == right.keys;
    let start = golden.iter().zip(actual).take_while(is_equal).count();
    let golden = &golden[start..];
    let actual = &actual[start..];
    let end = golden.iter().rev().zip(actual.iter().rev()).take_while(is_equal).count();
    let golden = &golden[..golden.len() - end];
    let actual = &actual[..actual.len() - end];
    if golden.len() * actual.len() > MAX_ALIGNED_PAIRS {
        return vec![Block { golden, actual }];
    }
    let mut blocks = Vec::new();
    let mut golden_from = 0;
    let mut actual_from = 0;
    for (golden_at, actual_at) in common_subsequence(golden, actual) {
        blocks.push(Block {
            golden: &golden[golden_from..golden_at],
            actual: &actual[actual_from..actual_at],
        });
        (golden_from, actual_from) = (golden_at + 1, actual_at + 1);
    }
    blocks.push(Block { golden: &golden[golden_from..], actual: &actual[actual_from..] });
    blocks
}

/// Returns the positions of equal responses in both runs: the common subsequence with the most calls.
fn common_subsequence(
    golden: &[Response<'_, '_>],
    actual: &[Response<'_, '_>],
) -> Vec<(usize, usize)> {
    let width = actual.len() + 1;
    // The number of calls in the best common subsequence of both rests.
    let mut counts = vec![0usize; (golden.len() + 1) * width];
    for (at, left) in golden.iter().enumerate().rev() {
        for (other, right) in actual.iter().enumerate().rev() {
            let cell = at * width + other;
            counts[cell] = if left.keys == right.keys {
                counts[cell + width + 1] + left.keys.len()
            } else {
                counts[cell + width].max(counts[cell + 1])
            };
        }
    }
    let mut pairs = Vec::new();
    let mut at = 0;
    let mut other = 0;
    while at < golden.len() && other < actual.len() {
        let cell = at * width + other;
        if golden[at].keys == actual[other].keys {
            pairs.push((at, other));
            (at, other) = (at + 1, other + 1);
        } else if counts[cell + width] >= counts[cell + 1] {
            at += 1;
        } else {
            other += 1;
        }
    }
    pairs
}
