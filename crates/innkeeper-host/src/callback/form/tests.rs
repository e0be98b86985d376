//! Tests of the check for secrets in forms.

use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::*;

fn secret_field_in_params(params: &Value) -> Option<String> {
    match find_form_problem(Some(&to_raw_value(params).unwrap()))? {
        FormProblem::Secret(field) => Some(field),
        FormProblem::NotChecked(reason) => panic!("{reason}"),
    }
}

/// Returns whether a form with one field for text is refused because of this member.
fn is_refused_with(member: &str, text: &str) -> bool {
    let mut params = json!({"requestedSchema": {"properties": {"value": {"type": "string"}}}});
    match member {
        "name" => params["requestedSchema"]["properties"] = json!({(text): {"type": "string"}}),
        "message" => params["message"] = json!(text),
        "choice" => params["requestedSchema"]["properties"]["choice"] = json!({"enum": [text]}),
        member => params["requestedSchema"]["properties"]["value"][member] = json!(text),
    }
    secret_field_in_params(&params).is_some()
}

fn secret_field_in_schema(name: &str, schema: &Value) -> Option<String> {
    secret_field_in_params(
        &json!({ "requestedSchema": { "properties": { "city": {}, (name): schema } } }),
    )
}

#[test]
fn a_field_whose_name_title_or_format_is_that_of_a_secret_is_found() {
    let text = json!({"type": "string"});
    for name in [
        "password",
        "userPassword",
        "API key",
        "api_key",
        "apikey",
        "accessToken",
        "token",
        "otp",
        "one-time code",
        "card_number",
        "creditCard",
        "cvv",
        "seedPhrase",
        "recovery phrase",
        "PIN",
        "client_secret",
        "private-key",
    ] {
        assert_eq!(secret_field_in_schema(name, &text).as_deref(), Some(name));
        let titled = json!({"type": "string", "title": name});
        assert_eq!(secret_field_in_schema("value", &titled).as_deref(), Some("value"), "{name}");
    }
    assert!(
        secret_field_in_schema("value", &json!({"type": "string", "format": "password"})).is_some()
    );
}

#[test]
fn other_fields_choices_and_questions_of_yes_or_no_are_none() {
    let text = json!({"type": "string"});
    for name in [
        "city",
        "max_tokens",
        "token_count",
        "next_page_token",
        "fromToken",
        "secret_name",
        "api_key_id",
        "passwordLength",
        "tokenName",
        "postcard",
        "spinner",
        "key",
        "passport",
        "secretary",
        "code",
        "zip code",
        "keyboard",
        "card",
        "opinion",
    ] {
        assert_eq!(secret_field_in_schema(name, &text), None, "{name}");
    }
    assert_eq!(secret_field_in_schema("password", &json!({"type": "boolean"})), None);
    assert_eq!(
        secret_field_in_schema("pin", &json!({"type": "string", "enum": ["top", "bottom"]})),
        None
    );
}

#[test]
fn what_has_fields_is_a_form_whatever_its_mode_is_called() {
    let mut params = json!({ "requestedSchema": { "properties": { "password": {} } } });
    assert!(secret_field_in_params(&params).is_some());
    params["mode"] = json!("form");
    assert!(secret_field_in_params(&params).is_some());
    params["mode"] = json!("url");
    assert!(secret_field_in_params(&params).is_some());
    assert!(
        secret_field_in_params(&json!({ "mode": "url", "url": "https://a", "message": "?" }))
            .is_none()
    );
    assert!(find_form_problem(None).is_none());
}

/// Attack: data | a form asks for a secret in letters of another alphabet, with invisible
/// characters, spaced or with digits, in any text of the form | the form is refused | Complete checks
#[test]
fn a_secret_is_found_however_its_letters_are_dressed() {
    for text in [
        "Ｐａｓｓｗｏｒｄ",
        "pass\u{200b}word",
        "Pаsswоrd",
        "p a s s w o r d",
        "p.a.s.s.w.o.r.d",
        "pas sw ord",
        "pass word",
        "P\u{335}a\u{335}s\u{335}s\u{335}w\u{335}o\u{335}r\u{335}d\u{335}",
        "p4ssw0rd",
        "\u{1d429}\u{1d41a}\u{1d42c}\u{1d42c}word",
        "pass\u{ad}word",
        "пapoль",
        "п а р о л ь",
        "パス ワード",
    ] {
        for member in ["name", "title", "description", "message", "choice"] {
            assert!(is_refused_with(member, text), "{member}: {text}");
        }
    }
}

/// Attack: data | a form asks for a secret with another word or in another language | the form is
/// refused | Complete checks
#[test]
fn a_secret_is_found_in_the_large_languages() {
    for text in [
        "2FA code",
        "SSH key",
        "Bearer",
        "Session cookie",
        "Your Anthropic key",
        "OpenAI key",
        "Backup code",
        "Passwort",
        "Kennwort",
        "API-Schlüssel",
        "Kreditkartennummer",
        "Geheimzahl",
        "Mot de passe",
        "clé API",
        "Code de vérification",
        "Jeton",
        "carte bancaire",
        "Contraseña",
        "Clave privada",
        "Código de verificación",
        "Tarjeta de crédito",
        "Senha",
        "Palavra-passe",
        "Chave de API",
        "Cartão de crédito",
        "Código de segurança",
        "Chiave privata",
        "Parola d'ordine",
        "Codice di verifica",
        "Codice PIN",
        "Wachtwoord",
        "Geheime sleutel",
        "API-sleutel",
        "Hasło",
        "Klucz prywatny",
        "Kod weryfikacyjny",
        "Numer karty",
        "Пароль",
        "Секретный ключ",
        "Код подтверждения",
        "ПИН-код",
        "Токен",
        "Приватний ключ",
        "Код підтвердження",
        "Şifre",
        "Şifreniz",
        "Parolanız",
        "Doğrulama kodu",
        "API anahtarı",
        "Kart numarası",
        "密码",
        "密碼",
        "私钥",
        "验证码",
        "API 密钥",
        "助记词",
        "パスワード",
        "秘密鍵",
        "認証コード",
        "APIキー",
        "비밀번호",
        "개인 키",
        "인증 코드",
        "API 키",
        "كلمة المرور",
        "رمز التحقق",
        "المفتاح الخاص",
        "كلمة السر",
        "पासवर्ड",
        "निजी कुंजी",
        "ओटीपी",
    ] {
        for member in ["name", "title", "description", "message"] {
            assert!(is_refused_with(member, text), "{member}: {text}");
        }
    }
}

/// Attack: data | a sentence in the message, a description or a choice asks for a secret in a field
/// with a harmless name | the form is refused | Complete checks
#[test]
fn a_sentence_that_asks_for_a_secret_is_found_in_every_text() {
    for text in [
        "Please enter your password to continue.",
        "Sign-in failed! Type the API key here.",
        "We could not verify you. Paste your Anthropic key below.",
        "Don't hesitate to enter your password.",
        "Provide your GitHub token.",
        "GitHub password:",
        "Bitte geben Sie Ihr Passwort ein.",
        "Entrez votre mot de passe.",
        "Introduzca su contraseña.",
        "Digite sua senha.",
        "Inserisci la tua chiave privata.",
        "Voer uw wachtwoord in.",
        "Podaj hasło.",
        "Введите пароль.",
        "请输入密码。",
        "パスワードを入力してください。",
        "비밀번호를 입력하세요.",
        "أدخل كلمة المرور.",
        "अपना पासवर्ड दर्ज करें।",
    ] {
        for member in ["description", "message", "choice"] {
            assert!(is_refused_with(member, text), "{member}: {text}");
        }
    }
}

#[test]
fn ordinary_forms_are_not_refused() {
    for text in [
        "keyboard",
        "secretary",
        "passenger",
        "token count",
        "author",
        "primary key",
        "pin code of your city",
        "postal PIN code",
        "Keyword",
        "Parola chiave",
        "Foreign key",
        "Compass words",
        "Passport number",
        "Amount PLN",
        "Tan colour",
        "Monkey",
        "Turkey",
        "Favourite cookie",
        "Chocolate cookies",
        "Bypass",
        "Name of the token",
        "Schlüsselwort",
        "Palabra clave",
        "Mot clé",
        "キーボード",
        "关键词",
        "키워드",
        "Ключевое слово",
        "Имя токена",
        "Key",
        "Card",
        "Country code",
        "Verification status",
        "Error code",
        "Licence plate",
        "City",
    ] {
        for member in ["name", "title", "description", "message", "choice"] {
            assert!(!is_refused_with(member, text), "{member}: {text}");
        }
    }
    for text in [
        "Never share your password with anyone.",
        "Do not enter your password here; choose a user name.",
        "Enter a name for the new access token.",
        "Rotate API key 'ci'?",
        "Reset password?",
        "Which city do you live in?",
        "The server stores a password elsewhere.",
        "Choose the maximum number of tokens.",
        "What is the path of the SSH key?",
        "Please type the primary key column.",
    ] {
        assert!(!is_refused_with("message", text), "{text}");
    }
}

#[test]
fn a_form_of_choices_has_no_field_for_a_secret() {
    let choices = json!({"yes": {"type": "boolean"}, "one": {"enum": ["a", "b"]},
        "many": {"type": "array", "items": {"anyOf": [{"const": "a"}]}}});
    let form =
        json!({"message": "Enter your password?", "requestedSchema": {"properties": choices}});
    assert_eq!(secret_field_in_params(&form), None);
    let fake = json!({"password": {"type": "string", "anyOf": [{"type": "string"}]}});
    let form = json!({"requestedSchema": {"properties": fake}});
    assert_eq!(secret_field_in_params(&form).as_deref(), Some("password"));
    let nested = json!({"login": {"type": "object", "properties": {"password": {}}}});
    let form = json!({"requestedSchema": {"properties": nested}});
    assert_eq!(secret_field_in_params(&form).as_deref(), Some("password"));
}

/// Attack: data | a form is too long, too deep or not valid Unicode | the form is refused without a
/// check | Complete checks
#[test]
fn a_form_that_is_not_checked_is_refused() {
    let problem = |text: String| find_form_problem(Some(&RawValue::from_string(text).unwrap()));
    let form = |message: &str| {
        format!(r#"{{"message":"{message}","requestedSchema":{{"properties":{{"a":{{}}}}}}}}"#)
    };
    assert_eq!(problem(form("city?")), None);
    let long = problem(form(&"x".repeat(MAX_FORM_BYTES)));
    assert_eq!(long, Some(FormProblem::NotChecked("a form must not be longer than 64 KiB")));
    let surrogate = problem(form(r"city \ud800?"));
    assert_eq!(surrogate, Some(FormProblem::NotChecked("a form must be valid Unicode")));
    let nested =
        |levels| (0..levels).fold(json!({}), |inner, _| json!({"properties": {"a": inner}}));
    let nested = |levels| problem(json!({"requestedSchema": nested(levels)}).to_string());
    assert_eq!(nested(MAX_FORM_DEPTH), None);
    let reason = "a form must not have more than 8 levels";
    assert_eq!(nested(MAX_FORM_DEPTH + 1), Some(FormProblem::NotChecked(reason)));
}
