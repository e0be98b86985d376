//! Tests of the similarity: pairs that must pass, and neighbours that must fail.

use std::fmt::Write as _;

use proptest::prelude::{Just, Strategy as _, any, prop, prop_oneof};
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::{MAX_ORDERED_BYTES, contains, similarity};

/// A threshold that a person would write.
const MIN: f64 = 0.8;

/// Texts that say the same.
const SAME: &[(&str, &str, &str)] = &[
    ("case and spacing", "The  TOTAL is 5.\n", "the total is 5"),
    (
        "markdown",
        "# Result\n\n**3 files** in `src`:\n- a.txt\n- b.txt",
        "Result: 3 files in src: a.txt, b.txt",
    ),
    ("table", "| city | temp |\n|---|---|\n| Paris | 20 |", "city temp\nParis 20"),
    ("ordered list", "1. red\n2. green\n3. blue", "- red\n- green\n- blue"),
    (
        "nested list",
        "1. red\n   1. dark\n   2. light\n2. green",
        "- red\n  - dark\n  - light\n- green",
    ),
    ("link", "See [the docs](https://a.example/x/y).", "See the docs (https://a.example/x/y)"),
    ("thousands", "There are 1,000 users.", "There are 1000 users."),
    ("grouped by blanks", "There are 1\u{202f}000\u{202f}000 users.", "There are 1000000 users."),
    ("decimals", "The mean is 3.0.", "The mean is 3."),
    ("decimal comma", "Der Wert ist 1,5.", "Der Wert ist 1.5."),
    ("german thousands", "Es sind 1.234.567,50 Euro.", "Es sind 1234567.5 Euro."),
    ("number word", "I found three errors.", "I found 3 errors."),
    ("unit without blank", "It took 10ms.", "It took 10 ms."),
    ("contraction", "The file isn't there.", "The file is not there."),
    ("curly apostrophe", "It doesn’t exist.", "It doesn't exist."),
    (
        "order of clauses",
        "The tests pass on Linux and macOS.",
        "On Linux and macOS, the tests pass.",
    ),
    (
        "order of facts",
        "Alice has 3 apples and Bob has 5 pears.",
        "Bob has 5 pears and Alice has 3 apples.",
    ),
    (
        "order of a list",
        "The files that changed since the last release are a.txt, b.txt and c.txt.",
        "The files that changed since the last release are c.txt, a.txt and b.txt.",
    ),
    (
        "order of places",
        "In the nightly backup, the job copied the data from a.txt to b.txt today.",
        "In the nightly backup, the job copied the data to b.txt from a.txt today.",
    ),
    ("full width", "Ｔｏｔａｌ ５", "total 5"),
    ("composed accents", "Le caf\u{e9} est ouvert", "le cafe\u{301} est ouvert"),
    (
        "quotation marks",
        "The user “Ada Lovelace” logged in.",
        "The user \"Ada Lovelace\" logged in.",
    ),
    (
        "a remark more",
        "The report was written to the shared folder and the team was informed about it.",
        "Done! The report was written to the shared folder and the team was informed about it. Tell me if you need more.",
    ),
    ("capitals", "The Report Of The Team is done", "the report of the team is done"),
    ("start of a sentence", "The capital of France is Paris.", "Paris is the capital of France."),
    (
        "headings",
        "# Main Results Here\nThe report was written to the folder and the team was informed by the job.",
        "# Key Findings Here\nThe report was written to the folder and the team was informed by the job.",
    ),
    (
        "german nouns",
        "Der Bericht über die Reise wurde gestern von der Gruppe im Ordner abgelegt.",
        "Der Bericht über die Fahrt wurde gestern von der Gruppe im Ordner abgelegt.",
    ),
    ("both empty", "", " \n"),
    ("japanese", "東京の天気は晴れです。", "東京の天気は晴れです"),
];

/// Texts that say something else.
const DIFFERENT: &[(&str, &str, &str)] = &[
    ("number", "The total is 5.", "The total is 7."),
    ("number in a list", "1. red 5\n2. blue 6", "1. red 5\n2. blue 7"),
    ("number that looks like a mark", "Result:\n42. That is all", "Result:\n43. That is all"),
    ("decimal place", "The mean is 3.5.", "The mean is 35."),
    ("sign", "The change is -5 percent.", "The change is 5 percent."),
    ("sign of money", "The balance is -$5.", "The balance is $5."),
    ("version", "Version 1.2.3 is installed.", "Version 1.2.4 is installed."),
    ("letters of a drive", "It is on c:\\data\\a.", "It is on d:\\data\\a."),
    ("duration", "It took 1.5ms.", "It took 1.6ms."),
    ("quarter", "Revenue grew in Q3.", "Revenue grew in Q4."),
    ("currency", "It costs 5 €.", "It costs 5 $."),
    ("comparison", "The load is > 5.", "The load is < 5."),
    ("negation", "The file exists.", "The file does not exist."),
    ("negation in German", "Es gibt eine Datei.", "Es gibt keine Datei."),
    ("never", "The job always ran on this machine.", "The job never ran on this machine."),
    (
        "failure",
        "The build of the project succeeded on all machines.",
        "The build of the project failed on all machines.",
    ),
    ("second negation", "X is not here. Y is here.", "X is not here. Y is not here."),
    ("moved negation", "Alpha is not valid, beta is valid.", "Alpha is valid, beta is not valid."),
    ("emoji", "Tests ✅", "Tests ❌"),
    ("file", "I wrote the summary to report.md.", "I wrote the summary to notes.md."),
    ("path", "The log is /var/log/app.", "The log is /var/log/web."),
    ("identifier", "Call get_user for that.", "Call get_team for that."),
    (
        "quoted name",
        "The server \"alpha\" is up and running.",
        "The server \"beta\" is up and running.",
    ),
    (
        "code",
        "Use `grep` to find the lines in the file.",
        "Use `sed` to find the lines in the file.",
    ),
    ("swapped numbers", "Alice has 3 and Bob has 5.", "Alice has 5 and Bob has 3."),
    ("swapped counts", "3 apples and 5 pears", "5 apples and 3 pears"),
    ("order of a sorted list", "Sorted: 1, 2, 3", "Sorted: 3, 1, 2"),
    (
        "swapped places",
        "In the nightly backup, the job copied the data from a.txt to b.txt.",
        "In the nightly backup, the job copied the data from b.txt to a.txt.",
    ),
    ("swapped files", "Copied a.txt to b.txt.", "Copied b.txt to a.txt."),
    ("swapped cells", "| Paris | 20 |\n| London | 15 |", "| Paris | 15 |\n| London | 20 |"),
    ("swapped words", "dog bites man", "man bites dog"),
    (
        "currency in a sentence",
        "The monthly price of the plan with all of the taxes is 5 € for each user.",
        "The monthly price of the plan with all of the taxes is 5 $ for each user.",
    ),
    (
        "a few words in a text",
        "Everything went well today",
        "Everything went well today until the disk was full and the machine had to restart at night",
    ),
    ("city", "The capital of France is Paris.", "The capital of France is Lyon."),
    (
        "person",
        "The order was shipped to Alice on Monday by the team in Berlin.",
        "The order was shipped to Bob on Monday by the team in Berlin.",
    ),
    (
        "contrary word",
        "The light in the kitchen is now enabled and the door is locked as you wanted.",
        "The light in the kitchen is now disabled and the door is locked as you wanted.",
    ),
    (
        "contrary prefix",
        "The light in the kitchen is now on and the door is locked as you wanted.",
        "The light in the kitchen is now on and the door is unlocked as you wanted.",
    ),
    ("half of the day", "The meeting is at 10:30 am.", "The meeting is at 10:30 pm."),
    ("unequal", "x = 1", "x != 1"),
    ("negation in Chinese", "使用该文件", "不使用该文件"),
    ("negation in Russian", "Используйте этот файл", "Не используйте этот файл"),
    (
        "unrelated of the same length",
        "The weather in Paris will be sunny with light winds from the west tomorrow.",
        "The meeting about the budget was moved to the large room on the second floor.",
    ),
    ("empty", "", "The total is 5."),
    ("one word", "Paris", "London"),
    ("yes and no", "Yes", "No"),
    ("true and false", "true", "false"),
    ("a word and a text", "error", "Everything went well, there was just one error in a comment."),
    ("marks only", "!!!", "???"),
    ("japanese", "東京の天気は晴れです。", "大阪の天気は雨でしょう。"),
];

#[test]
fn texts_that_say_the_same_are_similar() {
    for (name, left, right) in SAME {
        let value = similarity(left, right);
        assert!(value >= MIN, "{name}: {value}");
    }
}

#[test]
fn texts_that_say_something_else_are_not_similar() {
    for (name, left, right) in DIFFERENT {
        let value = similarity(left, right);
        assert!(value < MIN, "{name}: {value}");
    }
}

#[test]
fn one_wrong_fact_in_a_long_text_is_enough() {
    let mut text = String::new();
    for line in 0..200 {
        writeln!(
            text,
            "Line {line} of the log mentions `file{line}.txt` and took {} ms.",
            line * 7
        )
        .unwrap();
    }
    let wrong = ["took 7 ms", "`file9.txt`", "mentions `file150.txt`"].into_iter().zip([
        "took 8 ms",
        "`file9.md`",
        "never mentions `file150.txt`",
    ]);
    for (from, to) in wrong {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        let value = similarity(&text, &changed);
        assert!(value < 0.2, "{to}: {value}");
    }
    assert!((similarity(&text, &text) - 1.0).abs() < f64::EPSILON);
}

#[test]
fn a_lost_fact_counts_by_its_share() {
    let all = "The cities are Paris 20, London 15, Rome 25 and Oslo 5.";
    let value = similarity(all, "The cities are Paris 20, London 15, Rome 25 and Oslo.");
    assert!((0.5..0.8).contains(&value), "{value}");
}

#[test]
fn very_long_texts_are_compared_as_bags_of_words() {
    let words = "lorem `ipsum` dolor 12 sit amet, consetetur \"sadipscing\" elitr. ";
    let text = words.repeat(MAX_ORDERED_BYTES / words.len() * 3);
    assert!(similarity(&text, &format!("elitr {text}")) > 0.99);
    assert!(similarity(&text, &format!("{text} 13")) < MIN);
    assert!(similarity(&text, &text.replace("amet", "not")) < MIN);
    assert!(similarity(&text, "lorem ipsum dolor 12") < MIN);
}

#[test]
fn many_quotations_and_clauses_take_a_bounded_time() {
    let quotations = "\"a b c\" and \"d e\" 5, ".repeat(2500);
    let other = "\"a c b\" and \"e d\" 5, ".repeat(2500);
    assert!(quotations.len() <= MAX_ORDERED_BYTES);
    assert!(similarity(&quotations, &other) < MIN);
}

#[test]
fn a_part_is_found_whatever_its_spelling() {
    let text = "**Done:** I wrote 1,000 lines to `out/report.md`.";
    for part in ["done", "1000 lines", "wrote 1,000", "`out/report.md`", "LINES  to"] {
        assert!(contains(text, part), "{part}");
    }
    for part in ["don", "100 lines", "lines wrote", "report.md", "10"] {
        assert!(!contains(text, part), "{part}");
    }
    assert!(contains("well ... done", "..."));
    assert!(!contains("well done", "..."));
}

/// Texts of the marks and words that the comparison knows, and any others.
fn texts() -> impl proptest::strategy::Strategy<Value = String> {
    let word = prop_oneof![
        prop::sample::select(vec![
            "not", "5", "1,000", "3.0.1", "-", "`a`", "\"b c\"", "a.txt", "and", ",", ".", "\n",
            "1. ", "2. ", "x/y/z", "€", "❌", "isn't", "東", "„", "“", "_", "1,2,3", "1'0", "..",
            "7..9",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,4}",
        any::<char>().prop_map(String::from),
        Just(" ".to_owned()),
    ];
    prop::collection::vec(word, 0..20).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn the_similarity_is_symmetric_and_between_0_and_1(left in texts(), right in texts()) {
        let value = similarity(&left, &right);
        prop_assert!((0.0..=1.0).contains(&value), "{}", value);
        prop_assert_eq!(value.to_bits(), similarity(&right, &left).to_bits());
    }

    #[test]
    fn a_text_is_similar_to_itself(text in texts()) {
        prop_assert!((similarity(&text, &text) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_text_contains_itself(text in texts()) {
        prop_assert!(contains(&text, &text));
    }
}
