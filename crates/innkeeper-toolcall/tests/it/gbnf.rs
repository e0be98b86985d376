//! A reader of GBNF for tests: what is wrong with a grammar, and sentences of it.

use std::collections::{HashMap, HashSet};

use proptest::prelude::Rng;

/// What a rule is made of.
#[derive(Debug, Clone)]
enum Part {
    Text(String),
    Class { not: bool, ranges: Vec<(char, char)> },
    Rule(String),
    Any(Vec<Vec<Self>>),
    Repeat(Box<Self>, u64, Option<u64>),
}

/// A grammar that was read.
#[derive(Debug)]
pub(crate) struct Grammar {
    rules: HashMap<String, Vec<Vec<Part>>>,
    /// How deep the shallowest sentence of each rule is.
    depths: HashMap<String, usize>,
}

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
}

impl Reader<'_> {
    fn skip(&mut self) {
        while self.rest.next_if_eq(&' ').is_some() {}
    }

    fn number(&mut self) -> Option<u64> {
        let mut digits = String::new();
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        digits.parse().ok()
    }

    /// One character of a literal or a class, escapes undone.
    fn character(&mut self) -> Result<char, String> {
        match self.rest.next().ok_or("ends inside")? {
            '\\' => {
                let length = match self.rest.next().ok_or("ends after a backslash")? {
                    'n' => return Ok('\n'),
                    'r' => return Ok('\r'),
                    't' => return Ok('\t'),
                    it @ ('"' | '\\' | '[' | ']') => return Ok(it),
                    'x' => 2,
                    'u' => 4,
                    other => return Err(format!("unknown escape `{other}`")),
                };
                let hex: String = self.rest.by_ref().take(length).collect();
                let code = u32::from_str_radix(&hex, 16).map_err(|_| format!("bad `{hex}`"))?;
                char::from_u32(code).ok_or_else(|| format!("no character `{hex}`"))
            }
            '\n' => Err("a line ends inside".to_owned()),
            other => Ok(other),
        }
    }

    fn alternatives(&mut self) -> Result<Vec<Vec<Part>>, String> {
        let mut all = vec![Vec::new()];
        loop {
            self.skip();
            match self.rest.peek() {
                None | Some(')') => return Ok(all),
                Some('|') => {
                    self.rest.next();
                    all.push(Vec::new());
                }
                Some(_) => {
                    let part = self.repeated()?;
                    all.last_mut().unwrap().push(part);
                }
            }
        }
    }

    fn repeated(&mut self) -> Result<Part, String> {
        let part = self.part()?;
        let (least, most) = match self.rest.peek() {
            Some('?') => (0, Some(1)),
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('{') => {
                self.rest.next();
                let least = self.number().ok_or("a repetition without a number")?;
                let most = match self.rest.next_if_eq(&',') {
                    Some(_) => self.number(),
                    None => Some(least),
                };
                if self.rest.peek() != Some(&'}') || most.is_some_and(|most| most < least) {
                    return Err(format!("a repetition from {least} to {most:?}"));
                }
                (least, most)
            }
            _ => return Ok(part),
        };
        self.rest.next();
        Ok(Part::Repeat(Box::new(part), least, most))
    }

    fn part(&mut self) -> Result<Part, String> {
        match self.rest.next() {
            Some('"') => {
                let mut text = String::new();
                while self.rest.next_if_eq(&'"').is_none() {
                    text.push(self.character()?);
                }
                Ok(Part::Text(text))
            }
            Some('[') => {
                let not = self.rest.next_if_eq(&'^').is_some();
                let mut ranges = Vec::new();
                while self.rest.next_if_eq(&']').is_none() {
                    let from = self.character()?;
                    let to = match self.rest.next_if_eq(&'-') {
                        Some(_) if self.rest.peek() == Some(&']') => {
                            ranges.push(('-', '-'));
                            from
                        }
                        Some(_) => self.character()?,
                        None => from,
                    };
                    ranges.push((from, to));
                }
                if ranges.is_empty() {
                    Err("an empty class".to_owned())
                } else {
                    Ok(Part::Class { not, ranges })
                }
            }
            Some('(') => {
                let inner = self.alternatives()?;
                self.rest.next_if_eq(&')').ok_or("a bracket is open")?;
                Ok(Part::Any(inner))
            }
            Some(first) if named(first) => {
                let mut name = String::from(first);
                while let Some(next) = self.rest.next_if(|it| named(*it)) {
                    name.push(next);
                }
                Ok(Part::Rule(name))
            }
            other => Err(format!("unexpected {other:?}")),
        }
    }
}

fn named(character: char) -> bool {
    character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-'
}

impl Grammar {
    /// Reads a grammar of one rule a line.
    ///
    /// # Errors
    ///
    /// What llama.cpp would refuse: what is no GBNF, a rule that is not there or is there twice, one
    /// that begins with itself, more than 1,000 repetitions.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut rules = HashMap::new();
        for line in text.lines() {
            let (name, body) =
                line.split_once(" ::= ").ok_or_else(|| format!("no rule: {line}"))?;
            if name.is_empty() || !name.chars().all(named) {
                return Err(format!("the name `{name}`"));
            }
            let mut reader = Reader { rest: body.chars().peekable() };
            let read = reader.alternatives().map_err(|error| format!("{error}: {line}"))?;
            if reader.rest.next().is_some() {
                return Err(format!("a bracket too much: {line}"));
            }
            if rules.insert(name.to_owned(), read).is_some() {
                return Err(format!("`{name}` twice"));
            }
        }
        let mut grammar = Self { rules, depths: HashMap::new() };
        grammar.check()?;
        Ok(grammar)
    }

    fn check(&mut self) -> Result<(), String> {
        if !self.rules.contains_key("root") {
            return Err("no root".to_owned());
        }
        for (name, ways) in &self.rules {
            ways.iter()
                .flatten()
                .try_for_each(|part| self.sound(part))
                .map_err(|it| format!("{it} in `{name}`"))?;
            let mut seen = HashSet::new();
            let mut next = self.firsts(ways);
            while let Some(first) = next.pop() {
                if first == *name {
                    return Err(format!("`{name}` begins with itself"));
                }
                if seen.insert(first.clone()) {
                    next.extend(self.firsts(&self.rules[&first]));
                }
            }
        }
        // Rules get their depths from those that have theirs, until no more do.
        loop {
            let found: Vec<(String, usize)> = self
                .rules
                .iter()
                .filter(|(name, _)| !self.depths.contains_key(*name))
                .filter_map(|(name, ways)| Some((name.clone(), self.shallowest(ways)? + 1)))
                .collect();
            if found.is_empty() {
                break;
            }
            self.depths.extend(found);
        }
        Ok(())
    }

    /// Whether some rule has no end, as that of a schema which no finite value fits.
    pub(crate) fn is_endless(&self) -> bool {
        self.rules.keys().any(|name| !self.depths.contains_key(name))
    }

    fn sound(&self, part: &Part) -> Result<(), String> {
        match part {
            Part::Text(_) | Part::Class { .. } => Ok(()),
            Part::Rule(name) if self.rules.contains_key(name) => Ok(()),
            Part::Rule(name) => Err(format!("`{name}` is no rule")),
            Part::Any(ways) => ways.iter().flatten().try_for_each(|part| self.sound(part)),
            Part::Repeat(_, least, most) if most.unwrap_or(*least) > 1_000 => {
                Err(format!("{least} to {most:?} repetitions"))
            }
            Part::Repeat(part, ..) => self.sound(part),
        }
    }

    /// The rules that some way may begin with.
    fn firsts(&self, ways: &[Vec<Part>]) -> Vec<String> {
        let mut firsts = Vec::new();
        for way in ways {
            for part in way {
                match part {
                    Part::Text(_) | Part::Class { .. } => {}
                    Part::Rule(name) => firsts.push(name.clone()),
                    Part::Any(ways) => firsts.extend(self.firsts(ways)),
                    Part::Repeat(part, ..) => {
                        firsts.extend(self.firsts(&[vec![part.as_ref().clone()]]));
                    }
                }
                if !self.may_be_empty(part, 16) {
                    break;
                }
            }
        }
        firsts
    }

    fn may_be_empty(&self, part: &Part, depth: usize) -> bool {
        let empty = |ways: &[Vec<Part>]| {
            ways.iter()
                .any(|way| way.iter().all(|it| depth > 0 && self.may_be_empty(it, depth - 1)))
        };
        match part {
            Part::Text(text) => text.is_empty(),
            Part::Class { .. } => false,
            Part::Rule(name) => self.rules.get(name).is_some_and(|ways| empty(ways)),
            Part::Any(ways) => empty(ways),
            Part::Repeat(part, least, _) => *least == 0 || self.may_be_empty(part, depth),
        }
    }

    fn shallowest(&self, ways: &[Vec<Part>]) -> Option<usize> {
        let way = |way: &Vec<Part>| {
            way.iter().try_fold(0, |deep: usize, part| Some(deep.max(self.depth(part)?)))
        };
        ways.iter().filter_map(way).min()
    }

    fn depth(&self, part: &Part) -> Option<usize> {
        match part {
            Part::Text(_) | Part::Class { .. } | Part::Repeat(_, 0, _) => Some(0),
            Part::Rule(name) => self.depths.get(name).copied(),
            Part::Any(ways) => self.shallowest(ways),
            Part::Repeat(part, ..) => self.depth(part),
        }
    }

    /// A sentence drawn at random; beyond a depth the shallowest ways are taken.
    pub(crate) fn sentence(&self, random: &mut impl Rng) -> String {
        let mut out = String::new();
        self.write(&self.rules["root"], 10, random, &mut out);
        out
    }

    fn write(&self, ways: &[Vec<Part>], left: usize, random: &mut impl Rng, out: &mut String) {
        let depth = |way: &Vec<Part>| self.shallowest(std::slice::from_ref(way)).unwrap();
        let way = match left {
            0 => ways.iter().min_by_key(|way| depth(way)).unwrap(),
            _ => &ways[random.next_u32() as usize % ways.len()],
        };
        for part in way {
            self.write_part(part, left, random, out);
        }
    }

    fn write_part(&self, part: &Part, left: usize, random: &mut impl Rng, out: &mut String) {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Class { not, ranges } => out.push(drawn(*not, ranges, random)),
            Part::Rule(name) => self.write(&self.rules[name], left.saturating_sub(1), random, out),
            Part::Any(ways) => self.write(ways, left, random, out),
            Part::Repeat(part, least, most) => {
                let more = most.unwrap_or(least + 4).min(least + 4) - least;
                let more = if left == 0 { 0 } else { u64::from(random.next_u32()) % (more + 1) };
                // The ends of what is allowed are drawn more often than chance would have it.
                let more = match (random.next_u32() % 8, most) {
                    (0, Some(most)) if left > 0 => most - least,
                    _ => more,
                };
                for _ in 0..least + more {
                    self.write_part(part, left, random, out);
                }
            }
        }
    }
}

fn drawn(not: bool, ranges: &[(char, char)], random: &mut impl Rng) -> char {
    let inside = |it: char| ranges.iter().any(|(from, to)| (*from..=*to).contains(&it));
    if not {
        let some = ['a', 'Z', ' ', '0', '{', ',', '\'', 'é', '\u{1F600}', '\u{80}', '<', 'q'];
        let start = random.next_u32() as usize % some.len();
        let one = some.iter().cycle().skip(start).take(some.len()).find(|it| !inside(**it));
        return *one.expect("a character outside of the class");
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
        let error = Grammar::read(text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
    assert!(Grammar::read("root ::= \"a\" root\n").unwrap().is_endless());
    assert!(Grammar::read("root ::= [a-c]+ ( |x) \"\\\"\"{0,1000}\nx ::= [^\\x22] root\n").is_ok());
}
