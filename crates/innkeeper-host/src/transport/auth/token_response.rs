//! Token responses as public authorization servers send them, in the form of RFC 6749.

use reqwest::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Map, Value};

/// The content type of a token request.
const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// Returns whether a request is for a token or an assertion: only these requests post a form.
pub(super) fn is_token_request(request: &reqwest::Request) -> bool {
    let kind = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    *request.method() == reqwest::Method::POST && kind.is_some_and(|kind| kind.starts_with(FORM))
}

/// Rewrites a response that has one meaning and another form: a form instead of JSON, numbers in
/// texts, a list of scopes, no token type, an error with the status of a success. Other bodies stay
/// as they are.
pub(super) fn normalize(response: &mut http::Response<Vec<u8>>) {
    let Some(mut members) = parse(response.body()) else { return };
    let has_token = members.get("access_token").is_some_and(Value::is_string);
    if members.contains_key("error") && !has_token {
        if response.status().is_success() {
            *response.status_mut() = http::StatusCode::BAD_REQUEST;
        }
    } else if has_token {
        normalize_token(&mut members);
    } else {
        return;
    }
    *response.body_mut() = Value::Object(members).to_string().into_bytes();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
}

/// Parses a JSON object or a form.
fn parse(body: &[u8]) -> Option<Map<String, Value>> {
    let text = std::str::from_utf8(body).ok()?.trim();
    if text.starts_with('{') {
        return serde_json::from_str(text).ok();
    }
    let is_form = text.starts_with("access_token=") || text.contains("&access_token=");
    if !is_form && !text.starts_with("error=") {
        return None;
    }
    let url = reqwest::Url::parse(&format!("http://form/?{text}")).ok()?;
    Some(url.query_pairs().map(|(key, value)| (key.into(), Value::from(&*value))).collect())
}

fn normalize_token(members: &mut Map<String, Value>) {
    members.retain(|_, value| !value.is_null());
    members.entry("token_type").or_insert_with(|| "Bearer".into());
    if let Some(lifetime) = members.get_mut("expires_in") {
        let seconds = match &*lifetime {
            Value::String(text) => text.trim().parse::<f64>().ok(),
            other => other.as_f64(),
        };
        match seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0) {
            // The text of a number without a fraction is that of an integer.
            Some(seconds) => {
                *lifetime = format!("{:.0}", seconds.floor()).parse().unwrap_or_default();
            }
            None => drop(members.remove("expires_in")),
        }
    }
    if let Some(Value::Array(scopes)) = members.get("scope") {
        let scopes: Vec<&str> = scopes.iter().filter_map(Value::as_str).collect();
        let scopes = scopes.join(" ");
        members.insert("scope".to_owned(), scopes.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(status: u16, body: &str) -> (u16, String) {
        let response = http::Response::builder().status(status).body(body.as_bytes().to_vec());
        let mut response = response.unwrap();
        normalize(&mut response);
        (response.status().as_u16(), String::from_utf8(response.into_body()).unwrap())
    }

    #[test]
    fn a_token_in_another_form_has_the_form_of_the_standard() {
        let token = |body: &str| {
            let (status, body) = normalized(200, body);
            assert_eq!(status, 200);
            serde_json::from_str::<Value>(&body).unwrap()
        };
        assert_eq!(token(r#"{"access_token":"a"}"#)["token_type"], "Bearer");
        for expires in [r#""3600""#, "3600.7", r#"" 3600.0""#, "3600"] {
            let body = format!(r#"{{"access_token":"a","expires_in":{expires}}}"#);
            assert_eq!(token(&body)["expires_in"], 3600, "{expires}");
        }
        let odd =
            token(r#"{"access_token":"a","expires_in":"soon","scope":["r","w"],"id_token":null}"#);
        assert_eq!(odd["scope"], "r w");
        assert!(odd.get("expires_in").is_none() && odd.get("id_token").is_none());
        let form = token("access_token=a%2Bb&token_type=bearer&expires_in=60");
        assert_eq!((&form["access_token"], &form["expires_in"]), (&"a+b".into(), &60.into()));
    }

    #[test]
    fn an_error_with_the_status_of_a_success_is_an_error() {
        let body = r#"{"error":"bad_verification_code"}"#;
        assert_eq!(normalized(200, body), (400, body.to_owned()));
        assert_eq!(normalized(401, body).0, 401);
        assert_eq!(normalized(200, "error=bad&error_description=x").0, 400);
    }

    #[test]
    fn another_body_stays_as_it_is() {
        for body in ["", "<html>", "[]", "{", r#"{"access_token":5}"#] {
            assert_eq!(normalized(200, body), (200, body.to_owned()));
        }
    }
}
