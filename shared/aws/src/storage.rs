//! Tables' files on S3.

use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::list_objects_v2::ListObjectsV2Output;
use lakebell_engine::ports::storage::{Listed, Object, TableStorage};
use lakebell_engine::{EngineError, ErrorKind};

use crate::failure::{Cause, Doing, cause_of, engine_error};

/// Rows of one answer, by the API reference of `ListObjectsV2`.
const ROWS_PER_PAGE: usize = 1000;

/// [`TableStorage`] on S3, general purpose buckets: those list in the order of UTF-8 bytes.
#[derive(Debug, Clone)]
pub struct S3Storage {
    client: Client,
}

impl S3Storage {
    /// Storage through this client.
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    async fn page(
        &self,
        bucket: &str,
        prefix: &str,
        delimiter: Option<&str>,
        rows: usize,
        token: Option<String>,
    ) -> Result<ListObjectsV2Output, EngineError> {
        let request = self
            .client
            .list_objects_v2()
            .bucket(bucket)
            .prefix(prefix)
            .max_keys(i32::try_from(rows.min(ROWS_PER_PAGE)).unwrap_or(i32::MAX))
            .set_delimiter(delimiter.map(str::to_owned))
            .set_continuation_token(token);
        request.send().await.map_err(|error| failure(error, "s3:ListBucket", bucket, prefix))
    }
}

#[async_trait]
impl TableStorage for S3Storage {
    async fn get(&self, bucket: &str, key: &str, limit: usize) -> Result<Option<Object>, EngineError> {
        let answer = match self.client.get_object().bucket(bucket).key(key).send().await {
            Ok(answer) => answer,
            Err(error) if error.code() == Some("NoSuchKey") => return Ok(None),
            Err(error) => return Err(failure(error, "s3:GetObject", bucket, key)),
        };
        let etag = unquoted(answer.e_tag());
        let announced = answer.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
        if announced > limit {
            return Err(too_large(bucket, key, limit));
        }
        let mut bytes = Vec::with_capacity(announced);
        let mut body = answer.body;
        loop {
            let chunk = body.try_next().await.map_err(|error| {
                let message = format!("bucket `{bucket}` broke off while `{key}` was read");
                EngineError::new(ErrorKind::Unavailable, message).caused_by(error)
            })?;
            let Some(chunk) = chunk else { break };
            if bytes.len() + chunk.len() > limit {
                return Err(too_large(bucket, key, limit));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(Some(Object { bytes, etag }))
    }

    async fn list(&self, bucket: &str, prefix: &str, limit: usize) -> Result<Vec<Listed>, EngineError> {
        let mut rows = Vec::new();
        let mut token = None;
        while rows.len() < limit {
            let page = self.page(bucket, prefix, None, limit - rows.len(), token).await?;
            let listed = page
                .contents()
                .iter()
                .filter_map(|object| Some(Listed { key: object.key()?.to_owned(), etag: unquoted(object.e_tag()) }));
            rows.extend(listed);
            token = page.next_continuation_token().map(str::to_owned);
            if token.is_none() {
                break;
            }
        }
        rows.truncate(limit);
        Ok(rows)
    }

    async fn folders(&self, bucket: &str, prefix: &str, limit: usize) -> Result<Vec<String>, EngineError> {
        let mut names = Vec::new();
        let mut token = None;
        while names.len() < limit {
            // Objects directly below the prefix fill pages, too, so whole pages are asked for.
            let page = self.page(bucket, prefix, Some("/"), ROWS_PER_PAGE, token).await?;
            let folders = page.common_prefixes().iter().filter_map(|folder| {
                let name = folder.prefix()?.strip_prefix(prefix)?;
                Some(name.strip_suffix('/').unwrap_or(name).to_owned())
            });
            names.extend(folders);
            token = page.next_continuation_token().map(str::to_owned);
            if token.is_none() {
                break;
            }
        }
        names.truncate(limit);
        Ok(names)
    }
}

fn unquoted(etag: Option<&str>) -> String {
    etag.unwrap_or_default().trim_matches('"').to_owned()
}

fn too_large(bucket: &str, key: &str, limit: usize) -> EngineError {
    let message = format!("the object is larger than the {limit} bytes that are read of it");
    EngineError::new(ErrorKind::Damaged, message).with("bucket", bucket).with("key", key)
}

/// An error of S3. A bucket that does not exist here may not be read, as far as a table goes: both
/// are `Denied`, with a sentence that tells them apart.
fn failure<E>(error: SdkError<E, HttpResponse>, permission: &str, bucket: &str, key: &str) -> EngineError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let resource = format!("bucket `{bucket}`");
    let said = error.message().unwrap_or("no message").to_owned();
    let code = error.code().unwrap_or_default().to_owned();
    let denied = |sentence: String| EngineError::new(ErrorKind::Denied, format!("{sentence} ({code}: {said})"));
    let engine_error = match (cause_of(&error), code.as_str()) {
        (_, "InvalidObjectState") => {
            denied(format!("the object is archived: restore it to be read from {resource}")).caused_by(error)
        }
        (Cause::Missing, "PermanentRedirect") => {
            denied(format!("{resource} is in another region: run in that region, or use one of its buckets"))
                .caused_by(error)
        }
        (Cause::Missing, _) => {
            denied(format!("{resource} does not exist: check the location, or whether the owner granted {permission}"))
                .caused_by(error)
        }
        (Cause::Denied, _) => denied(format!(
            "{permission} on {resource} was refused: grant s3:GetObject and s3:ListBucket (without the latter a \
             missing object is refused as well), and kms:Decrypt where the bucket has a key of its own"
        ))
        .caused_by(error),
        _ => {
            let where_set = "the asset's location";
            engine_error(error, Doing { permission, resource: &resource, where_set })
        }
    };
    engine_error.with("bucket", bucket).with("key", key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etags_lose_their_quotes() {
        assert_eq!(unquoted(Some("\"9b2cf535f27731c974343645a3985328\"")), "9b2cf535f27731c974343645a3985328");
        assert_eq!(unquoted(Some("abc-2")), "abc-2");
        assert_eq!(unquoted(None), "");
    }
}
