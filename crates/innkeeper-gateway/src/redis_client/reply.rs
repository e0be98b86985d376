//! What a script responds: a name, and items that depend on the name.

use bytes::Bytes;
use redis::{FromRedisValue, ParsingError, Value};

use crate::store_error::StoreError;

/// The response of a script.
#[derive(Debug)]
pub(crate) struct Reply {
    name: String,
    items: Vec<Bytes>,
}

impl FromRedisValue for Reply {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let (name, items) = match value {
            Value::Array(parts) => {
                let mut parts = parts.into_iter();
                let name = parts.next().ok_or("a response without a name")?;
                let items = parts.next().map(Vec::from_redis_value).transpose()?;
                (name, items.unwrap_or_default())
            }
            name => (name, Vec::new()),
        };
        Ok(Self { name: String::from_redis_value(name)?, items })
    }
}

impl Reply {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn items(&self) -> &[Bytes] {
        &self.items
    }

    /// Returns an item that is a number.
    pub(crate) fn number(&self, index: usize) -> Result<u64, StoreError> {
        let text = self.items.get(index).and_then(|item| std::str::from_utf8(item).ok());
        text.and_then(|text| text.parse().ok()).ok_or_else(|| self.unexpected())
    }

    /// Returns the error for a reply that the script does not give.
    pub(crate) fn unexpected(&self) -> StoreError {
        let reason = format!("the response `{}` of Redis is not usable", self.name.escape_debug());
        StoreError { reason }
    }
}
