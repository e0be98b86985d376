//! When providers shut models down.
//!
//! Sources: the deprecation page of OpenAI's API documentation, and the retirement dates of Gemini
//! models in Google's documentation of Vertex AI, both as of November 2026. A model that is not in
//! the table has no announced date.

use chrono::NaiveDate;

use ModelName::{Dated, Family};

/// Models of one provider with the same date.
struct Shutdown {
    provider: &'static str,
    date: (i32, u32, u32),
    models: &'static [ModelName],
}

enum ModelName {
    /// A model and its dated versions, such as `gpt-4o` and `gpt-4o-2024-08-06`.
    Dated(&'static str),
    /// A model and its variants, such as `gpt-5` and `gpt-5-mini`, but not `gpt-5.1`.
    Family(&'static str),
}

const SHUTDOWNS: &[Shutdown] = &[
    Shutdown {
        provider: "openai",
        date: (2026, 10, 23),
        models: &[
            Dated("gpt-4-turbo"),
            Dated("gpt-4"),
            Dated("gpt-3.5-turbo"),
            Dated("o1"),
            Dated("o3-mini"),
            Dated("o4-mini"),
            Dated("gpt-4.1-nano"),
        ],
    },
    Shutdown { provider: "openai", date: (2026, 12, 11), models: &[Family("gpt-5"), Dated("o3")] },
    Shutdown {
        provider: "openai",
        date: (2027, 1, 14),
        models: &[Dated("gpt-4o"), Dated("gpt-4o-mini"), Dated("gpt-4.1")],
    },
    Shutdown {
        provider: "openai",
        date: (2027, 4, 1),
        models: &[Dated("gpt-5.1"), Dated("gpt-5.4-nano")],
    },
    Shutdown { provider: "gemini", date: (2026, 10, 20), models: &[Family("gemini-2.5")] },
];

impl ModelName {
    fn matches(&self, model: &str) -> bool {
        let (name, is_variant): (&str, fn(char) -> bool) = match self {
            Dated(name) => (name, |character| character.is_ascii_digit() || character == '-'),
            Family(name) => (name, |_| true),
        };
        match model.strip_prefix(name) {
            Some("") => true,
            Some(rest) => rest.starts_with('-') && rest.chars().all(is_variant),
            None => false,
        }
    }
}

/// Returns the date on which a provider shuts a model down; `None` if none is known.
pub(super) fn shutdown_date(provider: &str, model: &str) -> Option<NaiveDate> {
    // Gemini's API has the names of models as paths.
    let model = model.strip_prefix("models/").unwrap_or(model);
    let found = SHUTDOWNS.iter().find(|shutdown| {
        shutdown.provider == provider && shutdown.models.iter().any(|name| name.matches(model))
    });
    let (year, month, day) = found?.date;
    NaiveDate::from_ymd_opt(year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(provider: &str, model: &str) -> Option<String> {
        shutdown_date(provider, model).map(|date| date.to_string())
    }

    #[test]
    fn every_date_of_the_table_exists() {
        for Shutdown { date: (year, month, day), .. } in SHUTDOWNS {
            assert!(NaiveDate::from_ymd_opt(*year, *month, *day).is_some());
        }
    }

    #[test]
    fn a_model_has_the_date_of_its_name_and_not_of_a_longer_one() {
        for (model, expected) in [
            ("gpt-4", "2026-10-23"),
            ("gpt-4-0613", "2026-10-23"),
            ("gpt-4-turbo-2024-04-09", "2026-10-23"),
            ("o1", "2026-10-23"),
            ("gpt-4.1-nano", "2026-10-23"),
            ("gpt-5", "2026-12-11"),
            ("gpt-5-mini", "2026-12-11"),
            ("gpt-5-2025-08-07", "2026-12-11"),
            ("o3", "2026-12-11"),
            ("gpt-4o", "2027-01-14"),
            ("gpt-4o-mini-2024-07-18", "2027-01-14"),
            ("gpt-4.1", "2027-01-14"),
            ("gpt-5.1", "2027-04-01"),
            ("gpt-5.4-nano", "2027-04-01"),
        ] {
            assert_eq!(date("openai", model).as_deref(), Some(expected), "{model}");
        }
        for model in ["gpt-5.5", "gpt-5.6-sol", "gpt-6-luna", "gpt-5.4", "gpt-4.1-mini", "o1x"] {
            assert_eq!(date("openai", model), None, "{model}");
        }
    }

    #[test]
    fn a_provider_has_only_its_own_models() {
        assert_eq!(date("gemini", "gemini-2.5-flash").as_deref(), Some("2026-10-20"));
        assert_eq!(date("gemini", "models/gemini-2.5-pro").as_deref(), Some("2026-10-20"));
        assert_eq!(date("gemini", "gemini-3.8-flash"), None);
        assert_eq!(date("openai-compatible", "gpt-4o"), None);
    }
}
