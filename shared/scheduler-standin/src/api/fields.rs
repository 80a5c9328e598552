//! Query and form fields, merged as the real server merges them.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::envelope::Refused;

/// All fields of a call, from the query and from a form body.
pub(crate) struct Fields(pub(crate) BTreeMap<String, String>);

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let mut fields = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()) {
            fields.entry(name.into_owned()).or_insert_with(|| value.into_owned());
        }
        let is_form = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.starts_with("application/x-www-form-urlencoded"));
        if is_form {
            let body = Bytes::from_request(request, state).await.map_err(IntoResponse::into_response)?;
            for (name, value) in form_urlencoded::parse(&body) {
                fields.entry(name.into_owned()).or_insert_with(|| value.into_owned());
            }
        }
        Ok(Self(fields))
    }
}

impl Fields {
    /// A field, empty or not.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A number, where the field is there and is one.
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.trim().parse().ok()
    }

    /// `pageNo` and `pageSize`; absent or no number is the endpoint's own code, below 1 is 10001.
    pub(crate) fn page(&self, generic: i64) -> Result<(usize, usize), Refused> {
        let (Some(number), Some(size)) = (self.number("pageNo"), self.number("pageSize")) else {
            return Err(Refused::new(generic, "query list paging error"));
        };
        match (usize::try_from(number), usize::try_from(size)) {
            (Ok(number), Ok(size)) if number > 0 && size > 0 => Ok((number, size)),
            _ => Err(Refused::new(10001, "request parameter pageNo is not valid")),
        }
    }
}
