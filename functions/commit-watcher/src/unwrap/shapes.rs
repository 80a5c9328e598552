//! The two shapes in which S3 says that something happened to an object.

use lakebell_decoders::{Node, aws};
use lakebell_engine::watch::Created;
use serde::Deserialize;
use serde_json::Value;

use super::{Finding, Ignored, Refused, decode_key};

/// The major version of S3's records that this reads. Minor versions only add.
const MAJOR: &str = "2";

/// A record of an S3 notification, as much of it as is needed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct S3Record {
    #[serde(default)]
    event_version: Option<String>,
    s3: Place,
}

/// Bucket and object, as both shapes name them.
#[derive(Deserialize)]
struct Place {
    bucket: Bucket,
    object: Object,
}

#[derive(Deserialize)]
struct Bucket {
    name: String,
}

#[derive(Deserialize)]
struct Object {
    key: String,
    /// `etag` on EventBridge.
    #[serde(default, rename = "eTag", alias = "etag")]
    etag: Option<String>,
}

/// An event of EventBridge, as much of it as is needed. Its detail has a version of its own, which
/// is not looked at: a detail without bucket and key is refused anyway.
#[derive(Deserialize)]
struct ObjectCreated {
    detail: Place,
}

/// A record of S3's own notifications. Its key is encoded.
pub(super) fn s3_record(value: &Value) -> Finding {
    // First the name: a record of a kind that this version does not know may look like anything.
    let Some(name) = value["eventName"].as_str() else { return Finding::Refused(Refused::Malformed) };
    if !name.strip_prefix("s3:").unwrap_or(name).starts_with("ObjectCreated:") {
        return Finding::Ignored(Ignored::NotCreated);
    }
    let Ok(record) = S3Record::deserialize(value) else { return Finding::Refused(Refused::Malformed) };
    let version = record.event_version.as_deref().unwrap_or(MAJOR);
    if version.split('.').next() != Some(MAJOR) {
        return Finding::Refused(Refused::UnknownVersion);
    }
    let key = decode_key(&record.s3.object.key);
    created(record.s3, key.key, key.is_raw)
}

/// An event of EventBridge. Its key is not encoded.
pub(super) fn event_bridge(value: &Value) -> Finding {
    if value["source"] != "aws.s3" || value["detail-type"] != "Object Created" {
        return service(value);
    }
    match ObjectCreated::deserialize(value) {
        Ok(ObjectCreated { detail }) => {
            let key = detail.object.key.clone();
            created(detail, key, false)
        }
        Err(_) => Finding::Refused(Refused::Malformed),
    }
}

/// What another service of AWS says about tables.
fn service(value: &Value) -> Finding {
    let event = Node::of(value);
    if !aws::is_known(&event) {
        return Finding::Ignored(Ignored::OtherEvent);
    }
    match aws::decode(&event) {
        Ok(entry) if entry.content.reports.is_empty() => Finding::Ignored(Ignored::OtherEvent),
        Ok(entry) => Finding::Service(Box::new(entry)),
        Err(_) => Finding::Refused(Refused::Malformed),
    }
}

fn created(place: Place, key: String, is_key_raw: bool) -> Finding {
    if place.bucket.name.is_empty() || key.is_empty() {
        return Finding::Refused(Refused::Malformed);
    }
    let etag = place.object.etag.map(|etag| etag.trim_matches('"').to_owned()).filter(|etag| !etag.is_empty());
    Finding::Object { created: Created { bucket: place.bucket.name, key, etag }, is_key_raw }
}
