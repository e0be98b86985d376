//! Whether two texts state the same facts: numbers, names and negations.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::words::{FILLERS, MAX_QUOTED_WORDS, Text, Token, TokenKind};

/// Pairs of words that contradict each other in the same place.
const ANTONYMS: &[(&str, &str)] = &[
    ("enabled", "disabled"),
    ("enable", "disable"),
    ("enables", "disables"),
    ("up", "down"),
    ("on", "off"),
    ("open", "closed"),
    ("opened", "closed"),
    ("increased", "decreased"),
    ("increase", "decrease"),
    ("rose", "fell"),
    ("higher", "lower"),
    ("more", "less"),
    ("more", "fewer"),
    ("before", "after"),
    ("above", "below"),
    ("allowed", "denied"),
    ("allowed", "forbidden"),
    ("accepted", "rejected"),
    ("approved", "rejected"),
    ("present", "absent"),
    ("start", "stop"),
    ("started", "stopped"),
    ("starts", "stops"),
    ("running", "stopped"),
    ("online", "offline"),
    ("am", "pm"),
    ("left", "right"),
    ("first", "last"),
    ("maximum", "minimum"),
    ("added", "removed"),
    ("created", "deleted"),
    ("all", "some"),
    ("always", "sometimes"),
    ("better", "worse"),
    ("larger", "smaller"),
    ("safe", "dangerous"),
    ("public", "private"),
    ("an", "aus"),
    ("aktiviert", "deaktiviert"),
    ("vor", "nach"),
    ("mehr", "weniger"),
    ("offen", "geschlossen"),
];

/// Words of languages that write every noun with a capital.
const CAPITALIZING: &[&str] = &["der", "die", "das", "und", "ist", "ein", "eine", "nicht"];

/// The share that remains if a name written with a capital is another one. The capital may have other
/// reasons.
const OTHER_PROPER: f64 = 0.5;

/// Returns the share of the facts that both texts have; 1 without facts, `None` if the texts
/// contradict each other.
pub(super) fn agreement(left: &Text, right: &Text, is_ordered: bool) -> Option<f64> {
    let mut total = Shares::default();
    for kind in [TokenKind::Number, TokenKind::Name] {
        let [left, right] = [left, right].map(|text| texts(&text.tokens, kind));
        let common = left.intersection(&right).count();
        total.add(common, left.len() - common, right.len() - common)?;
    }
    // A mark is often decoration, so it only counts if both texts have another one.
    let [left_marks, right_marks] =
        [left, right].map(|text| texts(&text.tokens, TokenKind::Symbol));
    Shares::default().add(
        0,
        left_marks.difference(&right_marks).count(),
        right_marks.difference(&left_marks).count(),
    )?;
    let [left_words, right_words] = [left, right].map(words);
    if is_negated(left) != is_negated(right) || have_antonyms(&left_words, &right_words) {
        return None;
    }
    if is_ordered {
        let [left_only, right_only] =
            [foreign_quotations(left, right), foreign_quotations(right, left)];
        total.add(0, left_only, right_only)?;
        let [left, right] = [left, right].map(|text| statements(&text.tokens));
        let is_contradicted = left
            .iter()
            .any(|(words, facts)| right.get(words).is_some_and(|other| contradict(facts, other)));
        if is_contradicted {
            return None;
        }
    }
    let has_other_proper = has_foreign_proper(left, &right_words)
        && has_foreign_proper(right, &left_words)
        && !CAPITALIZING.iter().any(|word| left_words.contains(word) || right_words.contains(word));
    Some(total.common_share() * if has_other_proper { OTHER_PROPER } else { 1.0 })
}

/// The numbers of facts that both texts have, and that one has.
#[derive(Default)]
struct Shares {
    common: usize,
    single: usize,
}

impl Shares {
    /// Counts facts; `None` if both texts have facts that the other one does not have.
    fn add(&mut self, common: usize, left_only: usize, right_only: usize) -> Option<()> {
        self.common += common;
        self.single += left_only + right_only;
        (left_only == 0 || right_only == 0).then_some(())
    }

    fn common_share(&self) -> f64 {
        match self.common + self.single {
            0 => 1.0,
            all => self.common as f64 / all as f64,
        }
    }
}

fn texts(tokens: &[Token], kind: TokenKind) -> HashSet<&str> {
    tokens.iter().filter(|token| token.kind == kind).map(|token| &*token.text).collect()
}

fn words(text: &Text) -> HashSet<&str> {
    text.tokens.iter().map(|token| &*token.text).collect()
}

/// Returns whether one text has a word, and only the other one has its contrary.
fn have_antonyms(left: &HashSet<&str>, right: &HashSet<&str>) -> bool {
    let only_left = |word: &str| left.contains(word) && !right.contains(word);
    let only_right = |word: &str| right.contains(word) && !left.contains(word);
    // `locked` and `unlocked`.
    let has_prefix = |word: &&str, is_in: &dyn Fn(&str) -> bool| {
        word.strip_prefix("un").is_some_and(|rest| rest.len() > 2 && is_in(rest))
    };
    ANTONYMS.iter().any(|(one, other)| {
        (only_left(one) && only_right(other)) || (only_left(other) && only_right(one))
    }) || left.iter().any(|word| only_left(word) && has_prefix(word, &only_right))
        || right.iter().any(|word| only_right(word) && has_prefix(word, &only_left))
}

/// Returns whether a name written with a capital does not occur in the other text.
fn has_foreign_proper(text: &Text, other: &HashSet<&str>) -> bool {
    text.tokens.iter().any(|token| token.is_proper && !other.contains(&*token.text))
}

fn is_negated(text: &Text) -> bool {
    text.tokens.iter().any(|token| token.kind == TokenKind::Negation)
}

/// Returns the number of quotations whose words do not occur in the other text.
fn foreign_quotations(text: &Text, other: &Text) -> usize {
    let words: Vec<&str> = other.tokens.iter().map(|token| &*token.text).collect();
    let lengths: BTreeSet<usize> = text.quotations.iter().map(Vec::len).collect();
    let mut known: HashSet<&[&str]> = HashSet::new();
    for length in lengths.into_iter().filter(|length| *length <= MAX_QUOTED_WORDS) {
        known.extend(words.windows(length));
    }
    let foreign: BTreeSet<Vec<&str>> = text
        .quotations
        .iter()
        .map(|quotation| quotation.iter().map(String::as_str).collect())
        .filter(|quotation: &Vec<&str>| !known.contains(quotation.as_slice()))
        .collect();
    foreign.len()
}

/// The facts of a clause, and whether the clause is negated. Each fact stands with the word before
/// it, because `from a to b` and `to b from a` are the same.
type ClauseFacts<'t> = (Vec<(&'t str, &'t str)>, bool);

/// Returns the facts of each clause by its other words. `the total is 5` and `the total is 7` have the
/// same words, and so contradict each other, wherever else the texts have a 5 and a 7.
fn statements(tokens: &[Token]) -> BTreeMap<Vec<&str>, BTreeSet<ClauseFacts<'_>>> {
    let mut clauses: Vec<Clause<'_>> = Vec::new();
    for part in tokens.chunk_by(|left, right| left.clause == right.clause) {
        let clause = Clause::new(part);
        match clauses.last_mut() {
            // The further items of a list: `the files are a, b and c`.
            Some(last) if clause.words.is_empty() && !last.facts.is_empty() => {
                last.facts.extend(clause.facts);
                last.is_list = true;
            }
            _ => clauses.push(clause),
        }
    }
    let mut statements: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for clause in clauses.into_iter().filter(|clause| !clause.words.is_empty()) {
        let mut facts = clause.facts;
        if clause.is_list {
            for (before, _) in &mut facts {
                *before = "";
            }
            facts.sort_unstable();
        } else {
            facts.sort_by_key(|(before, _)| *before);
        }
        statements.entry(clause.words).or_default().insert((facts, clause.is_negated));
    }
    statements
}

/// Returns whether both sides say of the same words what the other side does not say. Words without
/// facts contradict no facts: a fact may be left out.
fn contradict(left: &BTreeSet<ClauseFacts<'_>>, right: &BTreeSet<ClauseFacts<'_>>) -> bool {
    let [left, right] = [(left, right), (right, left)].map(|(these, others)| {
        let mut foreign = Foreign::default();
        for (facts, is_negated) in these.difference(others) {
            foreign.has_facts |= !facts.is_empty();
            foreign.has_negated |= *is_negated;
            foreign.has_affirmed |= !*is_negated;
        }
        foreign
    });
    (left.has_facts && right.has_facts)
        || (left.has_negated && right.has_affirmed)
        || (left.has_affirmed && right.has_negated)
}

/// What only one of two texts says of the same words.
#[derive(Default)]
struct Foreign {
    has_facts: bool,
    has_negated: bool,
    has_affirmed: bool,
}

struct Clause<'t> {
    /// The words that are no facts and no fillers, sorted.
    words: Vec<&'t str>,
    facts: Vec<(&'t str, &'t str)>,
    is_negated: bool,
    is_list: bool,
}

impl<'t> Clause<'t> {
    fn new(tokens: &'t [Token]) -> Self {
        let mut clause =
            Self { words: Vec::new(), facts: Vec::new(), is_negated: false, is_list: false };
        let mut before = "";
        for token in tokens {
            match token.kind {
                TokenKind::Word if FILLERS.contains(&&*token.text) => {}
                TokenKind::Word | TokenKind::Symbol => {
                    before = &token.text;
                    clause.words.push(before);
                }
                TokenKind::Number | TokenKind::Name => clause.facts.push((before, &token.text)),
                TokenKind::Negation => clause.is_negated = true,
            }
        }
        clause.words.sort_unstable();
        clause
    }
}
