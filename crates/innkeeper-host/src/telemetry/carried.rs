//! The trace context of one call, as it stands in its `_meta`.

use opentelemetry::propagation::Injector;

/// The names that MCP leaves to the contexts of W3C; any other bare name in `_meta` is its own.
const FIELDS: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// The longest value in bytes: what the W3C allows for baggage; traces need far less.
const LONGEST: usize = 8192;

/// What a propagator has given, without what may not stand there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Carried([Option<String>; FIELDS.len()]);

impl Carried {
    /// The fields with their values.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let fields = FIELDS.into_iter().zip(&self.0);
        fields.filter_map(|(field, value)| Some((field, value.as_deref()?)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
}

impl Injector for Carried {
    fn set(&mut self, key: &str, value: String) {
        let at = FIELDS.iter().position(|field| field.eq_ignore_ascii_case(key));
        if let Some(at) = at.filter(|_| !value.is_empty() && value.len() <= LONGEST) {
            self.0[at] = Some(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_fields_of_w3c_are_carried_up_to_their_limit_and_no_others() {
        let mut carried = Carried::default();
        carried.set("tracestate", String::new());
        carried.set("progressToken", "7".to_owned());
        carried.set("b3", "0".to_owned());
        carried.set("baggage", "x".repeat(LONGEST + 1));
        assert!(carried.is_empty());
        carried.set("Traceparent", "00-1-2-01".to_owned());
        carried.set("baggage", "x".repeat(LONGEST));
        let names: Vec<&str> = carried.fields().map(|(name, _)| name).collect();
        assert_eq!(names, ["traceparent", "baggage"]);
    }
}
