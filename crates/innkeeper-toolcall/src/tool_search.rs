//! Search for tools: ranks the tools of a list for a query in natural language.
//!
//! The rank is BM25 over several weighted fields (BM25F): the words of the name, the description, the
//! names of the parameters, and the texts of the parameters. No library has the fields: `bm25` ranks
//! one text per document. `cargo xtask eval-tool-search` measures the quality.

mod fields;
mod stem;
mod terms;

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::tool::Tools;
use fields::{FIELD_COUNT, field_texts, prefix};
use terms::extract_terms;

/// Maximum number of results of a search.
pub const MAX_SEARCH_RESULTS: usize = 100;

/// Maximum number of bytes of a query; the rest of a longer query is ignored.
const MAX_QUERY_BYTES: usize = 16 << 10;

/// Maximum number of different terms of a query; further terms are ignored.
const MAX_QUERY_TERMS: usize = 512;

/// Maximum number of bytes of the texts of all tools, and of one tool. Each tool has the same share.
const MAX_INDEXED_BYTES: usize = 16 << 20;
const MAX_TOOL_BYTES: usize = 8 << 10;

/// The weight of each field.
const FIELD_WEIGHTS: [f64; FIELD_COUNT] = [2.0, 1.0, 0.5, 0.5];

/// The effect of the length of each field: 0 has no effect, 1 has the full effect.
const LENGTH_NORMALIZATION: [f64; FIELD_COUNT] = [0.75, 0.75, 0.75, 0.75];

/// The frequency of a term at which the term has half of its maximum effect.
const SATURATION: f64 = 1.2;

/// An index over a list of tools.
///
/// A tool is found if its name, its description or one of its parameters has a word of the query, in
/// any script. English words are compared by their stems; case and accents do not matter. Tools with
/// equal scores are in the order of the list.
///
/// # Examples
///
/// ```
/// use innkeeper_toolcall::{Tool, ToolIndex};
/// use serde_json::json;
///
/// let tools = [
///     Tool::new("fs.read_file", "Returns the content of a file.", json!({"type": "object"})),
///     Tool::new("web.forecast", "Predicts the weather of a city.", json!({"type": "object"})),
/// ];
/// let index = ToolIndex::new(&tools.into_iter().collect());
/// assert_eq!(index.search("What will the weather be in Graz?", 5), ["web.forecast"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToolIndex {
    names: Vec<String>,
    postings: HashMap<String, Vec<Posting>>,
}

/// A tool with a term.
#[derive(Clone, Copy, Debug)]
struct Posting {
    /// The position of the tool in the list.
    tool: usize,
    /// The part of the tool's score if the query has the term.
    score: f64,
}

impl ToolIndex {
    /// Indexes the tools. The time and the memory are linear in the number of tools: each tool
    /// contributes at most 8 KiB of text, and all tools together about 16 MiB.
    pub fn new(tools: &Tools) -> Self {
        let max_bytes = (MAX_INDEXED_BYTES / tools.len().max(1)).min(MAX_TOOL_BYTES);
        let counts: Vec<_> =
            tools.iter().map(|tool| TermCounts::new(&field_texts(tool, max_bytes))).collect();
        let mean_lengths = mean_lengths(&counts);
        let mut postings: HashMap<String, Vec<Posting>> = HashMap::new();
        for (tool, counts) in counts.into_iter().enumerate() {
            let lengths = counts.lengths;
            for (term, frequencies) in counts.by_term {
                let frequency = weighted_frequency(frequencies, lengths, mean_lengths);
                let score = frequency / (frequency + SATURATION);
                postings.entry(term).or_default().push(Posting { tool, score });
            }
        }
        for list in postings.values_mut() {
            let rarity = inverse_document_frequency(list.len(), tools.len());
            list.iter_mut().for_each(|posting| posting.score *= rarity);
        }
        Self { names: tools.iter().map(|tool| tool.name.clone()).collect(), postings }
    }

    /// Returns the names of the tools that match the query, best first: at most `limit` names and at
    /// most [`MAX_SEARCH_RESULTS`]. The search reads the first 16 KiB of the query and at most 512
    /// different terms.
    pub fn search(&self, query: &str, limit: usize) -> Vec<&str> {
        let mut scores = vec![0.0; self.names.len()];
        let mut seen = HashSet::new();
        for term in extract_terms(prefix(query, MAX_QUERY_BYTES)) {
            if seen.len() == MAX_QUERY_TERMS {
                break;
            }
            if let Some(postings) = self.postings.get(&term)
                && !seen.contains(&term)
            {
                postings.iter().for_each(|posting| scores[posting.tool] += posting.score);
            }
            seen.insert(term);
        }
        let mut found: Vec<usize> = (0..scores.len()).filter(|tool| scores[*tool] > 0.0).collect();
        // The sort is stable, so equal scores keep the order of the list.
        found.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
        found.truncate(limit.min(MAX_SEARCH_RESULTS));
        found.into_iter().map(|tool| self.names[tool].as_str()).collect()
    }
}

/// The terms of one tool.
struct TermCounts {
    /// The number of occurrences by field.
    by_term: BTreeMap<String, [f64; FIELD_COUNT]>,
    /// The number of terms by field.
    lengths: [f64; FIELD_COUNT],
}

impl TermCounts {
    fn new(texts: &[String; FIELD_COUNT]) -> Self {
        let mut counts = Self { by_term: BTreeMap::new(), lengths: [0.0; FIELD_COUNT] };
        for (field, text) in texts.iter().enumerate() {
            for term in extract_terms(text) {
                counts.by_term.entry(term).or_default()[field] += 1.0;
                counts.lengths[field] += 1.0;
            }
        }
        counts
    }
}

fn mean_lengths(counts: &[TermCounts]) -> [f64; FIELD_COUNT] {
    std::array::from_fn(|field| {
        let sum: f64 = counts.iter().map(|counts| counts.lengths[field]).sum();
        sum / counts.len().max(1) as f64
    })
}

/// Returns the sum of a term's frequencies in the fields, each divided by the relative length of its
/// field.
fn weighted_frequency(
    frequencies: [f64; FIELD_COUNT],
    lengths: [f64; FIELD_COUNT],
    mean_lengths: [f64; FIELD_COUNT],
) -> f64 {
    let weighted = |field: usize| {
        let frequency = frequencies[field];
        if frequency == 0.0 {
            return 0.0;
        }
        let normalization = LENGTH_NORMALIZATION[field];
        let relative_length = lengths[field] / mean_lengths[field];
        FIELD_WEIGHTS[field] * frequency / (1.0 - normalization + normalization * relative_length)
    };
    (0..FIELD_COUNT).map(weighted).sum()
}

fn inverse_document_frequency(tools_with_term: usize, tools: usize) -> f64 {
    let (with, all) = (tools_with_term as f64, tools as f64);
    ((all - with + 0.5) / (with + 0.5)).ln_1p()
}

#[cfg(test)]
mod tests;
