//! Words that mean a secret, in the large languages.
//!
//! A label is compared by words, without accents and in one case, and words of other scripts by
//! their letters. A sentence asks for a secret only if it also has a word that asks.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::MAX_LABEL_BYTES;
use crate::text::{look_alike_letter, plain_text, visible_text};

/// Beginnings of words that mean a secret.
const SECRET_STEMS: [&str; 21] = [
    "apikey",
    "credential",
    "contrasen",
    "einmalcode",
    "geheimzahl",
    "kennwort",
    "kreditkart",
    "mnemonic",
    "parolan",
    "passcode",
    "passkey",
    "passphrase",
    "passwd",
    "password",
    "passwort",
    "privatekey",
    "secretkey",
    "sifre",
    "wachtwoord",
    "zugangscode",
    "zugangsdaten",
];

/// Words that mean a secret.
const SECRET_WORDS: [&str; 22] = [
    "2fa",
    "bearer",
    "creditcard",
    "cvc",
    "cvv",
    "haslo",
    "hasla",
    "jeton",
    "mfa",
    "motdepasse",
    "otp",
    "pin",
    "pwd",
    "secret",
    "secrets",
    "segredo",
    "senha",
    "senhas",
    "totp",
    "verificatiecode",
    "beveiligingscode",
    "sicherheitscode",
];

/// Sequences of words that mean a secret. An item `a|b` stands for either word; a word matches the
/// beginning of a word if it ends with `*`.
const SECRET_PHRASES: [&[&str]; 38] = [
    &[
        "access|account|api|deploy|encryption|gpg|host|master|pgp|private|recovery|secret|signing|ssh|wallet",
        "key*",
    ],
    &[VENDORS, "key*"],
    &[
        "access|api|app|auth|authentication|authorization|bearer|csrf|id|jwt|oauth|personal|refresh|session",
        "token*",
    ],
    &["card|carte|karten|kart", "number*|numero*|nummer*|numaras*"],
    &["credit|debit", "card*"],
    &[
        "security|verification|authentication|authenticator|authorization|confirmation|backup|recovery|login|sms",
        "code*",
    ],
    &["one", "time", "code*|password*"],
    &["seed|recovery", "phrase*|words"],
    &["pass", "word*|code*|phrase*|key*"],
    &["session|auth|authentication|login|browser", "cookie*"],
    &["cookie", "header|value"],
    // German.
    &["api|geheimer|privater|ssh|zugangs", "schlussel*|schluessel*"],
    &["privaten|geheimen", "schlussel*|schluessel*"],
    // French.
    &["mot*", "de", "passe"],
    &["cle*", "api|privee|secrete|ssh|d|de"],
    &["code*", "secret|pin"],
    &["carte", "bancaire|bleue"],
    &["code*", "de", "verification|securite|confirmation"],
    &["phrase", "secrete"],
    &["phrase", "de", "recuperation|passe"],
    // Spanish and Portuguese.
    &["clave*|chave*", "api|privada*|secreta*|ssh"],
    &["clave*|chave*", "de|da", "acceso|acesso|api|seguranca|seguridad"],
    &["codigo*", "de", "verificac*|segurid*|seguranc*|confirmac*|acceso|acesso"],
    &["tarjeta|cartao", "de", "credito|debito"],
    &["numero", "de|do|da", "tarjeta|cartao|carte"],
    &["frase", "semilla|semente|secreta|segreta"],
    &["frase", "de|di", "recuperac*|recupero"],
    &["palavra", "passe"],
    // Italian.
    &["chiave", "api|privata|segreta|ssh"],
    &["parola", "d", "ordine"],
    &["codice", "di", "verifica|sicurezza|conferma"],
    &["codice", "segreto|pin"],
    &["carta", "di", "credito|debito"],
    // Dutch.
    &["api|geheime|prive|ssh", "sleutel*"],
    // Polish.
    &["klucz*", "prywatn*|tajn*|api|ssh|dostep*"],
    &["kod*", "weryfikac*|dostep*|sms|pin"],
    &["numer*", "kart*"],
    // Turkish.
    &["dogrulama|guvenlik|onay|gizli|ozel|api|kredi", "kod*|anahtar*|kart*"],
];

const VENDORS: &str = "anthropic|aws|azure|claude|cohere|deepseek|gemini|github|gitlab|google|groq|\
                       huggingface|mistral|openai|openrouter|replicate|sendgrid|slack|stripe|twilio";

/// Words that mean a secret only as a whole label: `parola` is a password in Turkish and a word in
/// Italian.
const SECRET_LABELS: [&str; 4] = ["clave", "parola", "tan", "token"];

/// Texts of other scripts that mean a secret, without blanks.
const SECRET_TEXTS: [&str; 83] = [
    "парол",
    "секретныйключ",
    "приватныйключ",
    "закрытыйключ",
    "ключapi",
    "apiключ",
    "api-ключ",
    "токен",
    "кодподтверждения",
    "кодизсмс",
    "кодбезопасности",
    "пинкод",
    "пин-код",
    "кодовоеслово",
    "номеркарты",
    "одноразовыйкод",
    "сидфраз",
    "сид-фраз",
    "секретнийключ",
    "приватнийключ",
    "закритийключ",
    "кодпідтвердження",
    "номеркартки",
    "одноразовийкод",
    "密码",
    "密碼",
    "口令",
    "私钥",
    "私鑰",
    "密钥",
    "密鑰",
    "金鑰",
    "验证码",
    "驗證碼",
    "令牌",
    "助记词",
    "助記詞",
    "信用卡号",
    "信用卡號",
    "银行卡号",
    "安全码",
    "安全碼",
    "パスワード",
    "暗証番号",
    "秘密鍵",
    "認証コード",
    "確認コード",
    "apiキー",
    "アクセスキー",
    "トークン",
    "シークレット",
    "パスフレーズ",
    "カード番号",
    "ワンタイム",
    "シードフレーズ",
    "セキュリティコード",
    "비밀번호",
    "암호",
    "개인키",
    "비밀키",
    "인증번호",
    "인증코드",
    "api키",
    "토큰",
    "카드번호",
    "시드구문",
    "보안코드",
    "كلمةالمرور",
    "كلمةمرور",
    "كلمةالسر",
    "رمزالتحقق",
    "رمزالأمان",
    "المفتاحالخاص",
    "مفتاحapi",
    "الرقمالسري",
    "رقمالبطاقة",
    "पासवर्ड",
    "गुप्तकोड",
    "निजीकुंजी",
    "ओटीपी",
    "एपीआईकुंजी",
    "कार्डनंबर",
    "सत्यापनकोड",
];

/// Texts of other scripts for the name of a secret, without blanks.
const NAME_TEXTS: [&str; 8] = [
    "имятокена",
    "названиетокена",
    "назватокена",
    "令牌名称",
    "トークン名",
    "토큰이름",
    "密钥名称",
    "密码长度",
];

/// Last words of a name that describes a secret but does not ask for one.
const NON_SECRET_SUFFIXES: [&str; 9] =
    ["arn", "count", "file", "hint", "id", "length", "name", "policy", "url"];

/// Words that describe a secret before these prepositions: the name of a token.
const DESCRIBING_WORDS: [&str; 9] =
    ["count", "description", "expiry", "id", "identifier", "label", "length", "name", "path"];
const DESCRIBING_PREPOSITIONS: [&str; 4] = ["for", "in", "of", "to"];

/// Words before `token` that make the name a page token or a crypto token.
const NON_SECRET_TOKEN_PREFIXES: [&str; 6] = ["cursor", "from", "next", "page", "sync", "to"];

/// Words of a place. In some countries, the code of a place is a PIN code.
const PLACE_WORDS: [&str; 10] = [
    "address", "area", "city", "delivery", "district", "post", "postal", "state", "town", "village",
];

/// Beginnings of words that ask for something, in English, German, French, Spanish, Portuguese,
/// Italian, Dutch, Polish and Turkish.
const ASKING_STEMS: [&str; 39] = [
    "ask",
    "attach",
    "confirm",
    "copy",
    "enter",
    "fill",
    "input",
    "insert",
    "need",
    "paste",
    "please",
    "provide",
    "require",
    "send",
    "share",
    "submit",
    "supply",
    "verify",
    "write",
    "your",
    "bitte",
    "eingeben",
    "geben",
    "entrez",
    "saisi",
    "veuillez",
    "votre",
    "ingres",
    "introdu",
    "escrib",
    "digite",
    "insira",
    "inseri",
    "voer",
    "podaj",
    "wpisz",
    "twoj",
    "girin",
    "authentic",
];

/// Words that ask for something.
const ASKING_WORDS: [&str; 21] = [
    "give", "put", "tell", "type", "what", "my", "gib", "ihr", "ihre", "dein", "deine", "ton",
    "su", "tu", "sua", "seu", "tua", "tuo", "uw", "je", "jouw",
];

/// Words that warn before an asking word.
const DENYING_WORDS: [&str; 5] = ["never", "not", "don", "dont", "without"];
const DENIED_STEMS: [&str; 15] = [
    "ask", "contain", "disclos", "enter", "giv", "includ", "need", "past", "provid", "requir",
    "reveal", "send", "shar", "tell", "typ",
];

/// First words of a sentence about a secret that the server handles.
const ACTION_WORDS: [&str; 11] = [
    "add", "change", "create", "delete", "remove", "replace", "reset", "revoke", "rotate", "save",
    "store",
];

/// Maximum number of words of a label.
const MAX_LABEL_WORDS: usize = 8;

/// Maximum number of words of a sentence that is a label.
const MAX_SHORT_WORDS: usize = 4;

/// Minimum number of spaced letters that are a word.
const MIN_SPACED_LETTERS: usize = 3;

/// Returns whether a name or title is that of a secret.
pub(super) fn is_secret_label(label: &str) -> bool {
    let words = Words::new(label);
    let plain = &words.plain;
    let is_label = label.len() <= MAX_LABEL_BYTES && plain.len() <= MAX_LABEL_WORDS;
    if !is_label || is_denied(plain) || describes_secret(plain) {
        return false;
    }
    let last = plain.last().map(String::as_str).unwrap_or_default();
    if NON_SECRET_SUFFIXES.contains(&last) && !plain.iter().any(|word| word == "your") {
        return false;
    }
    // `token` means a secret only as the last word: `tokens` is a count and `token_name` is a name.
    let before_last = plain.iter().rev().nth(1).map(String::as_str).unwrap_or_default();
    let is_token = last == "token" && !NON_SECRET_TOKEN_PREFIXES.contains(&before_last);
    let is_whole = plain.len() == 1 && SECRET_LABELS.contains(&last);
    is_token || is_whole || words.has_secret_word() || words.has_secret_text()
}

pub(super) fn asks_for_secret(text: &str) -> bool {
    sentences(text).any(|sentence| {
        let words = Words::new(sentence);
        let plain = &words.plain;
        if is_denied(plain) || describes_secret(plain) {
            return false;
        }
        let names_token = plain
            .windows(2)
            .any(|pair| pair[1] == "token" && !NON_SECRET_TOKEN_PREFIXES.contains(&&*pair[0]));
        let is_asked = plain.iter().any(|word| {
            ASKING_WORDS.contains(&&**word)
                || ASKING_STEMS.iter().any(|stem| word.starts_with(stem))
        }) && (words.has_secret_word() || names_token);
        is_asked
            || words.has_secret_text()
            || [plain, &words.whole].into_iter().any(|words| is_short_secret(words))
    })
}

/// Splits a text at the ends of its sentences; a dot within a word ends none.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest
            .match_indices(|c| ".!?;\n。！？।؟".contains(c))
            .find(|(at, end)| {
                !end.is_ascii()
                    || rest[at + end.len()..].starts_with(char::is_whitespace)
                    || *end == "\n"
            })
            .map_or(rest.len(), |(at, end)| at + end.len());
        let (sentence, after) = rest.split_at(end);
        rest = after;
        Some(sentence)
    })
}

/// Returns whether the text is a label for the field below: `GitHub password:`.
fn is_short_secret(words: &[String]) -> bool {
    let Some((last, before)) = words.split_last() else { return false };
    let start = words.len().saturating_sub(3);
    words.len() <= MAX_SHORT_WORDS
        && !ACTION_WORDS.contains(&&*words[0])
        && has_secret_word(&words[start..])
        && (is_any(last, "code*|key*|number|token")
            || !has_secret_word(&before[start.min(before.len())..]))
}

/// Returns whether the text warns: `never share your password`.
fn is_denied(words: &[String]) -> bool {
    words.windows(3).any(|near| {
        DENYING_WORDS.contains(&&*near[0])
            && near[1..].iter().any(|word| DENIED_STEMS.iter().any(|stem| word.starts_with(stem)))
    })
}

/// Returns whether the text is about a property of a secret: `the name of the token`.
fn describes_secret(words: &[String]) -> bool {
    words.windows(2).any(|pair| {
        DESCRIBING_WORDS.contains(&&*pair[0]) && DESCRIBING_PREPOSITIONS.contains(&&*pair[1])
    })
}

struct Words {
    /// Words in plain form: `apiKey`, `API key` and `api_key` give the same two words.
    plain: Vec<String>,
    /// Words in plain form that end only at blanks and signs: `OpenAI` is one word.
    whole: Vec<String>,
    /// The letters of a text with letters outside of ASCII, in lower case.
    letters: Option<String>,
}

impl Words {
    fn new(text: &str) -> Self {
        let visible: String =
            visible_text(text).chars().filter(|c| !is_combining_mark(*c)).collect();
        let plain = split_words(&visible).iter().map(|word| plain_text(word)).collect();
        let whole = visible.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let whole = whole.map(plain_text).collect();
        let letters = (!visible.is_ascii()).then(|| native_letters(&visible_text(text)));
        Self { plain: join_spaced_letters(plain), whole, letters }
    }

    fn has_secret_word(&self) -> bool {
        has_secret_word(&self.plain) || has_secret_word(&self.whole)
    }

    fn has_secret_text(&self) -> bool {
        let Some(letters) = &self.letters else { return false };
        has_any_text(letters, &SECRET_TEXTS) && !has_any_text(letters, &NAME_TEXTS)
    }
}

fn has_any_text(letters: &str, texts: &[&str]) -> bool {
    texts.iter().any(|text| letters.contains(&native_letters(text)))
}

fn has_secret_word(plain: &[String]) -> bool {
    let folded: Vec<String> = plain.iter().map(|word| fold_digits(word)).collect();
    plain.iter().chain(&folded).any(|word| {
        (SECRET_WORDS.contains(&&**word) || SECRET_STEMS.iter().any(|stem| word.starts_with(stem)))
            && !(word == "pin" && plain.iter().any(|word| PLACE_WORDS.contains(&&**word)))
    }) || SECRET_PHRASES.iter().any(|phrase| {
        plain.windows(phrase.len()).any(|window| {
            window.iter().zip(*phrase).all(|(word, alternatives)| is_any(word, alternatives))
        })
    }) || is_chopped_secret(plain)
}

fn is_any(word: &str, alternatives: &str) -> bool {
    alternatives.split('|').any(|alternative| match alternative.strip_suffix('*') {
        Some(stem) => word.starts_with(stem),
        None => word == alternative,
    })
}

/// Returns a word with digits as the letters that they look like; without a digit, the word itself.
fn fold_digits(word: &str) -> String {
    let has_both = word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_lowercase());
    if !has_both {
        return word.to_owned();
    }
    word.bytes().filter_map(look_alike_letter).map(char::from).collect()
}

/// Returns whether short pieces of words join to a secret: `pas sw ord`.
fn is_chopped_secret(words: &[String]) -> bool {
    let pieces = words.split(|word| word.len() > 4);
    pieces.filter(|pieces| pieces.len() > 1).any(|pieces| {
        (0..pieces.len()).any(|start| {
            let joined = pieces[start..].concat();
            SECRET_STEMS.iter().any(|stem| joined.starts_with(stem))
        })
    })
}

/// Joins letters with blanks between them to words.
fn join_spaced_letters(words: Vec<String>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::with_capacity(words.len());
    let mut spaced = Vec::new();
    for word in words.into_iter().chain([String::new()]) {
        if word.chars().count() == 1 {
            spaced.push(word);
            continue;
        }
        if spaced.len() >= MIN_SPACED_LETTERS {
            joined.push(spaced.concat());
            spaced.clear();
        }
        joined.append(&mut spaced);
        joined.push(word);
    }
    joined.pop();
    joined
}

/// Returns the letters of a text in lower case, without marks, blanks and dashes. In a text with
/// Cyrillic letters, Latin look-alikes become Cyrillic.
fn native_letters(text: &str) -> String {
    let letters: String = text
        .nfkd()
        .filter(|c| c.is_alphanumeric() && !is_combining_mark(*c))
        .flat_map(char::to_lowercase)
        .collect();
    if !letters.contains(|c| matches!(c, '\u{400}'..='\u{4ff}')) {
        return letters;
    }
    letters
        .chars()
        .map(|letter| match letter {
            'a' => 'а',
            'c' => 'с',
            'e' => 'е',
            'i' => 'і',
            'k' => 'к',
            'm' => 'м',
            'o' => 'о',
            'p' => 'р',
            't' => 'т',
            'x' => 'х',
            'y' => 'у',
            other => other,
        })
        .collect()
}

/// Splits a name into words: `apiKey`, `API key` and `api_key` give two words.
fn split_words(label: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for letter in label.chars() {
        let begins = letter.is_uppercase() && small;
        if begins || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(letter);
        }
        small = letter.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}
