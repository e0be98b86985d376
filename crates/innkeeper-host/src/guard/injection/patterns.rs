//! Word groups of the injection rules, and words that introduce a quotation.

/// Words before quoted or reported text.
pub(super) const QUOTATION_PATTERN: &str = concat!(
    r"\b(?:attack(?:er)?s?|adversar\w+|injections?|jailbreak\w*|malicious|phish\w*|payloads?|",
    r"detect\w*|classif\w+|red[- ]team\w*|",
    r"(?:phrases?|instructions?|messages?|text|strings?|words|commands?|prompts?|something) ",
    r"(?:like|such as|saying|that says?|telling|containing|reading)|trick\w*|suspicious|untrusted|",
    r"attempt(?:s|ed|ing)? to|(?:asks?|asked|asking|tells?|told|telling|instruct(?:s|ed|ing)?|",
    r"gets?|getting|makes?|making|causes?|causing|persuad\w+|convinc\w+) (?:the |an? |your |its )?",
    r"(?:ai|llms?|models?|assistants?|agents?|chatbots?|it)(?: agents?| models?)? to|",
    r"block(?:s|ed|ing)?|filter(?:s|ed|ing)?|flag(?:s|ged|ging)?|quot(?:e|es|ed|ing)|",
    r"test cases?|reported|whether (?:to|the)|says?|said|wrote|titled|entitled|called)\b",
);

/// Words before an example.
pub(super) const EXAMPLE_PATTERN: &str =
    r"\b(?:e\.g\.|for (?:example|instance)|such as|examples? of)";

/// Word groups of several rules, longest names first.
pub(super) const WORD_GROUPS: &[(&str, &str)] = &[
    ("{GAP15}", r"(?:[^\s]+\s+){0,15}?"),
    ("{GAP8}", r"(?:[^\s.!?;]+\s+){0,8}?"),
    ("{GAP5}", r"(?:[^\s.!?;]+\s+){0,5}?"),
    ("{GAP3}", r"(?:[^\s.!?;]+\s+){0,3}?"),
    ("{GAP2}", r"(?:[^\s.!?;]+\s+){0,2}?"),
    (
        "{BREAK}",
        concat!(
            r"\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget(?:ting)?|overrid(?:e|es|ing)|",
            r"supersed(?:e|es|ing)|bypass(?:ing)?|abandon(?:ing)?|neglect|dismiss|",
            r"(?:do not|don't|never|stop) (?:follow|obey|follow up on|comply with|adhere to|",
            r"following|",
            r"obeying)|set(?:ting)? aside|pay no (?:attention|heed) to|throw away|unlearn)\s+",
        ),
    ),
    (
        "{ADDRESS}",
        concat!(
            r"(?:https?://[^\s]+|[a-z0-9._%+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}|",
            r"[a-z0-9-]+(?:\.[a-z0-9-]+)+/[^\s]*|\+\d{7,})",
        ),
    ),
    (
        "{CREDENTIALS}",
        concat!(
            r"(?:api[ _-]?keys?|credentials?|passwords?|passphrases?|(?:access|auth|",
            r"authentication|bearer|",
            r"session|refresh|oauth|api) tokens?|tokens|session cookies?|cookies|secrets?|",
            r"private keys?|",
            r"ssh keys?|env(?:ironment)? (?:variables?|vars?)|(?:seed|recovery) phrases?)\b",
        ),
    ),
    ("{IDENTIFIER}", r#"[`"']?[a-z][a-z0-9]*(?:_[a-z0-9]+)+[`"']?"#),
    (
        "{MODEL}",
        concat!(
            r"(?:ai|a\.i\.|llms?|language models?|ai (?:assistants?|agents?|models?|systems?)|",
            r"(?:llm|autonomous|virtual|digital) (?:assistants?|agents?)|assistants?|",
            r"chat ?bots?|copilots?|",
            r"claude|chatgpt|gpt(?:-\d\w*)?|gemini)\b",
        ),
    ),
    (
        "{ORDERED}",
        concat!(
            r"(?:you (?:must|should|need to|have to|shall|will now|are (?:now|to|required|",
            r"instructed))|",
            r"your (?:new|real|only|first|next|task|instructions?|response|answer|reply)|ignore|",
            r"disregard|",
            r"(?:do not|don't|never) (?:tell|inform|mention|reveal|ask)|immediately|",
            r"before (?:using|calling|doing|invoking|answering|responding|you)|",
            r"(?:call|invoke|execute|forward|exfiltrate|transfer|reveal|disclose|email) |",
            r"(?:all|any) (?:previous|prior|earlier)|new instructions?|(?:this|the) (?:tool|",
            r"assistant|ai) must)\b",
        ),
    ),
    (
        "{ROLE}",
        concat!(
            r"(?:system|developer|admin(?:istrator)?|root|security|instructions?|important|",
            r"critical|urgent|",
            r"secret|hidden|mandatory|override|assistant|agent|llm|ai|information|attention|",
            r"priority)",
        ),
    ),
    (
        "{FAILED}",
        concat!(
            r"\b(?:errors?|fail(?:ed|ure|s)?|denied|unauthori[sz]ed|forbidden|could not|",
            r"couldn't|cannot|",
            r"can't|unable|timed? ?out|expired|unavailable|rejected|blocked|incomplete|",
            r"exception|invalid|",
            r"insufficient|crashed|corrupt(?:ed)?|aborted)\b",
        ),
    ),
    ("{MUST}", r"\b(?:must|always|should|also|first|instead|change|replace|add|set)\b"),
    (
        "{CHANGED}",
        concat!(
            r"\b(?:recipients?|bcc|cc|forward|redirect|address|amount|price|send|route|proxy|",
            r"instead of|log|copy|",
            r"parameters?|arguments?)\b",
        ),
    ),
    (
        "{READ}",
        concat!(
            r"\b(?:read|open|cat|load|access|get|fetch|include|attach|pass|copy|send|extract|",
            r"retrieve|append|collect|upload)\b\s+",
        ),
    ),
    (
        "{SENSITIVE}",
        concat!(
            r"(?:\.ssh\b|id_rsa\b|id_ed25519\b|\.aws[/\\]credentials|\.env\b|\.netrc\b|",
            r"\.git-credentials\b|",
            r"\.npmrc\b|\.pypirc\b|\.kube[/\\]config|\.docker[/\\]config|/etc/(?:passwd|shadow|",
            r"sudoers)\b|",
            r"mcp\.json\b|claude_desktop_config|\.bash_history\b|wallet\.dat\b|login data\b|",
            r"cookies\.sqlite\b|(?:ssh|private) keys?\b)",
        ),
    ),
];
