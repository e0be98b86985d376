//! The rules about words, as data. A pattern is read against plain text: small letters, one blank.
//!
//! Families: OWASP MCP03 (tool poisoning), MCP06 (prompt injection via context), MCP10 (context
//! over-sharing); the published attacks on tool descriptions, on results and on errors, and
//! shadowing between servers.

use super::Source;
use crate::guard::FindingKind::{
    self, Concealment, CredentialFile, Exfiltration, Frame, Override, Solicitation, Steering,
};

/// One rule.
pub(super) struct Rule {
    pub(super) kind: FindingKind,
    pub(super) reason: &'static str,
    /// The one source it is for, if not for all.
    only: Option<Source>,
    /// Pieces of a pattern; `{NAME}` stands for one of [`WORDS`].
    parts: &'static [&'static str],
    /// What a match with it is not meant by.
    pub(super) except: &'static [&'static str],
}

impl Rule {
    pub(super) fn holds_in(&self, source: Source) -> bool {
        self.only.is_none_or(|only| only == source)
    }

    pub(super) fn pattern(&self) -> String {
        let mut pattern = self.parts.concat();
        for (name, words) in WORDS {
            pattern = pattern.replace(name, words);
        }
        pattern
    }
}

/// Words that say that what follows is told of and not said.
pub(super) const TOLD_OF: &str = concat!(
    r"\b(?:attack(?:er)?s?|adversar\w+|injections?|jailbreak\w*|malicious|phish\w*|payloads?|",
    r"detect\w*|classif\w+|red[- ]team\w*|e\.g\.|for (?:example|instance)|such as|examples? of|",
    r"(?:phrases?|instructions?|messages?|text|strings?|words|commands?|prompts?|something) ",
    r"(?:like|such as|saying|that says?|telling|containing|reading)|trick\w*|suspicious|untrusted|",
    r"attempt(?:s|ed|ing)? to|(?:asks?|asked|asking|tells?|told|telling|instruct(?:s|ed|ing)?|",
    r"gets?|getting|makes?|making|causes?|causing|persuad\w+|convinc\w+) (?:the |an? |your |its )?",
    r"(?:ai|llms?|models?|assistants?|agents?|chatbots?|it)(?: agents?| models?)? to|",
    r"block(?:s|ed|ing)?|filter(?:s|ed|ing)?|flag(?:s|ged|ging)?|quot(?:e|es|ed|ing)|",
    r"test cases?|reported|whether (?:to|the)|says?|said|wrote|titled|entitled|called)\b",
);

/// Groups of words that several rules share, longest names first.
const WORDS: &[(&str, &str)] = &[
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
            r"(?:do not|don't|never|stop) (?:follow|obey|follow up on|comply with|adhere to|following|",
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
            r"(?:api[ _-]?keys?|credentials?|passwords?|passphrases?|(?:access|auth|authentication|bearer|",
            r"session|refresh|oauth|api) tokens?|tokens|session cookies?|cookies|secrets?|private keys?|",
            r"ssh keys?|env(?:ironment)? (?:variables?|vars?)|(?:seed|recovery) phrases?)\b",
        ),
    ),
    ("{IDENTIFIER}", r#"[`"']?[a-z][a-z0-9]*(?:_[a-z0-9]+)+[`"']?"#),
    (
        "{MODEL}",
        concat!(
            r"(?:ai|a\.i\.|llms?|language models?|ai (?:assistants?|agents?|models?|systems?)|",
            r"(?:llm|autonomous|virtual|digital) (?:assistants?|agents?)|assistants?|chat ?bots?|copilots?|",
            r"claude|chatgpt|gpt(?:-\d\w*)?|gemini)\b",
        ),
    ),
    (
        "{ORDERED}",
        concat!(
            r"(?:you (?:must|should|need to|have to|shall|will now|are (?:now|to|required|instructed))|",
            r"your (?:new|real|only|first|next|task|instructions?|response|answer|reply)|ignore|disregard|",
            r"(?:do not|don't|never) (?:tell|inform|mention|reveal|ask)|immediately|",
            r"before (?:using|calling|doing|invoking|answering|responding|you)|",
            r"(?:call|invoke|execute|forward|exfiltrate|transfer|reveal|disclose|email) |",
            r"(?:all|any) (?:previous|prior|earlier)|new instructions?|(?:this|the) (?:tool|assistant|ai) must)\b",
        ),
    ),
    (
        "{ROLE}",
        concat!(
            r"(?:system|developer|admin(?:istrator)?|root|security|instructions?|important|critical|urgent|",
            r"secret|hidden|mandatory|override|assistant|agent|llm|ai|information|attention|priority)",
        ),
    ),
    (
        "{FAILED}",
        concat!(
            r"\b(?:errors?|fail(?:ed|ure|s)?|denied|unauthori[sz]ed|forbidden|could not|couldn't|cannot|",
            r"can't|unable|timed? ?out|expired|unavailable|rejected|blocked|incomplete|exception|invalid|",
            r"insufficient|crashed|corrupt(?:ed)?|aborted)\b[\s\S]{0,240}?",
        ),
    ),
    ("{MUST}", r"\b(?:must|always|should|also|first|instead|change|replace|add|set)\b"),
    (
        "{CHANGED}",
        concat!(
            r"\b(?:recipients?|bcc|cc|forward|redirect|address|amount|price|send|route|proxy|instead of|log|copy|",
            r"parameters?|arguments?)\b",
        ),
    ),
    (
        "{READ}",
        r"\b(?:read|open|cat|load|access|get|fetch|include|attach|pass|copy|send|extract|retrieve|append|collect|upload)\b\s+",
    ),
    (
        "{SENSITIVE}",
        concat!(
            r"(?:\.ssh\b|id_rsa\b|id_ed25519\b|\.aws[/\\]credentials|\.env\b|\.netrc\b|\.git-credentials\b|",
            r"\.npmrc\b|\.pypirc\b|\.kube[/\\]config|\.docker[/\\]config|/etc/(?:passwd|shadow|sudoers)\b|",
            r"mcp\.json\b|claude_desktop_config|\.bash_history\b|wallet\.dat\b|login data\b|",
            r"cookies\.sqlite\b|(?:ssh|private) keys?\b)",
        ),
    ),
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        kind: Override,
        reason: "tells a model to disregard what it was told before",
        only: None,
        parts: &[
            "{BREAK}",
            r"{GAP5}(?:previous(?:ly)?|prior|preceding|earlier|above|foregoing|former|past|your|",
            r"original|initial)\s+{GAP3}(?:instructions?|prompts?|directions?|directives?|guidelines?|",
            r"guardrails?|commands?|orders?|polic(?:y|ies)|restrictions?|safeguards?|rules|programming|",
            r"training|tasks?|requests?|context|constraints?|limitations?)\b",
        ],
        except: &[],
    },
    Rule {
        kind: Override,
        reason: "tells a model to disregard its instructions",
        only: None,
        parts: &[
            "{BREAK}",
            r"{GAP3}(?:all|any|every|everything|existing|current|system|safety|security|user'?s?|developer'?s?|",
            r"other|the)\s+{GAP3}(?:(?:instructions?|system prompts?|system messages?|directives|guardrails|",
            r"guidelines|safeguards|programming)\b|(?:user|person|human)'?s? (?:requests?|intent|wishes|",
            r"instructions?|preferences)\b|you (?:were|have been|are) (?:told|given|instructed))",
        ],
        except: &["instructions unless", "build instructions", "install instructions"],
    },
    Rule {
        kind: Override,
        reason: "gives a model a new task",
        only: None,
        parts: &[
            r"\byour (?:new|real|actual|true|only|updated|revised) {GAP2}(?:task|objective|goal|instructions?|",
            r"directives?|mission|purpose|priority|orders?) (?:is|are|:)|",
            r"(?:^|\W)(?:new|updated|revised) (?:system )?(?:instructions?|directives?|orders?)(?: follow(?:s)?)?:|",
            r"\bfrom (?:now|this point|here) on,? (?:you (?:will|must|should|shall|are)|(?:always|only|never) )|",
            r"\binstead,? (?:you (?:must|should|will)|do the following|follow these)\b",
        ],
        except: &[],
    },
    Rule {
        kind: Override,
        reason: "gives a model another role",
        only: None,
        parts: &[
            r"\byou(?: are|'re) now (?:in|operating in|running in|entering) {GAP2}(?:mode|access)\b|",
            r"\byou(?: are|'re) now (?:an?|the) {GAP3}(?:assistant|ai|agent|model|chatbot|bot|llm|hacker)\b|",
            r"\byou(?: are|'re) no longer (?:bound|restricted|limited|required|constrained|subject|an?)\b|",
            r"\b(?:act|behave|respond|operate) as (?:if you (?:were|are|had)|an?|the) {GAP2}",
            r"(?:unrestricted|unfiltered|uncensored|jailbroken|administrator|admin|root|superuser)\b|",
            r"\b(?:developer|god|debug|maintenance|jailbreak|dan|unrestricted|sudo) mode (?:is )?",
            r"(?:enabled|activated|engaged)\b",
        ],
        except: &[],
    },
    Rule {
        kind: Frame,
        reason: "has markers of a chat template",
        only: None,
        parts: &[
            r"<\|(?:im_start|im_end|system|user|assistant|start_header_id|end_header_id|eot_id|",
            r"endoftext|begin_of_text|end_of_turn)\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>|",
            r"\n\n(?:human|assistant): {GAP3}{ORDERED}",
        ],
        except: &[],
    },
    Rule {
        kind: Frame,
        reason: "has orders in a frame that pretends to be of another role",
        only: None,
        parts: &[
            r"(?:<\s*(?:[a-z]+[ _-])?{ROLE}(?:[ _-][a-z]+){0,2}(?: [^>]{0,60})?>|",
            r"\[\[?\s*(?:[a-z]+[ _-])?{ROLE}(?:[ _-][a-z]+){0,3}\s*\]\]?|",
            r"(?:^|\n)\s*(?:[#=~>|-]{1,10}\s*){1,3}(?:[a-z]+[ _-])?{ROLE}(?:[ _-][a-z]+){0,2}\s*(?:[#=~|-]{2,10}|:|\n)|",
            r"<!--\s*(?:[a-z]+[ _-])?{ROLE}(?:[ _-][a-z]+){0,2}\s*[:,-])",
            r"[\s\S]{0,300}?\b{ORDERED}",
        ],
        except: &[],
    },
    Rule {
        kind: Frame,
        reason: "speaks as the system or a developer would",
        only: None,
        parts: &[
            r#"(?:^|\n|[.!?"'>)\]]\s|\\n)\s*(?:[\[(#]\s*)*(?:system|developer|admin(?:istrator)?|security)"#,
            r"(?:[ _-](?:message|prompt|note|notice|override|instructions?|update|directive|command|alert|policy))?",
            r"\s*[\])]?\s*:\s*{GAP8}{ORDERED}",
        ],
        except: &[],
    },
    Rule {
        kind: Frame,
        reason: "speaks to a model",
        only: None,
        parts: &[
            r"\b(?:note|notice|attention|messages?|instructions?|reminder|warning|directives?|memo|commands?|",
            r"hint|important)\s*(?:to|for)?,?\s+(?:the |any |all |this |your |every )?{MODEL}",
            r"(?: (?:reading|processing|handling|parsing|summari[sz]ing)[^.:\n]{0,60})?\s*[:,(-]|",
            r"\b(?:dear|hey|hello|attention,?) {MODEL}|",
            r"\bif you(?: are|'re) an? {GAP2}{MODEL}|",
            r"(?:^|[.!?\n]\s*)(?:ai|llm)[ -](?:assistants?|agents?|models?)\s*[,:]\s*(?:please|you|do|now|always)\b|",
            r"\bas an? (?:ai|llm|language model)(?: assistant| agent| model)?,? you (?:must|should|need|will|are)\b",
        ],
        except: &[],
    },
    Rule {
        kind: Concealment,
        reason: "has a model keep something from its user",
        only: None,
        parts: &[
            r"\b(?:do not|don't|never|must not|mustn't|should not|shouldn't|no need to|avoid|refrain from|",
            r"without)\s+{GAP2}(?:tell(?:ing)?|mention(?:ing)?|inform(?:ing)?|reveal(?:ing)?|disclos(?:e|ing)|",
            r"alert(?:ing)?|notify(?:ing)?|warn(?:ing)?|acknowledg(?:e|ing)|discuss(?:ing)?|report(?:ing)?)\s+",
            r"{GAP5}(?:user|human|person|operator|owner|anyone|anybody)\b|",
            r"\b(?:keep|hide|conceal|withhold) (?:this|it|these|them|that|the [^\s]+)(?: [^\s]+){0,4}? from ",
            r"(?:the |your )?(?:user|human|operator|owner|person)\b|",
            r"\bthe user (?:must|should|need|does|may|can|will|shall)(?: not|n't) {GAP2}(?:know|notice|be ",
            r"(?:told|informed|notified|aware|alerted)|find out|learn|be made aware)\b|",
            r"\b(?:do not|don't|never) (?:mention|reveal|disclose|acknowledge|refer to|talk about) ",
            r"(?:this|these|that|the above|any of this|having|the existence of)\b",
        ],
        except: &["notifying users", "notify users"],
    },
    Rule {
        kind: Concealment,
        reason: "says that nobody has to be asked",
        only: Some(Source::Result),
        parts: &[
            r"\b(?:do not|don't|never|no need to|without) (?:ask(?:ing)?|wait(?:ing)?|request(?:ing)?|seek(?:ing)?|",
            r"requir(?:e|ing)|prompt(?:ing)?) {GAP3}(?:user|human|confirmation|permission|approval|consent)\b|",
            r"\bthe user (?:has|have) (?:already )?(?:pre-?)?(?:authori[sz]ed|approved|consented|agreed|granted|",
            r"given (?:you )?{GAP2}(?:permission|consent|approval))\b[\s\S]{0,120}?(?:\bso\b|no need|without|do not|",
            r"don't|proceed|\byou (?:may|can|should|must)|therefore)",
        ],
        except: &[],
    },
    Rule {
        kind: Solicitation,
        reason: "asks a model for its instructions",
        only: None,
        parts: &[
            r"\b(?:include|reveal|output|repeat|print|send|provide|pass|append|attach|share|paste|copy|report|show|",
            r"disclose|leak|forward|supply|give|insert|put|summari[sz]e|quote|reproduce|dump|echo|write|tell|return|",
            r"respond with|reply with|reply|post|submit|embed|expose|encode|place|add|enter|fill in|what (?:is|are))\s+{GAP8}",
            r"(?:(?:your|the|its|full|entire|complete|whole|exact|any|current|verbatim)\s+{GAP3}",
            r"(?:system|developer) (?:prompts?|instructions?|messages?)|(?:hidden|internal|secret|initial) ",
            r"(?:prompts?|instructions|guidelines)|your {GAP2}(?:instructions|system prompt|prompt|guidelines|",
            r"context window|chain[ -]of[ -]thought|configuration|tool (?:list|definitions)))\b",
        ],
        except: &["the system prompt to use", "whether to include", "system prompt for the"],
    },
    Rule {
        kind: Solicitation,
        reason: "asks a model for its conversation",
        only: None,
        parts: &[
            r"\b(?:include|send|provide|pass|append|attach|paste|copy|forward|supply|insert|put|quote|dump|echo|embed|",
            r"submit|upload|post|transmit|share|leak|exfiltrate|reveal|repeat|output|encode|place|add|summari[sz]e)\s+{GAP8}",
            r"(?:(?:entire|full|whole|complete|verbatim|raw|current|all|previous|your|user's|this)\s+{GAP3}",
            r"(?:conversation|chat|dialogue|transcript)(?: (?:history|so far|log|transcript|context))?\b|",
            r"(?:conversation|chat|message) (?:history|so far|log|transcript)\b|",
            r"(?:previous|prior|earlier|all) (?:user )?(?:messages|turns|tool (?:results|outputs|calls|responses))\b)",
        ],
        except: &["whether to include", "send all messages", "your chat"],
    },
    Rule {
        kind: Solicitation,
        reason: "asks a model for credentials",
        only: None,
        parts: &[
            r"\b(?:include|reveal|output|print|send|append|attach|share|paste|leak|forward|dump|echo|embed|upload|post|",
            r"transmit|exfiltrate|collect|gather|harvest|extract|steal|list|report|supply|encode|disclose)\s+{GAP5}",
            r"(?:all|any|the user'?s?|user'?s?|their|every|available|stored|saved|known)\s+{GAP3}{CREDENTIALS}",
        ],
        except: &["password reset", "reset", "policy", "policies"],
    },
    Rule {
        kind: Exfiltration,
        reason: "has a model send what it knows to an address",
        only: None,
        parts: &[
            r"\b(?:send|post|forward|upload|e-?mail|transmit|exfiltrate|submit|copy|leak|relay|deliver|bcc|push|pipe|report)\s+",
            r"{GAP8}(?:all|any|your|user'?s?|their|full|entire|every|whole|complete|contents? of|these|collected|the)\s+{GAP5}",
            r"(?:{CREDENTIALS}|(?:conversation|chat|history|system prompt|inbox|messages|e-?mails|contacts|database|",
            r"files?|contents?|data|context|transcripts?|documents?|records|results|output)\b|~/[^\s]+|[^\s]*\.(?:env|ssh)[^\s]*)",
            r"(?:\s+[^\s]+){0,10}?\s+(?:to|at|via|with|using|into)\s+{GAP3}{ADDRESS}",
        ],
        except: &[],
    },
    Rule {
        kind: Exfiltration,
        reason: "has a model send something unseen",
        only: None,
        parts: &[
            r"\b(?:always|silently|secretly|quietly|covertly|discreetly|also|must)\s+{GAP3}(?:bcc|cc|forward|send|copy|",
            r"upload|redirect|e-?mail|post|submit)\s+{GAP8}(?:to |via )?{GAP2}{ADDRESS}|",
            r"\b(?:silently|secretly|covertly|quietly|discreetly)\s+(?:and [a-z]+ )?(?:send|forward|upload|copy|transmit|",
            r"collect|exfiltrate|leak|e-?mail|post|include|append|attach|call|invoke|execute|read|transfer)\b|",
            r"\bbcc\s+{GAP5}{ADDRESS}",
        ],
        except: &[],
    },
    Rule {
        kind: Exfiltration,
        reason: "has a model put what it knows into an address",
        only: None,
        parts: &[
            r"\b(?:append|add|include|encode|embed|put|insert|place|attach)\s+{GAP15}(?:in|to|into|as|onto|inside)\s+{GAP5}",
            r"(?:url|link|query (?:string|parameter)|image|markdown image|hostname|subdomain|path)\b[\s\S]{0,80}?",
            r"(?:https?://|!\[)|!\[[^\]]{0,80}\]\(https?://[^)\s]{1,200}(?:\{|<|%7b|\$\{|\[)[^)]{0,120}\)",
        ],
        except: &[],
    },
    Rule {
        kind: Steering,
        reason: "leads a model to a tool of another server",
        only: Some(Source::Result),
        parts: &[
            r"\b(?:call|use|invoke|run|execute|retry (?:with|using|via)|trigger|switch to|query|delegate to|hand (?:off|over) to|",
            r"route (?:this|it|the request) (?:to|through)|pass (?:this|it|the [a-z]+) to|forward (?:this|it|the [a-z]+) to)\s+{GAP3}",
            r"(?:{IDENTIFIER}|`[a-z0-9_.:/-]+`|'[a-z0-9_.:/-]+'|[a-z0-9]+\.[a-z0-9_]+)(?:\s*\([^)]{0,200}\))?",
            r"(?:\s+(?:tool|function|method))?,?\s+{GAP5}(?:on|from|via|through|of|at|using|in|with)\s+(?:the\s+|your\s+)?",
            r#"[`"']?[a-z0-9_.-]+[`"']?\s+(?:mcp )?server\b"#,
        ],
        except: &[
            "remote server",
            "web server",
            "local server",
            "same server",
            "this server",
            "database server",
            "sql server",
            "dev server",
            "development server",
            "production server",
            "staging server",
            "build server",
            "proxy server",
            "mail server",
            "the server",
        ],
    },
    Rule {
        kind: Steering,
        reason: "leads a model from an error to more rights or fewer checks",
        only: Some(Source::Result),
        parts: &[
            r"{FAILED}\b(?:retry|try again|re-?run|re-?invoke|call|invoke|use|run|execute|repeat|resubmit|proceed|continue|",
            r"re-?issue|resend)\s+{GAP15}(?:(?:admin|administrator|administrative|root|sudo|privileged|elevated|superuser|unrestricted|full)",
            r"[ _-]{GAP2}(?:privileges?|rights?|permissions?|access|mode|scope|role|token|credentials?|tool|account)\b|",
            r"(?:bypass|disabl|skip|overrid|ignor|without)(?:e|es|ing|ping)?[ _-]?{GAP2}(?:auth[a-z]*|verification|validation|",
            r"safety|checks?|sandbox[a-z]*|approval|confirmation|security|guard[a-z]*|permissions?|polic(?:y|ies))\b|",
            r#"(?:admin|root|sudo|force|bypass|override|elevated|privileged|unsafe|dangerous[a-z]*|confirm|skip_[a-z]+)["'`]?\s*[=:]\s*["'`]?"#,
            r"(?:true|1|yes|root|admin)|(?:master|admin|root)[ _-](?:password|key|token|credentials?)\b)",
        ],
        except: &[],
    },
    Rule {
        kind: Steering,
        reason: "leads a model from an error to another tool with something dangerous in hand",
        only: Some(Source::Result),
        parts: &[
            r"{FAILED}\b(?:call|invoke|run|execute|use|retry (?:with|using|via))\s+{GAP3}(?:{IDENTIFIER}|`[a-z0-9_.-]+`|[a-z0-9_.]+\()",
            r"[\s\S]{0,120}?(?:https?://|\brm -|\bcurl |\bwget |/etc/|~/|\.ssh\b|\.env\b|passwords?\b|credentials?\b|secrets?\b|",
            r"private[ _]key|api[ _-]?key|\bdelete\b|\bdrop\b|\btransfer|\bchmod |\bsudo )",
        ],
        except: &[],
    },
    Rule {
        kind: Steering,
        reason: "leads a model from an error to handing over credentials",
        only: Some(Source::Result),
        parts: &[
            r"{FAILED}\b(?:provide|pass|include|send|supply|submit|paste|enter|attach|forward|add)\s+{GAP5}(?:user'?s?|all|stored|full|",
            r"complete|original|raw)\s+{GAP3}(?:{CREDENTIALS}|session\b|token\b)",
        ],
        except: &[],
    },
    Rule {
        kind: Steering,
        reason: "has a model act at once, before its user hears of it",
        only: Some(Source::Result),
        parts: &[
            r"\b(?:you (?:must|should|need to|have to) (?:now|immediately)|immediately|right away|",
            r"before (?:you )?(?:respond|reply|answer|continu|proceed|do|present|show|summari[sz])[a-z]*[^.\n]{0,60}?)\s*,?\s*{GAP3}",
            r"(?:call|invoke|run|execute|use|send|forward|transfer|delete|read|fetch|open|e-?mail|upload|post|visit)\s+{GAP5}",
            r"(?:{IDENTIFIER}|`[^`\n]{1,60}`|{ADDRESS}|~/|/etc/|[a-z0-9_.-]+ tool\b)",
        ],
        except: &[],
    },
    Rule {
        kind: Steering,
        reason: "says what a model has to do when it uses another tool",
        only: Some(Source::Definition),
        parts: &[
            r"\b(?:when(?:ever)?|if|before|after|each time|every time|any time)\s+{GAP5}(?:{IDENTIFIER}|`[^`\n]{1,60}`|any (?:other )?|",
            r"other |another )\s*(?:tools?\s+|functions?\s+|servers?\s+)?{GAP3}(?:is|are|being|gets?)?\s*{GAP2}(?:called|used|invoked|executed|available|present|run)\b",
            r"[\s\S]{0,160}?(?:{MUST}[\s\S]{0,120}?{CHANGED}|{CHANGED}[\s\S]{0,80}?{MUST})",
        ],
        except: &[],
    },
    Rule {
        kind: CredentialFile,
        reason: "has a model read files with credentials",
        only: Some(Source::Definition),
        parts: &[
            r"{READ}{GAP8}[^\s]{0,80}?{SENSITIVE}[\s\S]{0,200}?",
            r"\b(?:contents?|pass|send|include|append|attach|provide|otherwise|as (?:the |an? )?[^\s]+ (?:parameter|argument|field)|",
            r"before|first|into)\b|\b(?:before|first|always|must|required|please)\b[^.\n]{0,80}{READ}{GAP8}[^\s]{0,80}?{SENSITIVE}",
        ],
        except: &[".pub"],
    },
];
