//! GBNF parser for tests: checks a grammar and generates sentences.

use std::collections::{HashMap, HashSet};

use proptest::prelude::Rng;

/// An element of a rule.
#[derive(Debug, Clone)]
enum Symbol {
    Literal(String),
    CharClass { negated: bool, ranges: Vec<(char, char)> },
    RuleRef(String),
    Group(Vec<Vec<Self>>),
    Repetition(Box<Self>, u64, Option<u64>),
}

/// A parsed grammar.
#[derive(Debug)]
pub(crate) struct Grammar {
    rules: HashMap<String, Vec<Vec<Symbol>>>,
    /// Minimum depth of a sentence per rule.
    min_depths: HashMap<String, usize>,
}

struct GbnfReader<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
}

impl GbnfReader<'_> {
    fn skip_spaces(&mut self) {
        while self.chars.next_if_eq(&' ').is_some() {}
    }

    fn read_number(&mut self) -> Option<u64> {
        let mut digits = String::new();
        while let Some(digit) = self.chars.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        digits.parse().ok()
    }

    /// Reads one character of a literal or a class and decodes escapes.
    fn read_char(&mut self) -> Result<char, String> {
        match self.chars.next().ok_or("ends inside")? {
            '\\' => {
                let length = match self.chars.next().ok_or("ends after a backslash")? {
                    'n' => return Ok('\n'),
                    'r' => return Ok('\r'),
                    't' => return Ok('\t'),
                    it @ ('"' | '\\' | '[' | ']') => return Ok(it),
                    'x' => 2,
                    'u' => 4,
                    other => return Err(format!("unknown escape `{other}`")),
                };
                let hex: String = self.chars.by_ref().take(length).collect();
                let code = u32::from_str_radix(&hex, 16).map_err(|_| format!("bad `{hex}`"))?;
                char::from_u32(code).ok_or_else(|| format!("no character `{hex}`"))
            }
            '\n' => Err("a line ends inside".to_owned()),
            other => Ok(other),
        }
    }

    fn read_alternatives(&mut self) -> Result<Vec<Vec<Symbol>>, String> {
        let mut all = vec![Vec::new()];
        loop {
            self.skip_spaces();
            match self.chars.peek() {
                None | Some(')') => return Ok(all),
                Some('|') => {
                    self.chars.next();
                    all.push(Vec::new());
                }
                Some(_) => {
                    let symbol = self.read_repeated()?;
                    all.last_mut().unwrap().push(symbol);
                }
            }
        }
    }

    fn read_repeated(&mut self) -> Result<Symbol, String> {
        let symbol = self.read_symbol()?;
        let (least, max) = match self.chars.peek() {
            Some('?') => (0, Some(1)),
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('{') => {
                self.chars.next();
                let least = self.read_number().ok_or("a repetition without a number")?;
                let bound = match self.chars.next_if_eq(&',') {
                    Some(_) => self.read_number(),
                    None => Some(least),
                };
                if self.chars.peek() != Some(&'}') || bound.is_some_and(|max| max < least) {
                    return Err(format!("a repetition from {least} to {bound:?}"));
                }
                (least, bound)
            }
            _ => return Ok(symbol),
        };
        self.chars.next();
        Ok(Symbol::Repetition(Box::new(symbol), least, max))
    }

    fn read_symbol(&mut self) -> Result<Symbol, String> {
        match self.chars.next() {
            Some('"') => {
                let mut text = String::new();
                while self.chars.next_if_eq(&'"').is_none() {
                    text.push(self.read_char()?);
                }
                Ok(Symbol::Literal(text))
            }
            Some('[') => {
                let negated = self.chars.next_if_eq(&'^').is_some();
                let mut ranges = Vec::new();
                while self.chars.next_if_eq(&']').is_none() {
                    let from = self.read_char()?;
                    let to = match self.chars.next_if_eq(&'-') {
                        Some(_) if self.chars.peek() == Some(&']') => {
                            ranges.push(('-', '-'));
                            from
                        }
                        Some(_) => self.read_char()?,
                        None => from,
                    };
                    ranges.push((from, to));
                }
                if ranges.is_empty() {
                    Err("an empty class".to_owned())
                } else {
                    Ok(Symbol::CharClass { negated, ranges })
                }
            }
            Some('(') => {
                let inner = self.read_alternatives()?;
                self.chars.next_if_eq(&')').ok_or("a bracket is open")?;
                Ok(Symbol::Group(inner))
            }
            Some(first) if is_name_char(first) => {
                let mut name = String::from(first);
                while let Some(next) = self.chars.next_if(|character| is_name_char(*character)) {
                    name.push(next);
                }
                Ok(Symbol::RuleRef(name))
            }
            other => Err(format!("unexpected {other:?}")),
        }
    }
}

fn is_name_char(character: char) -> bool {
    character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-'
}

impl Grammar {
    /// Parses a grammar with one rule per line.
    ///
    /// # Errors
    ///
    /// Rejects grammars that llama.cpp rejects: invalid GBNF, missing and duplicate rules, left
    /// recursion, and more than 1,000 repetitions.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut rules = HashMap::new();
        for line in text.lines() {
            let (name, body) =
                line.split_once(" ::= ").ok_or_else(|| format!("no rule: {line}"))?;
            if name.is_empty() || !name.chars().all(is_name_char) {
                return Err(format!("the name `{name}`"));
            }
            let mut reader = GbnfReader { chars: body.chars().peekable() };
            let read = reader.read_alternatives().map_err(|error| format!("{error}: {line}"))?;
            if reader.chars.next().is_some() {
                return Err(format!("a bracket too much: {line}"));
            }
            if rules.insert(name.to_owned(), read).is_some() {
                return Err(format!("`{name}` twice"));
            }
        }
        let mut grammar = Self { rules, min_depths: HashMap::new() };
        grammar.check()?;
        Ok(grammar)
    }

    fn check(&mut self) -> Result<(), String> {
        if !self.rules.contains_key("root") {
            return Err("no root".to_owned());
        }
        for (name, alternatives) in &self.rules {
            alternatives
                .iter()
                .flatten()
                .try_for_each(|symbol| self.check_symbol(symbol))
                .map_err(|error| format!("{error} in `{name}`"))?;
            let mut reachable = HashSet::new();
            let mut next = self.leading_rules(alternatives);
            while let Some(first) = next.pop() {
                if first == *name {
                    return Err(format!("`{name}` begins with itself"));
                }
                if reachable.insert(first.clone()) {
                    next.extend(self.leading_rules(&self.rules[&first]));
                }
            }
        }
        // Propagates depths between rules until nothing changes.
        loop {
            let depths: Vec<(String, usize)> = self
                .rules
                .iter()
                .filter(|(name, _)| !self.min_depths.contains_key(*name))
                .filter_map(|(name, alternatives)| {
                    Some((name.clone(), self.min_depth(alternatives)? + 1))
                })
                .collect();
            if depths.is_empty() {
                break;
            }
            self.min_depths.extend(depths);
        }
        Ok(())
    }

    /// Whether a rule has no finite sentence, as for a schema without finite values.
    pub(crate) fn is_endless(&self) -> bool {
        self.rules.keys().any(|name| !self.min_depths.contains_key(name))
    }

    fn check_symbol(&self, symbol: &Symbol) -> Result<(), String> {
        match symbol {
            Symbol::Literal(_) | Symbol::CharClass { .. } => Ok(()),
            Symbol::RuleRef(name) if self.rules.contains_key(name) => Ok(()),
            Symbol::RuleRef(name) => Err(format!("`{name}` is no rule")),
            Symbol::Group(alternatives) => {
                alternatives.iter().flatten().try_for_each(|symbol| self.check_symbol(symbol))
            }
            Symbol::Repetition(_, least, max) if max.unwrap_or(*least) > 1_000 => {
                Err(format!("{least} to {max:?} repetitions"))
            }
            Symbol::Repetition(symbol, ..) => self.check_symbol(symbol),
        }
    }

    /// Rules that an alternative may start with.
    fn leading_rules(&self, alternatives: &[Vec<Symbol>]) -> Vec<String> {
        let mut firsts = Vec::new();
        for alternative in alternatives {
            for symbol in alternative {
                match symbol {
                    Symbol::Literal(_) | Symbol::CharClass { .. } => {}
                    Symbol::RuleRef(name) => firsts.push(name.clone()),
                    Symbol::Group(alternatives) => firsts.extend(self.leading_rules(alternatives)),
                    Symbol::Repetition(symbol, ..) => {
                        firsts.extend(self.leading_rules(&[vec![symbol.as_ref().clone()]]));
                    }
                }
                if !self.may_be_empty(symbol, 16) {
                    break;
                }
            }
        }
        firsts
    }

    fn may_be_empty(&self, symbol: &Symbol, depth: usize) -> bool {
        let empty = |alternatives: &[Vec<Symbol>]| {
            alternatives.iter().any(|alternative| {
                alternative.iter().all(|it| depth > 0 && self.may_be_empty(it, depth - 1))
            })
        };
        match symbol {
            Symbol::Literal(text) => text.is_empty(),
            Symbol::CharClass { .. } => false,
            Symbol::RuleRef(name) => {
                self.rules.get(name).is_some_and(|alternatives| empty(alternatives))
            }
            Symbol::Group(alternatives) => empty(alternatives),
            Symbol::Repetition(symbol, least, _) => *least == 0 || self.may_be_empty(symbol, depth),
        }
    }

    fn min_depth(&self, alternatives: &[Vec<Symbol>]) -> Option<usize> {
        let alternative_depth = |alternative: &Vec<Symbol>| {
            alternative
                .iter()
                .try_fold(0, |deepest: usize, symbol| Some(deepest.max(self.symbol_depth(symbol)?)))
        };
        alternatives.iter().filter_map(alternative_depth).min()
    }

    fn symbol_depth(&self, symbol: &Symbol) -> Option<usize> {
        match symbol {
            Symbol::Literal(_) | Symbol::CharClass { .. } | Symbol::Repetition(_, 0, _) => Some(0),
            Symbol::RuleRef(name) => self.min_depths.get(name).copied(),
            Symbol::Group(alternatives) => self.min_depth(alternatives),
            Symbol::Repetition(symbol, ..) => self.symbol_depth(symbol),
        }
    }

    /// Whether the grammar generates exactly this text.
    pub(crate) fn accepts(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        self.ends(&self.rules["root"], &text, 0).contains(&text.len())
    }

    /// The positions at which the alternatives may end.
    fn ends(&self, alternatives: &[Vec<Symbol>], text: &[char], from: usize) -> HashSet<usize> {
        let mut all = HashSet::new();
        for alternative in alternatives {
            let mut ends = HashSet::from([from]);
            for symbol in alternative {
                ends = ends.into_iter().flat_map(|at| self.symbol_ends(symbol, text, at)).collect();
            }
            all.extend(ends);
        }
        all
    }

    fn symbol_ends(&self, symbol: &Symbol, text: &[char], from: usize) -> HashSet<usize> {
        let next = |length: usize| HashSet::from([from + length]);
        match symbol {
            Symbol::Literal(literal) => {
                let literal: Vec<char> = literal.chars().collect();
                if text[from..].starts_with(&literal) {
                    next(literal.len())
                } else {
                    HashSet::new()
                }
            }
            Symbol::CharClass { negated, ranges } => match text.get(from) {
                Some(letter)
                    if ranges.iter().any(|(low, high)| (*low..=*high).contains(letter))
                        != *negated =>
                {
                    next(1)
                }
                Some(_) | None => HashSet::new(),
            },
            Symbol::RuleRef(name) => self.ends(&self.rules[name], text, from),
            Symbol::Group(alternatives) => self.ends(alternatives, text, from),
            Symbol::Repetition(inner, least, max) => {
                let (mut ends, mut current) = (HashSet::new(), next(0));
                for count in 0..=max.unwrap_or(u64::MAX) {
                    let is_new = current.iter().any(|at| !ends.contains(at));
                    if current.is_empty() || count > *least && !is_new {
                        break;
                    }
                    if count >= *least {
                        ends.extend(&current);
                    }
                    current = current
                        .into_iter()
                        .flat_map(|at| self.symbol_ends(inner, text, at))
                        .collect();
                }
                ends
            }
        }
    }

    /// Generates a random sentence; beyond a depth limit, uses the shortest alternatives.
    pub(crate) fn random_sentence(&self, random: &mut impl Rng) -> String {
        let mut out = String::new();
        self.write_alternative(&self.rules["root"], 10, random, &mut out);
        out
    }

    fn write_alternative(
        &self,
        alternatives: &[Vec<Symbol>],
        remaining: usize,
        random: &mut impl Rng,
        out: &mut String,
    ) {
        let depth =
            |alternative: &Vec<Symbol>| self.min_depth(std::slice::from_ref(alternative)).unwrap();
        let alternative = match remaining {
            0 => alternatives.iter().min_by_key(|alternative| depth(alternative)).unwrap(),
            _ => &alternatives[random.next_u32() as usize % alternatives.len()],
        };
        for symbol in alternative {
            self.write_symbol(symbol, remaining, random, out);
        }
    }

    fn write_symbol(
        &self,
        symbol: &Symbol,
        remaining: usize,
        random: &mut impl Rng,
        out: &mut String,
    ) {
        match symbol {
            Symbol::Literal(text) => out.push_str(text),
            Symbol::CharClass { negated, ranges } => {
                out.push(random_char(*negated, ranges, random));
            }
            Symbol::RuleRef(name) => {
                self.write_alternative(&self.rules[name], remaining.saturating_sub(1), random, out);
            }
            Symbol::Group(alternatives) => {
                self.write_alternative(alternatives, remaining, random, out);
            }
            Symbol::Repetition(symbol, least, max) => {
                let more = max.unwrap_or(least + 4).min(least + 4) - least;
                let more =
                    if remaining == 0 { 0 } else { u64::from(random.next_u32()) % (more + 1) };
                // Minimum and maximum repetitions are drawn more often than by chance.
                let more = match (random.next_u32() % 8, max) {
                    (0, Some(max)) if remaining > 0 => max - least,
                    _ => more,
                };
                for _ in 0..least + more {
                    self.write_symbol(symbol, remaining, random, out);
                }
            }
        }
    }
}

fn random_char(not: bool, ranges: &[(char, char)], random: &mut impl Rng) -> char {
    let inside =
        |character: char| ranges.iter().any(|(from, to)| (*from..=*to).contains(&character));
    if not {
        let some = ['a', 'Z', ' ', '0', '{', ',', '\'', 'é', '\u{1F600}', '\u{80}', '<', 'q'];
        let start = random.next_u32() as usize % some.len();
        let chosen =
            some.iter().cycle().skip(start).take(some.len()).find(|character| !inside(**character));
        return *chosen.expect("a character outside of the class");
    }
    let (from, to) = ranges[random.next_u32() as usize % ranges.len()];
    let codes = u32::from(from)..=u32::from(to);
    let at = codes.start() + random.next_u32() % (codes.end() - codes.start() + 1);
    char::from_u32(at).unwrap_or(from)
}

#[test]
fn what_llama_cpp_refuses_is_refused() {
    for (text, reason) in [
        ("root ::= x\n", "`x` is no rule"),
        ("root ::= (\"a\"\n", "a bracket is open"),
        ("root ::= \"a\")\n", "a bracket too much"),
        ("root ::= \"a\nb\"\n", "ends inside"),
        ("root ::= \"a\"{2,1}\n", "a repetition from 2"),
        ("root ::= \"a\"{1,1001}\n", "1 to Some(1001) repetitions"),
        ("root ::= \"b\"? root \"a\" | \"c\"\n", "`root` begins with itself"),
        ("root ::= \"a\"\nroot ::= \"b\"\n", "`root` twice"),
        ("Root_1 ::= \"a\"\n", "the name `Root_1`"),
        ("a ::= \"a\"\n", "no root"),
    ] {
        let error = Grammar::parse(text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
    assert!(Grammar::parse("root ::= \"a\" root\n").unwrap().is_endless());
    let grammar = Grammar::parse("root ::= \"a\"{2,3} ([b-d] | x)* [^ab]\nx ::= \"\" \"ee\"?\n");
    let texts = ["aac", "aaabcde", "aaee", "aaeeeb", "a", "aab", "aaaac", ""];
    let accepted = texts.map(|text| grammar.as_ref().unwrap().accepts(text));
    assert_eq!(accepted, [true, true, false, false, false, false, false, false]);
    assert!(
        Grammar::parse("root ::= [a-c]+ ( |x) \"\\\"\"{0,1000}\nx ::= [^\\x22] root\n").is_ok()
    );
}
