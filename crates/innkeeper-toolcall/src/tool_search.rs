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
use terms::{QueryTerms, extract_query_terms, extract_terms};

/// Maximum number of results of a search.
pub const MAX_SEARCH_RESULTS: usize = 100;

/// Maximum number of bytes of a query; the rest of a longer query is ignored.
const MAX_QUERY_BYTES: usize = 16 << 10;

/// Maximum number of different terms of a query; further terms are ignored.
const MAX_QUERY_TERMS: usize = 512;

/// Maximum number of bytes of the texts of all tools, and of one tool. Each tool has the same share.
const MAX_INDEXED_BYTES: usize = 8 << 20;
const MAX_TOOL_BYTES: usize = 8 << 10;

// The weights are tuned on one half of the benchmarks of `cargo xtask eval-tool-search`; the report
// shows the other half.

const FIELD_WEIGHTS: [f64; FIELD_COUNT] = [1.7, 0.8, 0.35, 0.55];

/// The effect of the length of each field: 0 has no effect, 1 has the full effect.
const LENGTH_NORMALIZATION: [f64; FIELD_COUNT] = [0.25, 1.0, 0.7, 0.4];

/// The frequency of a term at which the term has half of its maximum effect.
const SATURATION: f64 = 0.9;

/// The effect of a term that occurs `n` times in the query is `n` to the power of this number.
const REPETITION_EXPONENT: f64 = 0.3;

/// The weight of two words of the query without the space between them.
const JOINED_WEIGHT: f64 = 0.5;

/// The increase of the score of a tool if the query has all terms of its name.
const NAME_BONUS: f64 = 0.25;

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

#[derive(Clone, Copy, Debug)]
struct Posting {
    /// The position of the tool in the list.
    tool: usize,
    /// The part of the tool's score if the query has the term.
    score: f64,
    /// The share of the term in the name of the tool, by the rarity of the name's terms.
    name_share: f64,
}

#[derive(Clone, Copy, Default)]
struct Score {
    sum: f64,
    /// The share of the tool's name that the query has.
    name_share: f64,
}

impl Score {
    fn total(self) -> f64 {
        self.sum * (1.0 + NAME_BONUS * self.name_share.min(1.0))
    }
}

impl ToolIndex {
    /// Indexes the tools. The time and the memory are linear in the number of tools: each tool
    /// contributes at most 8 KiB of text, and all tools together about 8 MiB.
    pub fn new(tools: &Tools) -> Self {
        let max_bytes = (MAX_INDEXED_BYTES / tools.len().max(1)).min(MAX_TOOL_BYTES);
        let counts: Vec<_> =
            tools.iter().map(|tool| TermCounts::new(&field_texts(tool, max_bytes))).collect();
        let mean_lengths = mean_lengths(&counts);
        let mut tools_by_term: HashMap<&str, usize> = HashMap::new();
        for term in counts.iter().flat_map(|counts| counts.by_term.keys()) {
            *tools_by_term.entry(term).or_default() += 1;
        }
        let rarity = |term: &str| {
            let with = tools_by_term.get(term).copied().unwrap_or_default();
            inverse_document_frequency(with, tools.len())
        };
        let mut postings: HashMap<String, Vec<Posting>> = HashMap::new();
        for (tool, counts) in counts.iter().enumerate() {
            let name_terms = counts.by_term.iter().filter(|(_, by_field)| by_field[0] > 0.0);
            let name_rarity: f64 = name_terms.map(|(term, _)| rarity(term)).sum();
            for (term, frequencies) in &counts.by_term {
                let frequency = weighted_frequency(*frequencies, counts.lengths, mean_lengths);
                let rarity = rarity(term);
                let score = rarity * frequency / (frequency + SATURATION);
                let name_share = if frequencies[0] > 0.0 { rarity / name_rarity } else { 0.0 };
                let posting = Posting { tool, score, name_share };
                postings.entry(term.clone()).or_default().push(posting);
            }
        }
        Self { names: tools.iter().map(|tool| tool.name.clone()).collect(), postings }
    }

    /// Returns the names of the tools that match the query, best first: at most `limit` names and at
    /// most [`MAX_SEARCH_RESULTS`]. The search reads the first 16 KiB of the query and at most 512
    /// different terms.
    pub fn search(&self, query: &str, limit: usize) -> Vec<&str> {
        let mut scores = vec![Score::default(); self.names.len()];
        for (term, weight) in weighted_terms(query) {
            for posting in self.postings.get(&term).into_iter().flatten() {
                let score = &mut scores[posting.tool];
                score.sum += weight * posting.score;
                score.name_share += posting.name_share;
            }
        }
        let totals: Vec<f64> = scores.into_iter().map(Score::total).collect();
        let mut found: Vec<usize> = (0..totals.len()).filter(|tool| totals[*tool] > 0.0).collect();
        // The sort is stable, so equal scores keep the order of the list.
        found.sort_by(|one, other| totals[*other].total_cmp(&totals[*one]));
        found.truncate(limit.min(MAX_SEARCH_RESULTS));
        found.into_iter().map(|tool| self.names[tool].as_str()).collect()
    }
}

/// Returns the different terms of a query with their weights, in the order of the query.
fn weighted_terms(query: &str) -> Vec<(String, f64)> {
    let QueryTerms { terms, joined_terms } = extract_query_terms(prefix(query, MAX_QUERY_BYTES));
    let mut counts: HashMap<&str, f64> = HashMap::new();
    let mut different: Vec<&str> = Vec::new();
    for term in &terms {
        let count = counts.entry(term).or_default();
        if *count == 0.0 {
            different.push(term);
        }
        *count += 1.0;
    }
    let weighted =
        different.into_iter().map(|term| (term.to_owned(), counts[term].powf(REPETITION_EXPONENT)));
    let mut seen: HashSet<&str> = counts.keys().copied().collect();
    let joined = joined_terms.iter().filter(|term| seen.insert(term));
    let joined = joined.map(|term| (term.clone(), JOINED_WEIGHT));
    weighted.chain(joined).take(MAX_QUERY_TERMS).collect()
}

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
    (0..FIELD_COUNT)
        .map(|field| {
            let frequency = frequencies[field];
            if frequency == 0.0 {
                return 0.0;
            }
            let normalization = LENGTH_NORMALIZATION[field];
            let relative_length = lengths[field] / mean_lengths[field];
            FIELD_WEIGHTS[field] * frequency
                / (1.0 - normalization + normalization * relative_length)
        })
        .sum()
}

fn inverse_document_frequency(tools_with_term: usize, tools: usize) -> f64 {
    let with = tools_with_term as f64;
    let all = tools as f64;
    ((all - with + 0.5) / (with + 0.5)).ln_1p()
}

#[cfg(test)]
mod tests;
