//! Secrets Manager. Values are kept for a while, and never shown in errors or logs.

use std::fmt;
use std::time::{Duration, Instant};

use aws_sdk_secretsmanager::Client;
use lakebell_engine::{EngineError, ErrorKind};

use crate::cache::Cache;
use crate::failure::{Doing, engine_error};

/// The longest time that a secret is used without being read again.
pub const SECRET_AGE: Duration = Duration::from_mins(5);

/// Reads secrets.
pub struct Secrets {
    client: Client,
    values: Cache<String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

impl Secrets {
    /// Secrets through this client.
    pub fn new(client: Client) -> Self {
        Self { client, values: Cache::new(SECRET_AGE) }
    }

    /// The text of a secret, by name or ARN; at most [`SECRET_AGE`] old. `fresh` reads it again.
    ///
    /// Errors: `Denied`, `Unavailable`, `NotFound` where there is none, `Invalid` where it holds no
    /// text.
    pub async fn text(&self, name: &str, fresh: bool) -> Result<String, EngineError> {
        let asked_at = Instant::now();
        if !fresh && let Some(value) = self.values.get(name, asked_at) {
            return Ok(value);
        }
        let resource = format!("secret `{name}`");
        let where_set = "its name, and that it is in this region";
        let doing = Doing { permission: "secretsmanager:GetSecretValue", resource: &resource, where_set };
        let answer = self.client.get_secret_value().secret_id(name).send().await;
        let answer = answer.map_err(|error| engine_error(error, doing))?;
        let value = answer.secret_string().map(str::trim).filter(|value| !value.is_empty()).ok_or_else(|| {
            EngineError::new(ErrorKind::Invalid, format!("{resource} holds no text; store the token as secret string"))
        })?;
        self.values.put(name, value.to_owned(), asked_at);
        Ok(value.to_owned())
    }

    /// A token: the secret's text, or its member `token` where it is a JSON object.
    pub async fn token(&self, name: &str, fresh: bool) -> Result<String, EngineError> {
        token_of(&self.text(name, fresh).await?).ok_or_else(|| {
            let message = format!("secret `{name}` holds no token; store the bare token or {{\"token\": \"...\"}}");
            EngineError::new(ErrorKind::Invalid, message)
        })
    }
}

/// The token in a secret's text.
fn token_of(text: &str) -> Option<String> {
    let token = match serde_json::from_str(text) {
        Ok(serde_json::Value::Object(members)) => members.get("token")?.as_str()?.trim().to_owned(),
        Ok(serde_json::Value::String(token)) => token.trim().to_owned(),
        // A token may happen to be a number or a word of JSON.
        _ => text.trim().to_owned(),
    };
    (!token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_in_both_forms() {
        let table = [
            ("abc123\n", Some("abc123")),
            (r#"{"token": "abc", "user": "u"}"#, Some("abc")),
            (r#""abc""#, Some("abc")),
            ("123456", Some("123456")),
            ("{not json", Some("{not json")),
            (r#"{"password": "abc"}"#, None),
            (r#"{"token": ""}"#, None),
            ("  ", None),
        ];
        for (text, expected) in table {
            assert_eq!(token_of(text).as_deref(), expected, "{text}");
        }
    }
}
