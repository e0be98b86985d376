//! BM25 over the name and the description as one text, for comparison.

use std::collections::{BTreeMap, HashMap};

use innkeeper_toolcall::Tools;

/// The usual parameters of BM25.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// BM25 without fields, stems and stop words. A word is a run of letters and digits in lower case.
pub(crate) struct PlainBm25<'t> {
    names: Vec<&'t str>,
    /// The number of words of each tool.
    lengths: Vec<f64>,
    /// The frequency of each word by tool.
    frequencies: HashMap<String, BTreeMap<usize, f64>>,
}

impl<'t> PlainBm25<'t> {
    pub(crate) fn new(tools: &'t Tools) -> Self {
        let mut frequencies: HashMap<String, BTreeMap<usize, f64>> = HashMap::new();
        let (mut names, mut lengths) = (Vec::new(), Vec::new());
        for (at, tool) in tools.iter().enumerate() {
            let words = split_words(&format!("{} {}", tool.name, tool.description));
            names.push(tool.name.as_str());
            lengths.push(words.len() as f64);
            for word in words {
                *frequencies.entry(word).or_default().entry(at).or_default() += 1.0;
            }
        }
        Self { names, lengths, frequencies }
    }

    pub(crate) fn search(&self, query: &str, limit: usize) -> Vec<&'t str> {
        let count = self.names.len() as f64;
        let mean_length = self.lengths.iter().sum::<f64>() / count;
        let mut scores = vec![0.0; self.names.len()];
        for tools in split_words(query).iter().filter_map(|word| self.frequencies.get(word)) {
            let with = tools.len() as f64;
            let rarity = ((count - with + 0.5) / (with + 0.5)).ln_1p();
            for (tool, frequency) in tools {
                let length = 1.0 - B + B * self.lengths[*tool] / mean_length;
                scores[*tool] += rarity * frequency * (K1 + 1.0) / (frequency + K1 * length);
            }
        }
        let mut found: Vec<usize> = (0..scores.len()).filter(|tool| scores[*tool] > 0.0).collect();
        found.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
        found.truncate(limit);
        found.into_iter().map(|tool| self.names[tool]).collect()
    }
}

fn split_words(text: &str) -> Vec<String> {
    let words = text.split(|character: char| !character.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}
