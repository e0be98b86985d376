//! Tests of aliases.

use proptest::prelude::*;

use super::*;

const PROVIDER_RULES: &[NameRules] =
    &[NameRules::OPENAI, NameRules::ANTHROPIC, NameRules::GEMINI, NameRules::OLLAMA];

fn openai_aliases<const N: usize>(names: [&str; N]) -> Aliases {
    Aliases::new(names, NameRules::OPENAI)
}

/// Independent implementation of the rules of OpenAI and Anthropic.
fn is_valid_name(alias: &str) -> bool {
    (1..=64).contains(&alias.len())
        && alias
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-'))
}

fn is_valid_gemini_name(alias: &str) -> bool {
    is_valid_name(alias)
        && alias.len() <= 63
        && !alias.starts_with(|character: char| character.is_ascii_digit() || character == '-')
}

fn assert_round_trip(all: &Aliases, names: &[String], rules: NameRules) {
    let mut unique = BTreeSet::new();
    for name in names {
        let alias = all.alias(name).unwrap();
        assert_eq!(all.canonical(alias), Some(name.as_str()));
        assert!(is_valid_name(alias), "{alias}");
        assert!(rules != NameRules::GEMINI || is_valid_gemini_name(alias), "{alias}");
        unique.insert(alias.to_ascii_lowercase());
    }
    assert_eq!(unique.len(), names.iter().collect::<BTreeSet<_>>().len());
    assert_eq!(all.iter().count(), unique.len());
}

#[test]
fn a_dot_becomes_an_underscore_and_a_ready_name_stays() {
    let all = openai_aliases(["fs.read_file", "plain-name", "a/b.c d"]);
    assert_eq!(all.alias("fs.read_file"), Some("fs_read_file"));
    assert_eq!(all.alias("plain-name"), Some("plain-name"));
    assert_eq!(all.alias("a/b.c d"), Some("a_b_c_d"));
    assert_eq!(all.canonical("fs_read_file"), Some("fs.read_file"));
    assert_eq!(all.canonical("FS_read_file"), None);
    assert_eq!(all.alias("nobody"), None);
}

#[test]
fn names_that_would_be_the_same_get_a_suffix_each_and_a_ready_one_does_not() {
    let all = openai_aliases(["a.b_c", "a_b.c", "x.y"]);
    assert_eq!(all.alias("a.b_c").unwrap(), "a_b_c_5b8f93");
    assert_eq!(all.alias("a_b.c").unwrap(), "a_b_c_a37152");
    assert_eq!(all.alias("x.y"), Some("x_y"));
    let all = openai_aliases(["a.b", "a_b"]);
    assert_eq!(all.alias("a_b"), Some("a_b"));
    assert_eq!(all.alias("a.b").unwrap(), "a_b_2e7336");
}

#[test]
fn names_that_differ_in_case_only_are_the_same() {
    let all = openai_aliases(["fs.Read", "fs.read", "ready", "READY"]);
    for (name, alias) in [
        ("fs.Read", "fs_Read_3aed2b"),
        ("fs.read", "fs_read_4074bc"),
        ("ready", "ready_b24d6d"),
        ("READY", "READY_c2e3ac"),
    ] {
        assert_eq!(all.alias(name), Some(alias), "{name}");
    }
}

/// Proves: G36
#[test]
fn gemini_names_begin_with_a_letter_or_underscore_and_end_at_63() {
    let long = "l".repeat(63);
    let longer = "m".repeat(64);
    let all = Aliases::new(["1.a", "-x", long.as_str(), longer.as_str()], NameRules::GEMINI);
    assert_eq!(all.alias("1.a"), Some("_1_a"));
    assert_eq!(all.alias("-x"), Some("_-x"));
    assert_eq!(all.alias(&long), Some(long.as_str()));
    assert_eq!(all.alias(&longer).unwrap().len(), 63);
}

/// Proves: G34, G35
#[test]
fn unicode_empty_and_long_names_are_names_afterwards() {
    let names: Vec<String> =
        ["", ".", "日本.検索", "日本.検閲", "🦀", "Ж.ж"].map(str::to_owned).into();
    let truncated = ["x".repeat(64), "x".repeat(65), "y".repeat(300), "é".repeat(300)];
    let names = [names, truncated.to_vec()].concat();
    for rules in PROVIDER_RULES {
        let all = Aliases::new(names.clone(), *rules);
        assert_round_trip(&all, &names, *rules);
        assert!(all.alias("").unwrap().ends_with(&sha256_hex("")[..6]));
    }
    let all = Aliases::new(names, NameRules::OPENAI);
    assert_eq!(all.alias(&"x".repeat(64)), Some("x".repeat(64).as_str()));
    assert_eq!(all.alias(&"x".repeat(65)).unwrap().len(), 64);
}

#[test]
fn a_thousand_names_with_one_long_beginning_stay_apart() {
    let names: Vec<String> = (0..1000).map(|at| format!("{}{at}", "p".repeat(200))).collect();
    for rules in PROVIDER_RULES {
        assert_round_trip(&Aliases::new(names.clone(), *rules), &names, *rules);
    }
}

/// Attack: model | a server lists the names that the aliases of another tool would get | each tool
/// has an alias of its own | Isolation
#[test]
fn names_made_to_take_every_suffix_leave_the_victim_an_alias() {
    let mut names = vec!["a.b_c".to_owned(), "a_b.c".to_owned()];
    for name in ["a.b_c", "a_b.c"] {
        names.extend(
            SUFFIX_HEX_DIGITS
                .iter()
                .map(|digits| format!("a_b_c_{}", &sha256_hex(name)[..*digits])),
        );
    }
    names.push("a_b_c_1".to_owned());
    let all = Aliases::new(names.clone(), NameRules::OPENAI);
    assert_round_trip(&all, &names, NameRules::OPENAI);
    assert_eq!((all.alias("a.b_c"), all.alias("a_b.c")), (Some("a_b_c_2"), Some("a_b_c_3")));
}

/// Proves: G37
#[test]
fn ten_thousand_random_names_go_there_and_back() {
    let mut random = 7_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    let letters: Vec<char> = "abAB._-/é日".chars().collect();
    let mut names = BTreeSet::new();
    while names.len() < 10_000 {
        let length = next(80);
        let name: String =
            (0..length).map(|_| letters[next(letters.len() as u64) as usize]).collect();
        names.insert(name);
    }
    let names: Vec<String> = names.into_iter().collect();
    // The names that are equal after the replacement of all invalid characters.
    let replaced = |name: &String| name.to_ascii_lowercase().replace(['.', '/', 'é', '日'], "_");
    let collisions = names.len() - names.iter().map(replaced).collect::<BTreeSet<_>>().len();
    assert!(collisions > 100, "{collisions}");
    for rules in &[NameRules::OPENAI, NameRules::ANTHROPIC, NameRules::GEMINI] {
        assert_round_trip(&Aliases::new(names.clone(), *rules), &names, *rules);
    }
}

proptest! {
    #[test]
    fn any_names_have_aliases_that_lead_back(
        names in proptest::collection::vec("[ab._éA]{0,5}|\\PC{0,70}|[a-z]{60,70}", 0..40)
    ) {
        for rules in PROVIDER_RULES {
            assert_round_trip(&Aliases::new(names.clone(), *rules), &names, *rules);
        }
    }

    #[test]
    fn the_order_of_the_names_says_nothing(
        names in proptest::collection::vec("[abA._]{0,4}", 0..30), turn in 0usize..30
    ) {
        let mut turned = names.clone();
        turned.rotate_left(turn.min(names.len()));
        turned.reverse();
        let (one, other) =
            (Aliases::new(names, NameRules::OPENAI), Aliases::new(turned, NameRules::OPENAI));
        prop_assert!(one.iter().eq(other.iter()));
    }

    #[test]
    fn one_more_name_moves_only_names_of_the_same_spelling(
        names in proptest::collection::btree_set("[abA._]{1,4}", 1..30), more in "[abA._]{1,4}"
    ) {
        let before = Aliases::new(names.clone(), NameRules::OPENAI);
        let after = Aliases::new(names.into_iter().chain([more.clone()]), NameRules::OPENAI);
        let spelled = |name: &str| NameRules::OPENAI.sanitize(name).to_ascii_lowercase();
        for (name, alias) in before.iter().filter(|(name, _)| spelled(name) != spelled(&more)) {
            prop_assert_eq!(after.alias(name), Some(alias));
        }
    }
}
