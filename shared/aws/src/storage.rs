//! Tables' files on S3.

use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::list_objects_v2::ListObjectsV2Output;
use aws_sdk_s3::primitives::ByteStream;
use jiff::Timestamp;
use lakebell_engine::ports::storage::{ConsumerFiles, Listed, Listing, Opened, Pieces, TableStorage};
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
        listing: Listing<'_>,
        rows: usize,
        token: Option<String>,
    ) -> Result<ListObjectsV2Output, EngineError> {
        let request = self
            .client
            .list_objects_v2()
            .bucket(bucket)
            .prefix(listing.prefix)
            .max_keys(i32::try_from(rows.min(ROWS_PER_PAGE)).unwrap_or(i32::MAX))
            .set_delimiter(listing.is_flat.then(|| "/".to_owned()))
            .set_start_after(listing.after.map(str::to_owned))
            .set_continuation_token(token);
        request.send().await.map_err(|error| failure(error, "s3:ListBucket", bucket, listing.prefix))
    }
}

#[async_trait]
impl TableStorage for S3Storage {
    async fn open(&self, bucket: &str, key: &str) -> Result<Option<Opened>, EngineError> {
        let answer = match self.client.get_object().bucket(bucket).key(key).send().await {
            Ok(answer) => answer,
            Err(error) if error.code() == Some("NoSuchKey") => return Ok(None),
            Err(error) => return Err(failure(error, "s3:GetObject", bucket, key)),
        };
        let etag = unquoted(answer.e_tag());
        let size = answer.content_length().and_then(|length| u64::try_from(length).ok()).unwrap_or(0);
        let pieces = S3Pieces { bucket: bucket.to_owned(), key: key.to_owned(), body: answer.body };
        Ok(Some(Opened { etag, size, pieces: Box::new(pieces) }))
    }

    async fn list(&self, bucket: &str, listing: Listing<'_>) -> Result<Vec<Listed>, EngineError> {
        let mut rows = Vec::new();
        let mut token = None;
        while rows.len() < listing.limit {
            // Folders fill pages as well, so whole pages are asked for where there may be some.
            let wanted = if listing.is_flat { ROWS_PER_PAGE } else { listing.limit - rows.len() };
            let page = self.page(bucket, listing, wanted, token).await?;
            let listed = page.contents().iter().filter_map(|object| {
                Some(Listed {
                    key: object.key()?.to_owned(),
                    etag: unquoted(object.e_tag()),
                    modified: object.last_modified().and_then(|at| Timestamp::from_second(at.secs()).ok()),
                })
            });
            rows.extend(listed);
            token = page.next_continuation_token().map(str::to_owned);
            if token.is_none() {
                break;
            }
        }
        rows.truncate(listing.limit);
        Ok(rows)
    }

    async fn folders(
        &self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, EngineError> {
        let mut names = Vec::new();
        let mut token = None;
        // `0` follows `/`, so everything in the folder lies before this.
        let after = after.map(|name| format!("{prefix}{name}0"));
        let listing = Listing { after: after.as_deref(), ..Listing::folder(prefix, limit) };
        while names.len() < limit {
            // Objects directly below the prefix fill pages, too, so whole pages are asked for.
            let page = self.page(bucket, listing, ROWS_PER_PAGE, token).await?;
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

#[async_trait]
impl ConsumerFiles for S3Storage {
    async fn put(&self, bucket: &str, key: &str, bytes: Vec<u8>, over: Option<&str>) -> Result<bool, EngineError> {
        let put = self.client.put_object().bucket(bucket).key(key).content_type("application/json").body(bytes.into());
        // Conditional, so that of two scans at once the later one does not take back what the other wrote.
        let put = match over {
            Some(etag) => put.if_match(format!("\"{etag}\"")),
            None => put.if_none_match("*"),
        };
        match put.send().await {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.code(), Some("PreconditionFailed" | "ConditionalRequestConflict")) => {
                Ok(false)
            }
            Err(error) => Err(failure(error, "s3:PutObject", bucket, key)),
        }
    }
}

/// The body of an answer.
struct S3Pieces {
    bucket: String,
    key: String,
    body: ByteStream,
}

#[async_trait]
impl Pieces for S3Pieces {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        loop {
            let piece = self.body.try_next().await.map_err(|error| {
                let message = format!("bucket `{}` broke off while `{}` was read", self.bucket, self.key);
                EngineError::new(ErrorKind::Unavailable, message).caused_by(error)
            })?;
            match piece {
                Some(piece) if piece.is_empty() => {}
                piece => return Ok(piece.map(|piece| piece.to_vec())),
            }
        }
    }
}

fn unquoted(etag: Option<&str>) -> String {
    etag.unwrap_or_default().trim_matches('"').to_owned()
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
