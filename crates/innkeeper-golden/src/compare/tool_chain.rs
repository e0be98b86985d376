//! The rules about tool calls.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use serde_json::value::RawValue;

use super::mismatch::{CallPlace, Mismatch};
use super::{MAX_MISMATCHES, responses};
use crate::difference::{differences, shorten};
use crate::json::{Document, Node, Value, canonical};
use crate::output::RunOutput;
use crate::rules::{ArgumentPolicy, CallOrder, ToolChainRule};

/// A call with what counts of it.
#[derive(Clone, Debug)]
pub(super) struct Call<'r> {
    pub(super) tool: &'r str,
    pub(super) arguments: &'r RawValue,
    pub(super) place: CallPlace,
    /// The tool and the arguments that count, in one spelling: equal keys are equal calls.
    pub(super) key: String,
}

impl Call<'_> {
    pub(super) fn describe(&self) -> String {
        shorten(&format!("{} {}", self.tool, canonical(self.arguments)))
    }
}

/// Two calls that stand for each other.
pub(super) struct CallPair<'c, 'r> {
    pub(super) golden: &'c Call<'r>,
    pub(super) actual: &'c Call<'r>,
}

/// Compares the calls by the rule. `skips_new_tools` leaves out calls of tools that the golden did not
/// call.
pub(super) fn find_mismatches(
    golden: &RunOutput<'_>,
    actual: &RunOutput<'_>,
    rule: &ToolChainRule,
    skips_new_tools: bool,
) -> Vec<Mismatch> {
    let known: BTreeSet<&str> = tools(golden);
    let golden = calls(golden, rule, None);
    let actual = calls(actual, rule, skips_new_tools.then_some(&known));
    let mut mismatches = match rule.order {
        CallOrder::Strict => responses::find_mismatches(&golden, &actual, rule),
        CallOrder::Unordered | CallOrder::Subset | CallOrder::Superset => {
            let Matching { pairs, missing, extra } = match_calls(&golden, &actual);
            let mut mismatches = argument_differences(&pairs, rule);
            if rule.order != CallOrder::Subset {
                mismatches.extend(missing.into_iter().map(missing_call));
            }
            if rule.order != CallOrder::Superset {
                mismatches.extend(extra.into_iter().map(extra_call));
            }
            mismatches
        }
    };
    mismatches.sort_by_key(place);
    mismatches
}

pub(super) fn find_forbidden(actual: &RunOutput<'_>, forbidden: &[String]) -> Vec<Mismatch> {
    let counts = count_calls(actual, |tool| forbidden.iter().any(|name| name == tool)).into_iter();
    counts
        .map(|(tool, (place, calls))| Mismatch::ForbiddenTool {
            tool: tool.to_owned(),
            place,
            calls,
        })
        .collect()
}

/// Returns the calls of tools that the golden did not call.
pub(super) fn find_new(golden: &RunOutput<'_>, actual: &RunOutput<'_>) -> Vec<Mismatch> {
    let known = tools(golden);
    let counts = count_calls(actual, |tool| !known.contains(tool)).into_iter();
    counts
        .map(|(tool, (place, calls))| Mismatch::NewTool { tool: tool.to_owned(), place, calls })
        .collect()
}

fn tools<'o>(output: &'o RunOutput<'_>) -> BTreeSet<&'o str> {
    output.tool_chain.iter().map(|call| &*call.tool_name).collect()
}

/// Returns the place of the first call and the number of calls of each tool.
fn count_calls<'o>(
    output: &'o RunOutput<'_>,
    is_counted: impl Fn(&str) -> bool,
) -> BTreeMap<&'o str, (CallPlace, usize)> {
    let mut counts = BTreeMap::new();
    for (call, place) in output.tool_chain.iter().zip(places(output)) {
        if is_counted(&call.tool_name) {
            let (_, calls) = counts.entry(&*call.tool_name).or_insert((place, 0));
            *calls += 1;
        }
    }
    counts
}

fn places(output: &RunOutput<'_>) -> Vec<CallPlace> {
    let mut response = 0;
    let mut iteration = None;
    let places = output.tool_chain.iter().enumerate().map(|(at, call)| {
        if iteration != Some(call.iteration) {
            iteration = Some(call.iteration);
            response += 1;
        }
        CallPlace { call: at + 1, response }
    });
    places.collect()
}

/// Returns the calls, of `known` tools if there are any.
fn calls<'o>(
    output: &'o RunOutput<'_>,
    rule: &ToolChainRule,
    known: Option<&BTreeSet<&str>>,
) -> Vec<Call<'o>> {
    let calls = output.tool_chain.iter().zip(places(output));
    let counted =
        calls.filter(|(call, _)| known.is_none_or(|known| known.contains(&*call.tool_name)));
    let with_keys = counted.map(|(call, place)| Call {
        tool: &call.tool_name,
        arguments: call.arguments,
        place,
        key: key(&call.tool_name, call.arguments, rule),
    });
    with_keys.collect()
}

/// The calls of two runs that stand for each other, and those that stand alone.
pub(super) struct Matching<'c, 'r> {
    pub(super) pairs: Vec<CallPair<'c, 'r>>,
    pub(super) missing: Vec<&'c Call<'r>>,
    /// The other calls of the run.
    pub(super) extra: Vec<&'c Call<'r>>,
}

/// Leaves out equal calls, and matches the others of each tool in their order.
fn match_calls<'c, 'r>(golden: &'c [Call<'r>], actual: &'c [Call<'r>]) -> Matching<'c, 'r> {
    let equal = match_by(golden.iter(), actual.iter(), |call| &*call.key);
    match_by(equal.missing.into_iter(), equal.extra.into_iter(), |call| call.tool)
}

/// Matches calls with equal keys in their order.
pub(super) fn match_by<'c, 'r, K: Eq + std::hash::Hash + ?Sized + 'c>(
    golden: impl Iterator<Item = &'c Call<'r>>,
    actual: impl Iterator<Item = &'c Call<'r>>,
    key: impl Fn(&'c Call<'r>) -> &'c K,
) -> Matching<'c, 'r> {
    let actual: Vec<&Call<'r>> = actual.collect();
    let mut waiting: HashMap<&K, VecDeque<usize>> = HashMap::new();
    for (at, call) in actual.iter().enumerate() {
        waiting.entry(key(call)).or_default().push_back(at);
    }
    let mut is_matched = vec![false; actual.len()];
    let mut pairs = Vec::new();
    let mut missing = Vec::new();
    for call in golden {
        match waiting.get_mut(key(call)).and_then(VecDeque::pop_front) {
            Some(at) => {
                is_matched[at] = true;
                pairs.push(CallPair { golden: call, actual: actual[at] });
            }
            None => missing.push(call),
        }
    }
    let alone = actual.into_iter().zip(is_matched).filter(|(_, is_matched)| !is_matched);
    Matching { pairs, missing, extra: alone.map(|(call, _)| call).collect() }
}

pub(super) fn argument_differences(
    pairs: &[CallPair<'_, '_>],
    rule: &ToolChainRule,
) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    for CallPair { golden, actual } in pairs {
        let found = differences(
            golden.arguments,
            actual.arguments,
            &|pointer| is_ignored(rule, golden.tool, pointer),
            MAX_MISMATCHES,
        );
        mismatches.extend(found.into_iter().map(|difference| Mismatch::ArgumentDiffers {
            tool: actual.tool.to_owned(),
            place: actual.place,
            difference,
        }));
    }
    mismatches
}

pub(super) fn missing_call(call: &Call<'_>) -> Mismatch {
    Mismatch::MissingCall { place: call.place, call: call.describe() }
}

pub(super) fn extra_call(call: &Call<'_>) -> Mismatch {
    Mismatch::ExtraCall { place: call.place, call: call.describe() }
}

fn place(mismatch: &Mismatch) -> Option<CallPlace> {
    match mismatch {
        Mismatch::MissingCall { place, .. }
        | Mismatch::ExtraCall { place, .. }
        | Mismatch::ArgumentDiffers { place, .. }
        | Mismatch::ForbiddenTool { place, .. }
        | Mismatch::NewTool { place, .. }
        | Mismatch::MovedCall { expected: place, .. } => Some(*place),
        Mismatch::FieldDiffers(_)
        | Mismatch::IdDiffers { .. }
        | Mismatch::OutcomeChanged { .. }
        | Mismatch::ErrorDiffers { .. }
        | Mismatch::BoundExceeded { .. }
        | Mismatch::BoundUnknown { .. }
        | Mismatch::TextDiffers { .. }
        | Mismatch::TextMissing { .. } => None,
    }
}

/// Returns the tool with the arguments that count.
fn key(tool: &str, arguments: &RawValue, rule: &ToolChainRule) -> String {
    let mut key = format!("{tool}\n");
    if policy(rule, tool) == ArgumentPolicy::Exact {
        let has_ignored = rule.tools.get(tool).is_some_and(|it| !it.ignored_paths.is_empty());
        if has_ignored {
            let document = Document::new(arguments);
            let is_ignored: &dyn Fn(&str) -> bool = &|pointer| is_ignored(rule, tool, pointer);
            push_counted(document.root(), is_ignored, "", &mut key);
        } else {
            key.push_str(&canonical(arguments));
        }
    }
    key
}

/// Returns whether the argument with this JSON pointer does not count.
fn is_ignored(rule: &ToolChainRule, tool: &str, pointer: &str) -> bool {
    policy(rule, tool) == ArgumentPolicy::Ignore
        || rule
            .tools
            .get(tool)
            .is_some_and(|policy| policy.ignored_paths.iter().any(|path| path.matches(pointer)))
}

fn policy(rule: &ToolChainRule, tool: &str) -> ArgumentPolicy {
    match rule.tools.get(tool) {
        None => rule.arguments,
        Some(policy) => policy.arguments.unwrap_or_default(),
    }
}

/// Writes the value without the ignored parts. Only the depth of the ignored paths is looked into.
fn push_counted(
    value: Value<'_>,
    is_ignored: &dyn Fn(&str) -> bool,
    path: &str,
    text: &mut String,
) {
    if path.matches('/').count() >= crate::json::MAX_DEPTH {
        return text.push_str(value.text());
    }
    match value.node() {
        Node::Literal(_) | Node::String(_) => text.push_str(&value.canonical()),
        Node::Array(items) => {
            text.push('[');
            for (at, item) in items.enumerate() {
                let path = format!("{path}/{at}");
                if !is_ignored(&path) {
                    push_counted(item, is_ignored, &path, text);
                    text.push(',');
                }
            }
            text.push(']');
        }
        Node::Object(mut members) => {
            members.sort_by(|(left, _), (right, _)| left.cmp(right));
            text.push('{');
            for (name, member) in members {
                let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                if !is_ignored(&path) {
                    text.push_str(&serde_json::Value::from(name).to_string());
                    text.push(':');
                    push_counted(member, is_ignored, &path, text);
                    text.push(',');
                }
            }
            text.push('}');
        }
    }
}
