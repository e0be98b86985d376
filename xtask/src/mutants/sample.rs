//! The mutants of a sample, chosen by a seed.

/// Chooses at most `count` mutants, in the order of the list. Equal arguments give equal samples.
pub(super) fn choose(all: &[String], count: usize, seed: u64) -> Vec<String> {
    let mut random = SplitMix(seed);
    let mut ranks: Vec<(u64, usize)> = (0..all.len()).map(|at| (random.next(), at)).collect();
    ranks.sort_unstable();
    let mut chosen: Vec<usize> = ranks.into_iter().take(count).map(|(_, at)| at).collect();
    chosen.sort_unstable();
    chosen.into_iter().map(|at| all[at].clone()).collect()
}

/// Returns a regular expression that matches exactly these names.
pub(super) fn pattern(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| escape(name)).collect();
    format!("^(?:{})$", names.join("|"))
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// The generator SplitMix64: a few lines in place of a dependency.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|at| at.to_string()).collect()
    }

    #[test]
    fn a_seed_gives_the_same_sample_every_time_and_another_seed_another() {
        let all = names(1000);
        let first = choose(&all, 10, 7);
        assert_eq!(first.len(), 10);
        assert_eq!(choose(&all, 10, 7), first);
        assert_ne!(choose(&all, 10, 8), first);
        assert!(first.is_sorted_by_key(|name| name.parse::<usize>().unwrap()));
        assert_eq!(choose(&all[..3], 10, 7), &all[..3]);
    }

    #[test]
    fn a_pattern_escapes_what_names_of_mutants_contain() {
        let name =
            "crates/a-b/src/x.rs:1:2: replace f -> Vec<u8> with vec![0] in <impl A for B>::c";
        let pattern = pattern(&[name.to_owned(), "replace + with *".to_owned()]);
        assert_eq!(
            pattern,
            r"^(?:crates/a\-b/src/x\.rs:1:2: replace f \-> Vec<u8> with vec!\[0\] in <impl A for B>::c|replace \+ with \*)$"
        );
    }
}
