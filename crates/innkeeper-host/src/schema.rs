//! The schema of a tool's arguments, or of its results: what may be called, and what does not fit.
//!
//! A schema comes from a server and may have been made to hurt. It is first only read
//! ([`ArgumentSchema::new`]), which bounds what compiling and applying it can cost, and compiled at
//! the first call. Arguments that would cost too much with it are refused before it is applied.
//! `format` is an annotation, as in the specification: it is not checked.

mod cost;
mod graph;
mod keywords;
mod load;
mod pattern;
mod reference;
mod result;
mod size;
mod words;

#[cfg(test)]
mod tests;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use jsonschema::{Draft, Validator};
use serde_json::Value;
use serde_json::value::RawValue;

use self::cost::Bounds;
use self::graph::Graph;
use self::load::{Load, Scale};
use self::pattern::Pattern;
use self::size::Size;
use crate::error::ArgumentProblem;

pub(crate) use self::result::ResultSchema;

/// The longest schema, in bytes; the longest in use have a few ten thousand.
const BYTES: usize = 256 << 10;

/// The most JSON values in a schema.
const VALUES: usize = 5_000;

/// Visits of subschemas that are always granted; takes about 20 ms.
const VISITS: u64 = 1 << 20;

/// Visits of subschemas granted for each value in the arguments, so that what is large may also
/// take long.
const VISITS_PER_VALUE: u64 = 1 << 10;

/// Visits of subschemas that are never exceeded, however large the arguments are: they take some
/// tenths of a second, which a call's time-out does not count.
const VISITS_AT_MOST: u64 = 1 << 24;

/// What a schema may cost to be applied to any arguments without a look at their size: the longest
/// request that is sent, 8 MiB, has four million values.
const CHEAP: u64 = 1 << 4;

/// How often a schema is applied anew at most when matches are given up as undecided, to find out
/// whether they matter.
const OUTCOMES: u64 = 64;

/// Steps of matching against patterns; takes less than a second where nothing makes it fast.
const STEPS: u64 = 1 << 32;

/// The most errors made to be looked at, by what it takes to make them; takes up to a quarter of a
/// second.
const FAILURES: u64 = 1 << 17;

/// The most memory errors may copy, in bytes.
const COPIED: u64 = 128 << 20;

/// Said when finding out where would take too long.
const UNEXPLAINED: &str = "does not fit; too large or too deep to say where";

/// The JSON Schema of one tool's arguments, compiled at the first use and once.
pub(crate) struct ArgumentSchema {
    raw: Box<RawValue>,
    compiled: OnceLock<Result<Compiled, String>>,
}

impl ArgumentSchema {
    /// Checks a schema without compiling it; an empty one accepts any object.
    ///
    /// # Errors
    ///
    /// Why the tool cannot be offered, as one sentence: the schema is too large or too costly,
    /// describes no object, has references that lead out of it, or a dialect that is not known.
    pub(crate) fn new(raw: &RawValue) -> Result<Self, String> {
        Self::bounded(raw, describes_objects)
            .map_err(|reason| format!("its input schema cannot be used: {reason}"))
    }

    fn bounded(raw: &RawValue, describes: impl Fn(&Value) -> bool) -> Result<Self, String> {
        let raw = if raw.get() == "null" { RawValue::TRUE } else { raw };
        if raw.get().len() > BYTES {
            return Err(format!("it is longer than {BYTES} bytes"));
        }
        let schema = parsed(raw)?;
        if keywords::count(&schema) > VALUES {
            return Err(format!("it has more than {VALUES} values"));
        }
        if !describes(&schema) {
            return Err("it does not describe an object".to_owned());
        }
        let draft = draft(&schema)?;
        let graph = Graph::read(&schema, draft.id_keyword())?;
        Bounds::of(&graph)?;
        Ok(Self { raw: raw.to_owned(), compiled: OnceLock::new() })
    }

    /// Every part of `arguments` that does not fit, sorted by pointer, at most 32; empty if all
    /// fits.
    ///
    /// Arguments too large or too deep for this schema, and a schema that turns out to be invalid
    /// when it is compiled, are one problem of the whole.
    pub(crate) fn check(&self, arguments: &Value) -> Vec<ArgumentProblem> {
        if !arguments.is_object() {
            let found = words::kind(arguments);
            return whole(&format!("expected object, found {found}"));
        }
        self.apply(arguments).unwrap_or_else(|reason| whole(&reason))
    }

    /// What does not fit, or why that cannot be told.
    fn apply(&self, value: &Value) -> Result<Vec<ArgumentProblem>, String> {
        self.run(|compiled| compiled.check(value, &self.raw))
    }

    /// The first part that does not fit, or why that cannot be told.
    fn first(&self, value: &Value) -> Result<Option<ArgumentProblem>, String> {
        self.run(|compiled| compiled.first(value, &self.raw))
    }

    fn run<T>(
        &self,
        check: impl FnOnce(&Compiled) -> Result<T, &'static str>,
    ) -> Result<T, String> {
        let compiled = self.compiled.get_or_init(|| {
            guarded(|| Compiled::new(&self.raw))
                .unwrap_or_else(|| Err("it cannot be compiled".to_owned()))
                .map_err(|reason| format!("the tool's input schema cannot be used: {reason}"))
        });
        let compiled = compiled.as_ref().map_err(Clone::clone)?;
        guarded(|| check(compiled))
            .unwrap_or(Err("cannot be checked against the tool's input schema"))
            .map_err(str::to_owned)
    }
}

/// The result of `run`; `None` if it panics.
///
/// The validator has assertions that some schemas of a stranger's making can fail, and it keeps
/// nothing between runs that could be left half done.
fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}

impl fmt::Debug for ArgumentSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentSchema").field("raw", &self.raw.get()).finish_non_exhaustive()
    }
}

fn whole(message: &str) -> Vec<ArgumentProblem> {
    vec![ArgumentProblem { pointer: String::new(), message: message.to_owned() }]
}

fn parsed(raw: &RawValue) -> Result<Value, String> {
    serde_json::from_str(raw.get()).map_err(|error| format!("it cannot be read: {error}"))
}

fn describes_objects(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(keywords) => match keywords.get("type") {
            None => true,
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            Some(kind) => kind == "object",
        },
        _ => false,
    }
}

fn draft(schema: &Value) -> Result<Draft, String> {
    let declared = schema.get("$schema").and_then(Value::as_str);
    let Some(uri) = declared else { return Ok(Draft::Draft202012) };
    match Draft::from_schema_uri(uri) {
        known @ (Draft::Draft4
        | Draft::Draft6
        | Draft::Draft7
        | Draft::Draft201909
        | Draft::Draft202012) => Ok(known),
        _ => Err(format!("its dialect {} is not known", words::quoted(uri))),
    }
}

/// A schema ready to be applied.
struct Compiled {
    validator: Validator,
    graph: Graph,
    bounds: Bounds,
    patterns: Vec<Pattern>,
    matching: Matching,
    /// Whether no arguments can be too large or too deep for it.
    cheap: bool,
}

/// The most steps of matching for each byte of text in a value with one of everything.
struct Matching {
    linear: u64,
    backtracking: u64,
}

impl Compiled {
    fn new(raw: &RawValue) -> Result<Self, String> {
        let schema = parsed(raw)?;
        let declared = draft(&schema)?;
        let graph = Graph::read(&schema, declared.id_keyword())?;
        let bounds = Bounds::of(&graph)?;
        let patterns = pattern::measure(&graph.patterns)?;
        let build = |draft| pattern::options(draft, &patterns).build(&schema);
        // Many servers write draft-07 and do not say so.
        let undeclared = schema.get("$schema").is_none();
        let validator = build(declared)
            .or_else(|error| build(Draft::Draft7).ok().filter(|_| undeclared).ok_or(error))
            .map_err(|error| {
                format!("it is invalid at {}", words::quoted(error.instance_path().as_str()))
            })?;
        let matching = Matching::of(&graph, &patterns);
        let cheap = !bounds.recursive && bounds.cost <= CHEAP && graph.patterns.is_empty();
        Ok(Self { validator, graph, bounds, patterns, matching, cheap })
    }

    fn check(
        &self,
        arguments: &Value,
        raw: &RawValue,
    ) -> Result<Vec<ArgumentProblem>, &'static str> {
        match self.refuse(arguments) {
            Some(reason) => Err(reason),
            None if self.validator.is_valid(arguments) => Ok(Vec::new()),
            None => Ok(self.explain(arguments, raw)),
        }
    }

    /// The first error only: of a stranger's value under a stranger's schema, all of them would
    /// take memory for each.
    fn first(
        &self,
        value: &Value,
        raw: &RawValue,
    ) -> Result<Option<ArgumentProblem>, &'static str> {
        match self.refuse(value) {
            Some(reason) => Err(reason),
            None if self.validator.is_valid(value) => Ok(None),
            None if self.bounds.recursive => Ok(whole(UNEXPLAINED).pop()),
            None => {
                let error = self.validator.validate(value).err();
                let schema = parsed(raw).unwrap_or_default();
                Ok(words::problems(&schema, error.into_iter()).into_iter().next())
            }
        }
    }

    /// Why the schema is not applied to `arguments`, if so.
    fn refuse(&self, arguments: &Value) -> Option<&'static str> {
        if self.cheap {
            return None;
        }
        let size = Size::of(arguments);
        if self.bounds.recursive && self.bounds.depth * (size.depth + 1) > cost::DEPTH {
            return Some("nested too deep for the tool's input schema");
        }
        let visits = self.granted(size);
        let within = self.bounds.cost.saturating_mul(size.values) <= visits;
        if within && self.matching.steps(size) <= STEPS {
            return None;
        }
        let most = Load { visits, steps: STEPS, ..Load::MOST };
        let exceeds = self.weigh(arguments, most).exceeds(most);
        exceeds.then_some("too large to be checked against the tool's input schema")
    }

    fn granted(&self, size: Size) -> u64 {
        let visits = VISITS_PER_VALUE.saturating_mul(size.values).saturating_add(VISITS);
        let visits = visits.min(VISITS_AT_MOST);
        let undecided = self.patterns.iter().any(|pattern| pattern.backtracks);
        if undecided { visits / OUTCOMES } else { visits }
    }

    fn weigh(&self, arguments: &Value, most: Load) -> Load {
        Scale::new(&self.graph, &self.bounds, &self.patterns).weigh(arguments, most)
    }

    fn explain(&self, arguments: &Value, raw: &RawValue) -> Vec<ArgumentProblem> {
        // Without recursion, at least the first error can be had for the price of one.
        let failures = if self.bounds.recursive { FAILURES } else { u64::MAX };
        let visits = self.granted(Size::of(arguments));
        let most = Load { visits, copied: COPIED, failures, ..Load::MOST };
        let load = self.weigh(arguments, most);
        if load.exceeds(most) {
            return whole(UNEXPLAINED);
        }
        let schema = parsed(raw).unwrap_or_default();
        if load.failures <= FAILURES {
            words::problems(&schema, self.validator.iter_errors(arguments))
        } else {
            words::problems(&schema, self.validator.validate(arguments).err().into_iter())
        }
    }
}

impl Matching {
    fn of(graph: &Graph, patterns: &[Pattern]) -> Self {
        let sum = |backtracks| {
            cost::unfolded(graph, |node| {
                let all = node.patterns.iter().chain(&node.name_patterns);
                let all = all.map(|pattern| patterns[*pattern]);
                all.filter(|one| one.backtracks == backtracks).map(|one| one.size).sum()
            })
        };
        Self { linear: sum(false), backtracking: sum(true) }
    }

    fn steps(&self, size: Size) -> u64 {
        let text = size.text + size.values;
        let backtracking = self.backtracking.saturating_mul(text);
        self.linear.saturating_add(backtracking).saturating_mul(text)
    }
}
