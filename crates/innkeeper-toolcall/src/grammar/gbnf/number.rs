//! Conversion of numbers with bounds.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::convert::SchemaConverter;
use super::range::{digit_patterns, to_gbnf};
use super::rules::SharedRule;
use crate::grammar::GrammarLossKind;

/// Maximum absolute value of a bound without its decimal point; larger bounds have more digits than
/// the grammar writes.
const MAX_BOUND: i64 = 10_i64.pow(15);

/// Maximum number of decimal places of a bound.
const MAX_DECIMAL_PLACES: usize = 6;

#[derive(Debug, Clone, Copy)]
struct Bound {
    /// All digits, without the decimal point.
    digits: i64,
    /// Number of digits after the decimal point.
    decimal_places: usize,
    /// Whether the bound itself is excluded.
    exclusive: bool,
}

impl Bound {
    /// Parses the text of a number. `None` for numbers with an exponent and for numbers that are
    /// too long or too large.
    fn parse(text: &str, exclusive: bool) -> Option<Self> {
        let (integer_part, fraction) = text.split_once('.').unwrap_or((text, ""));
        let fraction = fraction.trim_end_matches('0');
        let digits: i64 = format!("{integer_part}{fraction}").parse().ok()?;
        let fits = fraction.len() <= MAX_DECIMAL_PLACES
            && digits.unsigned_abs() <= MAX_BOUND.unsigned_abs();
        fits.then_some(Self { digits, decimal_places: fraction.len(), exclusive })
    }

    /// Returns the digits scaled to this number of decimal places.
    fn scale_to(self, places: usize) -> i64 {
        self.digits.saturating_mul(10_i64.pow((places - self.decimal_places) as u32))
    }
}

/// A range on one side of zero: absolute values from `low` to `high`, scaled to the decimal places.
struct SignedRange {
    sign: &'static str,
    low: u64,
    high: u64,
    low_exclusive: bool,
    high_exclusive: bool,
}

impl SchemaConverter<'_> {
    pub(super) fn convert_integer(&mut self, schema: &Map<String, Value>, pointer: &str) -> String {
        let (low, high) = self.read_bounds(schema, pointer);
        if low.is_none() && high.is_none() {
            return self.rules.use_shared(SharedRule::Integer);
        }
        let inner = |bound: Bound, up: i64| {
            let unit = 10_i64.pow(bound.decimal_places as u32);
            let down = bound.digits.div_euclid(unit);
            match (bound.digits.rem_euclid(unit) == 0, up) {
                (true, _) => down + if bound.exclusive { up } else { 0 },
                (false, 1) => down + 1,
                (false, _) => down,
            }
        };
        let low = low.map_or(-MAX_BOUND, |bound| inner(bound, 1));
        let high = high.map_or(MAX_BOUND, |bound| inner(bound, -1));
        let mut alternatives = Vec::new();
        for side in split_at_zero(low, high, false, false) {
            for pattern in digit_patterns(side.low + u64::from(side.low_exclusive), side.high, 1) {
                alternatives.push(format!("{}{}", side.sign, to_gbnf(&pattern)));
            }
        }
        self.alternatives_rule(&alternatives, pointer, SharedRule::Integer)
    }

    pub(super) fn convert_number(&mut self, schema: &Map<String, Value>, pointer: &str) -> String {
        let (low, high) = self.read_bounds(schema, pointer);
        if low.is_none() && high.is_none() {
            return self.rules.use_shared(SharedRule::Number);
        }
        let decimal_places =
            [low, high].into_iter().flatten().map(|bound| bound.decimal_places).max().unwrap_or(0);
        let largest = Bound { digits: MAX_BOUND, decimal_places: 0, exclusive: false };
        let least = Bound { digits: -MAX_BOUND, ..largest };
        let low = low.unwrap_or(least);
        let high = high.unwrap_or(largest);
        let mut alternatives = Vec::new();
        for side in split_at_zero(
            low.scale_to(decimal_places),
            high.scale_to(decimal_places),
            low.exclusive,
            high.exclusive,
        ) {
            push_decimal_patterns(&side, decimal_places, &mut alternatives);
        }
        self.alternatives_rule(&alternatives, pointer, SharedRule::Number)
    }

    /// Joins the alternatives to one rule; without alternatives, the schema allows no number.
    fn alternatives_rule(
        &mut self,
        alternatives: &[String],
        pointer: &str,
        otherwise: SharedRule,
    ) -> String {
        if alternatives.is_empty() {
            self.report_loss(pointer, "minimum", GrammarLossKind::Dropped);
            return self.rules.use_shared(otherwise);
        }
        self.rules.add_rule("range", alternatives.join(" | "))
    }

    /// Returns the tighter bound of each side; reports bounds that cannot be enforced.
    fn read_bounds(
        &mut self,
        schema: &Map<String, Value>,
        pointer: &str,
    ) -> (Option<Bound>, Option<Bound>) {
        let mut read = |plain: &str, exclusive: &str, lower: bool| {
            let draft_4 = schema.get(exclusive) == Some(&Value::Bool(true));
            let mut tightest: Option<Bound> = None;
            for (keyword, open) in [(plain, draft_4), (exclusive, true)] {
                let Some(value) = schema.get(keyword).filter(|value| !value.is_boolean()) else {
                    continue;
                };
                let number = value.as_number().map(ToString::to_string);
                let Some(bound) = number.and_then(|text| Bound::parse(&text, open)) else {
                    self.report_loss(pointer, keyword, GrammarLossKind::Dropped);
                    continue;
                };
                let narrower = tightest.is_none_or(|other| {
                    let scaled = |bound: Bound| bound.scale_to(MAX_DECIMAL_PLACES);
                    match scaled(bound).cmp(&scaled(other)) {
                        Ordering::Equal => open,
                        Ordering::Greater => lower,
                        Ordering::Less => !lower,
                    }
                });
                tightest = if narrower { Some(bound) } else { tightest };
            }
            tightest
        };
        (read("minimum", "exclusiveMinimum", true), read("maximum", "exclusiveMaximum", false))
    }
}

/// Splits a range at zero. Zero has no sign and belongs to the upper part.
fn split_at_zero(low: i64, high: i64, low_open: bool, high_exclusive: bool) -> Vec<SignedRange> {
    let mut sides = Vec::new();
    let (start, start_open) = match u64::try_from(low) {
        Ok(low) => (low, low_open),
        Err(_) => {
            let (nearest, open) =
                if high < 0 { (high.unsigned_abs(), high_exclusive) } else { (0, true) };
            sides.push(SignedRange {
                sign: "\"-\" ",
                low: nearest,
                high: low.unsigned_abs(),
                low_exclusive: open,
                high_exclusive: low_open,
            });
            (0, false)
        }
    };
    if let Ok(high) = u64::try_from(high) {
        let low_exclusive = start_open;
        sides.push(SignedRange { sign: "", low: start, high, low_exclusive, high_exclusive });
    }
    sides
}

/// Adds the patterns of one side: the smallest value with a nonzero fraction if the bound is
/// excluded, the values in between with any fraction, and the largest value.
fn push_decimal_patterns(
    side: &SignedRange,
    decimal_places: usize,
    alternatives: &mut Vec<String>,
) {
    let SignedRange { sign, low, high, low_exclusive, high_exclusive } = *side;
    let any_fraction = if decimal_places == 0 { r#"("." [0-9]{1,6})?"# } else { "[0-9]{0,3}" };
    let something =
        if decimal_places == 0 { r#""." [0-9]{0,5} [1-9]"# } else { "[0-9]{0,2} [1-9]" };
    let mut write = |low: u64, high: u64, rest: &str| {
        for digits in digit_patterns(low, high, decimal_places + 1) {
            let (integer_part, fraction_part) = digits.split_at(digits.len() - decimal_places);
            let point = if decimal_places == 0 {
                String::new()
            } else {
                format!(" \".\" {}", to_gbnf(fraction_part))
            };
            let alternative = format!("{sign}{}{point} {rest}", to_gbnf(integer_part));
            alternatives.push(alternative.trim_end().to_owned());
        }
    };
    if low_exclusive && low < high {
        write(low, low, something);
    }
    if low < high {
        write(low + u64::from(low_exclusive), high - 1, any_fraction);
    }
    if !high_exclusive && (low < high || low == high && !low_exclusive) {
        write(high, high, "");
    }
}
