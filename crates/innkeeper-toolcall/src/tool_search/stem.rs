//! Reduces English words to their stems, so that `calculates` and `calculation` match.

/// Minimum number of characters of a stem: shorter stems of different words are equal.
const MIN_STEM_CHARS: usize = 3;

/// Maximum number of characters of a word that has a stem; a longer word is no English word.
const MAX_WORD_CHARS: usize = 40;

/// Suffixes that make a word of another class, with their replacements. A longer suffix is before a
/// suffix that ends it.
const DERIVATION_SUFFIXES: &[(&str, &str)] = &[
    ("ization", "ize"),
    ("isation", "ize"),
    ("ability", "able"),
    ("ibility", "ible"),
    ("ation", ""),
    ("ator", ""),
    ("ative", ""),
    ("ating", ""),
    ("ated", ""),
    ("ments", ""),
    ("ment", ""),
    ("ness", ""),
    ("able", ""),
    ("ible", ""),
    ("ical", "ic"),
    ("yze", "ys"),
    ("yz", "ys"),
    ("ise", "ize"),
    ("ize", ""),
    ("ate", ""),
    ("sion", "s"),
    ("tion", "t"),
    ("ings", ""),
    ("ing", ""),
    ("ity", ""),
    ("is", ""),
    ("ive", ""),
    ("ed", ""),
    ("er", ""),
    ("or", ""),
    ("ly", ""),
    ("e", ""),
];

/// Maximum number of derivation suffixes of one word.
const MAX_SUFFIXES: usize = 3;

/// Returns the stem of a word in lower case. A word with a character outside of `a` to `z` is its
/// own stem. The stem of an English word is often no word: only equality matters.
pub(super) fn stem(word: String) -> String {
    let is_english = word.bytes().all(|byte| byte.is_ascii_lowercase());
    if !is_english || word.len() > MAX_WORD_CHARS || word.len() <= MIN_STEM_CHARS {
        return word;
    }
    let mut stem = singular(word);
    for _ in 0..MAX_SUFFIXES {
        let Some(shorter) = without_suffix(&stem) else { break };
        stem = shorter;
    }
    // The stem of `movies` is the stem of `movie`.
    if stem.ends_with(['y', 'i']) && stem.len() > MIN_STEM_CHARS {
        stem.pop();
    }
    stem
}

/// Removes the ending of a plural, or of a verb in the third person.
fn singular(mut word: String) -> String {
    if word.ends_with("ies") && word.len() > MIN_STEM_CHARS + 1 {
        word.truncate(word.len() - "ies".len());
        word.push('y');
    } else if ["sses", "shes", "ches", "xes", "zes"].iter().any(|end| word.ends_with(end)) {
        word.truncate(word.len() - "es".len());
    } else if word.ends_with('s')
        && !["ss", "us", "sis", "xis"].iter().any(|end| word.ends_with(end))
    {
        word.pop();
    }
    word
}

/// Removes the first suffix that leaves a stem with a vowel.
fn without_suffix(word: &str) -> Option<String> {
    let (stem, replacement) = DERIVATION_SUFFIXES.iter().find_map(|(suffix, replacement)| {
        let stem = word.strip_suffix(suffix)?;
        let has_vowel = stem.contains(['a', 'e', 'i', 'o', 'u', 'y']);
        (stem.len() >= MIN_STEM_CHARS && has_vowel).then_some((stem, replacement))
    })?;
    let mut stem = format!("{stem}{replacement}");
    // `running` is `run`, but `calling` is `call`.
    let mut last = stem.bytes().rev();
    if let (Some(one), Some(other)) = (last.next(), last.next())
        && one == other
        && b"bdgmnprt".contains(&one)
        && stem.len() > MIN_STEM_CHARS
    {
        stem.pop();
    }
    (stem != word).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_one_word_have_one_stem() {
        for forms in [
            &["calculate", "calculates", "calculating", "calculation", "calculator"][..],
            &["search", "searches", "searching", "searched"],
            &["query", "queries"],
            &["movie", "movies"],
            &["city", "cities"],
            &["run", "running", "runs"],
            &["delete", "deletion", "deleting"],
            &["summary", "summaries", "summarize", "summarise"],
            &["analyze", "analyse", "analysis", "analyzing"],
            &["document", "documents", "documentation"],
            &["address", "addresses"],
            &["api", "apis"],
            &["create", "creation", "creator"],
        ] {
            for form in forms {
                assert_eq!(stem((*form).to_owned()), stem(forms[0].to_owned()), "{form}");
            }
        }
    }

    #[test]
    fn other_words_have_other_stems() {
        for (one, other) in
            [("date", "data"), ("status", "state"), ("string", "str"), ("call", "calculate")]
        {
            assert_ne!(stem(one.to_owned()), stem(other.to_owned()), "{one} {other}");
        }
        for word in ["s3", "über", "京都", "a", "is", ""] {
            assert_eq!(stem(word.to_owned()), word);
        }
    }
}
