//! A request of an operator: its parameters, its form, and what its page needs.

use std::sync::Arc;

use url::form_urlencoded;

use super::console_calls::ConsoleCalls;
use super::html::{Html, html};
use crate::principal::Principal;
use crate::state::GatewayState;

pub(crate) const TOKEN_FIELD: &str = "form-token";

/// Maximum number of parameters and fields.
const MAX_FIELDS: usize = 4_096;

/// Who sees a page.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) principal: Principal,
    /// Whether the visitor signed in with a form.
    pub(crate) has_session: bool,
    pub(super) form_token: String,
}

impl Visitor {
    /// Returns the hidden field that every form with the method `post` contains: without it, the
    /// request is refused.
    pub(crate) fn token_field(&self) -> Html {
        let mut field = Html::new();
        html!(field, "<input type=\"hidden\" name=\"form-token\" value=\"{}\">", self.form_token);
        field
    }
}

/// The fields of a form or of a query, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(crate) fn parse(text: &[u8]) -> Self {
        let pairs = form_urlencoded::parse(text).take(MAX_FIELDS);
        Self(pairs.map(|(key, value)| (key.into_owned(), value.into_owned())).collect())
    }

    pub(crate) fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(pairs.into_iter().collect())
    }

    /// Returns the first value of a field.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.all(key).next()
    }

    /// Returns all values of a field.
    pub(crate) fn all<'f>(&'f self, key: &str) -> impl Iterator<Item = &'f str> {
        let of_key = self.0.iter().filter(move |(known, _)| known == key);
        of_key.map(|(_, value)| value.as_str())
    }
}

/// A request that is permitted: the visitor is an operator, and a form has its token.
#[derive(Debug)]
pub(crate) struct ConsoleRequest<'a> {
    pub(crate) gateway: &'a Arc<GatewayState>,
    pub(crate) calls: &'a Arc<ConsoleCalls>,
    pub(crate) visitor: Visitor,
    pub(crate) query: Fields,
    pub(crate) form: Fields,
}

impl ConsoleRequest<'_> {
    /// Returns the start of a form with its token. The caller closes the form.
    pub(crate) fn form(&self, action: &super::html::Link) -> Html {
        let mut out = Html::new();
        html!(out, "<form method=\"post\" action=\"{}\">", action);
        html!(out, "{}", self.visitor.token_field());
        out
    }
}
