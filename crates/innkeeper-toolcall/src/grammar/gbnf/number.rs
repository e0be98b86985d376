//! Numbers: whole ones and others, between bounds.

use serde_json::{Map, Value};

use super::convert::Converter;
use super::range::{patterns, written};
use super::rules::Shared;
use crate::grammar::Effect;

/// The largest size of a bound, without its point: what is larger has more digits than are written.
const LARGEST: i64 = 10_i64.pow(15);

/// The most digits behind the point of a bound.
const PLACES: usize = 6;

/// A bound as a decimal number.
#[derive(Debug, Clone, Copy)]
struct Bound {
    /// All its digits, without the point.
    digits: i64,
    /// How many of them stand behind the point.
    places: usize,
    /// Whether the bound itself is out.
    open: bool,
}

impl Bound {
    /// From a number's text; numbers with an exponent, too long or too large have none.
    fn read(text: &str, open: bool) -> Option<Self> {
        let (whole, behind) = text.split_once('.').unwrap_or((text, ""));
        let behind = behind.trim_end_matches('0');
        let digits: i64 = format!("{whole}{behind}").parse().ok()?;
        let fits = behind.len() <= PLACES && digits.unsigned_abs() <= LARGEST.unsigned_abs();
        fits.then_some(Self { digits, places: behind.len(), open })
    }

    /// Its digits with so many behind the point.
    fn scaled(self, places: usize) -> i64 {
        self.digits.saturating_mul(10_i64.pow((places - self.places) as u32))
    }
}

/// One side of zero: sizes from `low` to `high`, each with so many digits behind the point.
struct Side {
    sign: &'static str,
    low: u64,
    high: u64,
    low_open: bool,
    high_open: bool,
}

impl Converter<'_> {
    /// A whole number of the schema.
    pub(super) fn integer(&mut self, schema: &Map<String, Value>, pointer: &str) -> String {
        let (low, high) = self.bounds(schema, pointer);
        if low.is_none() && high.is_none() {
            return self.rules.shared(Shared::Integer);
        }
        let inner = |bound: Bound, up: i64| {
            let unit = 10_i64.pow(bound.places as u32);
            let down = bound.digits.div_euclid(unit);
            match (bound.digits.rem_euclid(unit) == 0, up) {
                (true, _) => down + if bound.open { up } else { 0 },
                (false, 1) => down + 1,
                (false, _) => down,
            }
        };
        let low = low.map_or(-LARGEST, |bound| inner(bound, 1));
        let high = high.map_or(LARGEST, |bound| inner(bound, -1));
        let mut ways = Vec::new();
        for side in sides(low, high, false, false) {
            for places in patterns(side.low + u64::from(side.low_open), side.high, 1) {
                ways.push(format!("{}{}", side.sign, written(&places)));
            }
        }
        self.ways(&ways, pointer, Shared::Integer)
    }

    /// Any number of the schema.
    pub(super) fn number(&mut self, schema: &Map<String, Value>, pointer: &str) -> String {
        let (low, high) = self.bounds(schema, pointer);
        if low.is_none() && high.is_none() {
            return self.rules.shared(Shared::Number);
        }
        let places = [low, high].into_iter().flatten().map(|bound| bound.places).max().unwrap_or(0);
        let largest = Bound { digits: LARGEST, places: 0, open: false };
        let least = Bound { digits: -LARGEST, ..largest };
        let (low, high) = (low.unwrap_or(least), high.unwrap_or(largest));
        let mut ways = Vec::new();
        for side in sides(low.scaled(places), high.scaled(places), low.open, high.open) {
            decimals(&side, places, &mut ways);
        }
        self.ways(&ways, pointer, Shared::Number)
    }

    /// The alternatives as one rule; without any, no number is right.
    fn ways(&mut self, ways: &[String], pointer: &str, otherwise: Shared) -> String {
        if ways.is_empty() {
            self.lose(pointer, "minimum", Effect::Dropped);
            return self.rules.shared(otherwise);
        }
        self.rules.rule("range", ways.join(" | "))
    }

    /// The narrower of each kind of bound; those that cannot be held are reported.
    fn bounds(
        &mut self,
        schema: &Map<String, Value>,
        pointer: &str,
    ) -> (Option<Bound>, Option<Bound>) {
        let mut read = |plain: &str, exclusive: &str, lower: bool| {
            let draft_4 = schema.get(exclusive) == Some(&Value::Bool(true));
            let mut found: Option<Bound> = None;
            for (keyword, open) in [(plain, draft_4), (exclusive, true)] {
                let Some(value) = schema.get(keyword).filter(|value| !value.is_boolean()) else {
                    continue;
                };
                let number = value.as_number().map(ToString::to_string);
                let Some(bound) = number.and_then(|text| Bound::read(&text, open)) else {
                    self.lose(pointer, keyword, Effect::Dropped);
                    continue;
                };
                let narrower = found.is_none_or(|other| {
                    let (new, old) = (bound.scaled(PLACES), other.scaled(PLACES));
                    if new == old { open } else { (new > old) == lower }
                });
                found = if narrower { Some(bound) } else { found };
            }
            found
        };
        (read("minimum", "exclusiveMinimum", true), read("maximum", "exclusiveMaximum", false))
    }
}

/// What of a range is on either side of zero; zero itself, having no sign, is on the upper one.
fn sides(low: i64, high: i64, low_open: bool, high_open: bool) -> Vec<Side> {
    let mut sides = Vec::new();
    if low < 0 {
        let (end, open) = if high < 0 { (high.unsigned_abs(), high_open) } else { (0, true) };
        let high = low.unsigned_abs();
        sides.push(Side { sign: "\"-\" ", low: end, high, low_open: open, high_open: low_open });
    }
    if let Ok(high) = u64::try_from(high) {
        let (start, open) = if low < 0 { (0, false) } else { (low.unsigned_abs(), low_open) };
        sides.push(Side { sign: "", low: start, high, low_open: open, high_open });
    }
    sides
}

/// The numbers of one side: the smallest size with something behind it where it is out itself, the
/// sizes between with anything behind them, and the largest.
fn decimals(side: &Side, places: usize, ways: &mut Vec<String>) {
    let Side { sign, low, high, low_open, high_open } = *side;
    let behind = if places == 0 { r#"("." [0-9]{1,6})?"# } else { "[0-9]{0,3}" };
    let something = if places == 0 { r#""." [0-9]{0,5} [1-9]"# } else { "[0-9]{0,2} [1-9]" };
    let mut write = |low: u64, high: u64, rest: &str| {
        for digits in patterns(low, high, places + 1) {
            let (whole, part) = digits.split_at(digits.len() - places);
            let point =
                if places == 0 { String::new() } else { format!(" \".\" {}", written(part)) };
            let way = format!("{sign}{}{point} {rest}", written(whole));
            ways.push(way.trim_end().to_owned());
        }
    };
    if low_open && low < high {
        write(low, low, something);
    }
    if low < high {
        write(low + u64::from(low_open), high - 1, behind);
    }
    if !high_open && (low < high || low == high && !low_open) {
        write(high, high, "");
    }
}
