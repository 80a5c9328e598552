//! A table on S3.

use std::sync::Arc;

use aws_config::{BehaviorVersion, Region};
use aws_sdk_s3::Client;
use aws_sdk_s3::config::Credentials;
use aws_sdk_s3::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use lakebell_domain::asset::Location;
use lakebell_formats::inspect::Damaged;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::kind::Kind;
use super::{BRANCHES, Files, branch_of};
use crate::error::CliError;
use crate::settings::{self, Local};

/// Objects that are read at the same time.
const PARALLEL: usize = 16;
/// The region where nothing names one; stand-ins do not care.
const DEFAULT_REGION: &str = "us-east-1";

/// What became of reading one object.
enum Object {
    Contents(Vec<u8>),
    Gone,
    Unreadable(String),
}

/// Reads the wanted files of a location.
pub(super) async fn read(kind: &Kind, location: &Location) -> Result<Files, CliError> {
    let client = client(location).await?;
    let mut keys = Vec::new();
    let root = location.object_key("");
    let mut branches = Vec::new();
    if kind.has_branches {
        branches = list(&client, location, &location.object_key(BRANCHES), true).await?;
    }
    let branches: Vec<&str> = branches
        .iter()
        .filter_map(|prefix| prefix.strip_prefix(&root)?.strip_prefix(BRANCHES)?.strip_suffix('/'))
        .filter_map(branch_of)
        .collect();
    let lines = std::iter::once(None).chain(branches.iter().copied().map(Some));
    for folder in lines.flat_map(|branch| kind.folders_of(branch)) {
        for key in list(&client, location, &location.object_key(&folder), false).await? {
            keys.extend(key.strip_prefix(&root).filter(|relative| (kind.wants)(relative)).map(str::to_owned));
        }
    }
    let (read, named): (Vec<String>, Vec<String>) = keys.into_iter().partition(|key| (kind.reads)(key));
    let mut files = fetch(&client, location, read, kind.largest).await?;
    files.contents.extend(named.into_iter().map(|key| (key, Vec::new())));
    Ok(files)
}

async fn fetch(client: &Client, location: &Location, keys: Vec<String>, largest: usize) -> Result<Files, CliError> {
    let slots = Arc::new(Semaphore::new(PARALLEL));
    let mut reads = JoinSet::new();
    for relative in keys {
        let (client, slots) = (client.clone(), Arc::clone(&slots));
        let (bucket, key) = (location.bucket().to_owned(), location.object_key(&relative));
        reads.spawn(async move {
            let _slot = slots.acquire().await;
            (relative, get(&client, &bucket, &key, largest).await)
        });
    }
    let mut files = Files::default();
    while let Some(read) = reads.join_next().await {
        let (file, object) =
            read.map_err(|error| CliError::failed(format!("a read was cut short: {error}"), "try again"))?;
        match object {
            Object::Contents(bytes) => {
                files.contents.insert(file, bytes);
            }
            Object::Gone => {}
            Object::Unreadable(problem) => files.unreadable.push(Damaged { file, problem }),
        }
    }
    Ok(files)
}

/// One byte more than is parsed, so that a file that is too large is known to be.
async fn get(client: &Client, bucket: &str, key: &str, largest: usize) -> Object {
    let range = format!("bytes=0-{largest}");
    match client.get_object().bucket(bucket).key(key).range(range).send().await {
        Ok(object) => match object.body.collect().await {
            Ok(body) => Object::Contents(body.to_vec()),
            Err(error) => Object::Unreadable(format!("it cannot be read: {error}")),
        },
        Err(error) => match error.code() {
            Some("NoSuchKey") => Object::Gone,
            // A range of an empty object cannot be served.
            Some("InvalidRange") => Object::Contents(Vec::new()),
            _ => Object::Unreadable(format!("it cannot be read: {}", said(&error))),
        },
    }
}

/// The keys directly below a prefix, or the folders there.
async fn list(client: &Client, location: &Location, prefix: &str, only_folders: bool) -> Result<Vec<String>, CliError> {
    let request = client.list_objects_v2().bucket(location.bucket()).prefix(prefix).delimiter("/");
    let mut pages = request.into_paginator().send();
    let mut found = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| {
            CliError::failed(
                format!("{location} cannot be listed: {}", said(&error)),
                "check the bucket, and credentials with s3:ListBucket and s3:GetObject; \
                 AWS_PROFILE, AWS_REGION and AWS_ENDPOINT_URL are honoured",
            )
        })?;
        if only_folders {
            found.extend(page.common_prefixes.into_iter().flatten().filter_map(|folder| folder.prefix));
        } else {
            found.extend(page.contents.into_iter().flatten().filter_map(|object| object.key));
        }
    }
    Ok(found)
}

/// The service's code and words, or those of the transport below it.
fn said<E, R>(error: &SdkError<E, R>) -> String
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: std::fmt::Debug,
{
    match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => DisplayErrorContext(error).to_string(),
    }
}

/// A client by the usual AWS settings. The bucket of a local deployment is read from there, unless
/// the environment names an endpoint.
async fn client(location: &Location) -> Result<Client, CliError> {
    let named = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"].iter().any(|name| std::env::var_os(name).is_some());
    let local = if named { None } else { settings::local()?.filter(|local| local.bucket == location.bucket()) };
    let https = aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let loader = aws_config::defaults(BehaviorVersion::latest()).http_client(https);
    let config = match &local {
        Some(local) => at_local(loader, local).load().await,
        None => loader.load().await,
    };
    let region = config.region().cloned().unwrap_or_else(|| Region::from_static(DEFAULT_REGION));
    let builder = aws_sdk_s3::config::Builder::from(&config)
        .region(region)
        // Stand-ins have no host name per bucket.
        .force_path_style(named || local.is_some());
    Ok(Client::from_conf(builder.build()))
}

fn at_local(loader: aws_config::ConfigLoader, local: &Local) -> aws_config::ConfigLoader {
    let credentials =
        Credentials::new(&local.access_key_id, &local.secret_access_key, None, None, "the local deployment");
    loader.endpoint_url(&local.endpoint).region(Region::new(local.region.clone())).credentials_provider(credentials)
}
