//! Which catalog decides what is a commit of an Iceberg table, as an asset's `catalog` setting says.

use std::fmt;

use lakebell_domain::Invalid;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

/// Longest text of a setting, in bytes.
const MAX_TEXT: usize = 512;

/// Who says which metadata file is current.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(into = "Written")]
pub enum Catalog {
    /// Nobody is asked: what the files say of each other decides.
    #[default]
    None,
    /// The Hadoop catalog: `version-hint.text` and the files `vN.metadata.json` beside it.
    Hadoop,
    /// A service.
    Remote(RemoteCatalog),
}

/// A catalog that is a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteCatalog {
    /// One that speaks Iceberg's REST protocol.
    Rest(RestCatalog),
    /// The AWS Glue Data Catalog, by its own API.
    Glue(GlueCatalog),
}

/// A catalog of the REST protocol, and the table in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestCatalog {
    /// The base URL, without `/v1` and without a slash at the end.
    pub url: String,
    /// The warehouse that the catalog is asked for; absent where it has only one.
    pub warehouse: Option<String>,
    /// How Lakebell shows who it is.
    pub access: Access,
    /// What the catalog calls the table, where that is not what the asset's key says.
    pub table: NameInCatalog,
}

/// How a REST catalog learns who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Not at all.
    Open,
    /// By what a secret in Secrets Manager holds: a bearer token, or the credentials of an `OAuth2`
    /// client, and the URL of the catalog that they are for.
    Secret(String),
    /// By a signature of AWS with the function's own role.
    Signed {
        /// The service that the signature is for.
        service: SigningService,
        /// Its region; the function's own where absent.
        region: Option<String>,
    },
}

/// A service of AWS with a REST catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SigningService {
    /// The Glue Data Catalog's REST endpoint.
    Glue,
    /// S3 Tables.
    S3tables,
}

impl SigningService {
    /// The name in a signature.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Glue => "glue",
            Self::S3tables => "s3tables",
        }
    }
}

/// The Glue Data Catalog, and the table in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GlueCatalog {
    /// The account that owns the catalog; the function's own where absent.
    pub account: Option<String>,
    /// Its region; the function's own where absent.
    pub region: Option<String>,
    /// What the catalog calls the table, where that is not what the asset's key says.
    pub table: NameInCatalog,
}

/// A table's name in its catalog, where it differs from the asset's key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NameInCatalog {
    /// The database; a dot separates the levels of a namespace.
    pub database: Option<String>,
    /// The table.
    pub table: Option<String>,
}

/// The kinds of catalogs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// An Iceberg REST catalog.
    Rest,
    /// The AWS Glue Data Catalog.
    Glue,
    /// The Hadoop catalog.
    Hadoop,
    /// None is asked.
    None,
}

/// The setting as a mapping.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// Which kind of catalog it is.
    #[serde(rename = "type")]
    kind: Kind,
    /// The base URL of a REST catalog, without `/v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The warehouse of a REST catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warehouse: Option<String>,
    /// Name of the secret that a REST catalog is shown: a token or the credentials of an `OAuth2`
    /// client, with the URL that they are for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    /// Signs the requests to a REST catalog of AWS, for the service of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signing: Option<SigningService>,
    /// The region of Glue, or of the signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    /// The account that owns the Glue catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    /// The database in the catalog, where it is not the key's; dots separate the levels of a namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    database: Option<String>,
    /// The table in the catalog, where it is not the key's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    table: Option<String>,
}

/// The setting as it is written: a word where that says everything, else a mapping.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Written {
    /// `none`, `hadoop` or `glue`.
    Word(Word),
    /// With what belongs to it.
    Mapping(Box<Mapping>),
}

/// A catalog that needs no settings.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// None is asked.
    None,
    /// The Hadoop catalog.
    Hadoop,
    /// The Glue Data Catalog of the function's account and region.
    Glue,
}

impl Mapping {
    const fn of(kind: Kind) -> Self {
        Self {
            kind,
            url: None,
            warehouse: None,
            secret: None,
            signing: None,
            region: None,
            account: None,
            database: None,
            table: None,
        }
    }

    /// The fields that are set, by name.
    fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let texts = [
            ("url", &self.url),
            ("warehouse", &self.warehouse),
            ("secret", &self.secret),
            ("region", &self.region),
            ("account", &self.account),
            ("database", &self.database),
            ("table", &self.table),
        ];
        texts.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?)))
    }

    /// Refuses what does not belong to this kind of catalog, and texts that cannot be what they are for.
    fn check(&self, allowed: &[&str]) -> Result<(), Invalid> {
        let names: Vec<&str> = self.texts().map(|(name, _)| name).chain(self.signing.map(|_| "signing")).collect();
        if let Some(name) = names.iter().find(|name| !allowed.contains(name)) {
            let hint =
                if allowed.is_empty() { "leave it out".to_owned() } else { format!("use {}", allowed.join(", ")) };
            return Err(invalid(name, "a catalog of this type has no such setting", hint));
        }
        for (name, text) in self.texts() {
            if text.is_empty() || text.len() > MAX_TEXT || text.chars().any(char::is_control) {
                let problem = format!("it is empty, longer than {MAX_TEXT} bytes, or has control characters");
                return Err(invalid(name, problem, "write it in one line, or leave it out"));
            }
        }
        if self.region.as_deref().is_some_and(|region| !is_region(region)) {
            return Err(invalid("region", "it is no region of AWS", "write it as in eu-central-1"));
        }
        if self.account.as_deref().is_some_and(|id| id.len() != 12 || !id.bytes().all(|byte| byte.is_ascii_digit())) {
            return Err(invalid("account", "it is no account of AWS", "write its 12 digits, in quotes"));
        }
        Ok(())
    }

    fn name(&self) -> NameInCatalog {
        NameInCatalog { database: self.database.clone(), table: self.table.clone() }
    }

    fn rest(self) -> Result<RestCatalog, Invalid> {
        self.check(&["url", "warehouse", "secret", "signing", "region", "database", "table"])?;
        let table = self.name();
        let url = self.url.ok_or_else(|| {
            invalid("url", "a REST catalog needs it", "write the base URL, as in https://catalog.internal/api/catalog")
        })?;
        let url = url.trim_end_matches('/').to_owned();
        check_url(&url)?;
        let access = match (self.secret, self.signing) {
            (Some(_), Some(_)) => {
                return Err(invalid("signing", "a request is signed or carries a secret, not both", "leave one out"));
            }
            (Some(secret), None) => Access::Secret(secret),
            (None, Some(service)) => Access::Signed { service, region: self.region.clone() },
            (None, None) => Access::Open,
        };
        if self.region.is_some() && !matches!(access, Access::Signed { .. }) {
            return Err(invalid("region", "only a signature has a region", "leave it out, or add `signing`"));
        }
        if matches!(access, Access::Secret(_)) && !url.starts_with("https://") && !is_local(&url) {
            return Err(invalid("url", "a secret would travel unencrypted", "use https"));
        }
        Ok(RestCatalog { url, warehouse: self.warehouse, access, table })
    }
}

/// A URL with a host, of nothing that a path would not have.
fn check_url(url: &str) -> Result<(), Invalid> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split('/').next().unwrap_or_default()).filter(|host| !host.is_empty());
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#@\\\"<>{}|^`".contains(&byte));
    if host.is_some() && is_plain && !url.contains("/../") && !url.ends_with("/..") {
        return Ok(());
    }
    Err(invalid(
        "url",
        "it is no http or https URL without user, query and spaces",
        "write the base URL without /v1, as in https://catalog.internal/api/catalog",
    ))
}

/// Whether a URL is of the machine itself, where nothing travels.
fn is_local(url: &str) -> bool {
    let host = url.strip_prefix("http://").and_then(|rest| rest.split(['/', ':']).next());
    matches!(host, Some("localhost" | "127.0.0.1"))
}

fn is_region(region: &str) -> bool {
    region.len() <= 32 && region.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn invalid(field: &str, problem: impl Into<String>, hint: impl Into<String>) -> Invalid {
    Invalid::new(format!("catalog.{field}"), problem, hint)
}

impl TryFrom<Mapping> for Catalog {
    type Error = Invalid;

    fn try_from(mapping: Mapping) -> Result<Self, Invalid> {
        match mapping.kind {
            Kind::None => mapping.check(&[]).map(|()| Self::None),
            Kind::Hadoop => mapping.check(&[]).map(|()| Self::Hadoop),
            Kind::Glue => {
                mapping.check(&["account", "region", "database", "table"])?;
                let table = mapping.name();
                let Mapping { account, region, .. } = mapping;
                Ok(Self::Remote(RemoteCatalog::Glue(GlueCatalog { account, region, table })))
            }
            Kind::Rest => mapping.rest().map(|rest| Self::Remote(RemoteCatalog::Rest(rest))),
        }
    }
}

impl From<Catalog> for Written {
    fn from(catalog: Catalog) -> Self {
        let mapping = match catalog {
            Catalog::None => return Self::Word(Word::None),
            Catalog::Hadoop => return Self::Word(Word::Hadoop),
            Catalog::Remote(RemoteCatalog::Glue(glue)) if glue == GlueCatalog::default() => {
                return Self::Word(Word::Glue);
            }
            Catalog::Remote(RemoteCatalog::Glue(GlueCatalog { account, region, table })) => {
                let NameInCatalog { database, table } = table;
                Mapping { region, account, database, table, ..Mapping::of(Kind::Glue) }
            }
            Catalog::Remote(RemoteCatalog::Rest(RestCatalog { url, warehouse, access, table })) => {
                let NameInCatalog { database, table } = table;
                let (secret, signing, region) = match access {
                    Access::Open => (None, None, None),
                    Access::Secret(secret) => (Some(secret), None, None),
                    Access::Signed { service, region } => (None, Some(service), region),
                };
                let url = Some(url);
                Mapping { url, warehouse, secret, signing, region, database, table, ..Mapping::of(Kind::Rest) }
            }
        };
        Self::Mapping(Box::new(mapping))
    }
}

impl<'de> Deserialize<'de> for Catalog {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrMapping;

        impl<'de> Visitor<'de> for WordOrMapping {
            type Value = Catalog;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("none, hadoop, glue, or a mapping with `type` and what belongs to it")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Catalog, E> {
                let kind = match word {
                    "none" => Kind::None,
                    "hadoop" => Kind::Hadoop,
                    "glue" => Kind::Glue,
                    "rest" => Kind::Rest,
                    other => return Err(E::unknown_variant(other, &["rest", "glue", "hadoop", "none"])),
                };
                Catalog::try_from(Mapping::of(kind)).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Catalog, A::Error> {
                let mapping = Mapping::deserialize(MapAccessDeserializer::new(map))?;
                Catalog::try_from(mapping).map_err(A::Error::custom)
            }
        }

        deserializer.deserialize_any(WordOrMapping)
    }
}

impl Catalog {
    /// Whether nobody is asked.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// What a person reads in place of the setting, without its secret.
    pub fn describe(&self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Hadoop => "hadoop".to_owned(),
            Self::Remote(RemoteCatalog::Glue(glue)) => {
                let of = [&glue.account, &glue.region].into_iter().flatten().map(String::as_str);
                std::iter::once("glue").chain(of).collect::<Vec<_>>().join(" ")
            }
            Self::Remote(RemoteCatalog::Rest(rest)) => match &rest.warehouse {
                Some(warehouse) => format!("rest {}, warehouse {warehouse}", rest.url),
                None => format!("rest {}", rest.url),
            },
        }
    }
}

impl NameInCatalog {
    /// The database of a table, by its key unless another is set.
    pub fn database<'a>(&'a self, key: &'a lakebell_domain::asset::AssetKey) -> &'a str {
        self.database.as_deref().unwrap_or_else(|| key.database())
    }

    /// The table's own name, by its key unless another is set.
    pub fn table<'a>(&'a self, key: &'a lakebell_domain::asset::AssetKey) -> &'a str {
        self.table.as_deref().unwrap_or_else(|| key.table())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> Result<Catalog, String> {
        serde_json::from_value(value).map_err(|error: serde_json::Error| error.to_string())
    }

    #[test]
    fn what_is_read_is_written_alike() {
        for value in [
            json!("none"),
            json!("hadoop"),
            json!("glue"),
            json!({"type": "glue", "region": "eu-central-1", "account": "123456789012", "table": "t"}),
            json!({"type": "rest", "url": "https://c.internal/api/catalog"}),
            json!({"type": "rest", "url": "https://c.internal", "warehouse": "w", "secret": "lakebell/x/catalogs/c"}),
            json!({"type": "rest", "url": "https://glue.eu-central-1.amazonaws.com/iceberg", "signing": "glue",
                "region": "eu-central-1", "database": "a.b"}),
        ] {
            let read = read(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), value);
        }
        assert_eq!(read(json!({"type": "hadoop"})).unwrap(), Catalog::Hadoop);
        assert_eq!(read(json!({"type": "glue"})).unwrap(), read(json!("glue")).unwrap());
    }

    #[test]
    fn what_cannot_be_is_refused_by_field() {
        let rest = |more: Value| {
            let mut value = json!({"type": "rest", "url": "https://c.internal"});
            for (name, field) in more.as_object().unwrap() {
                value[name] = field.clone();
            }
            read(value).unwrap_err()
        };
        let table = [
            (read(json!("rest")).unwrap_err(), "catalog.url: a REST catalog needs it"),
            (read(json!("hive")).unwrap_err(), "unknown variant `hive`"),
            (read(json!({"type": "hadoop", "url": "https://x"})).unwrap_err(), "catalog.url: a catalog of this type"),
            (read(json!({"type": "glue", "account": "12"})).unwrap_err(), "catalog.account: it is no account"),
            (read(json!({"type": "glue", "region": "Berlin"})).unwrap_err(), "catalog.region: it is no region"),
            (rest(json!({"url": "ftp://x"})), "catalog.url: it is no http"),
            (rest(json!({"url": "https://user:pw@x"})), "catalog.url: it is no http"),
            (rest(json!({"url": "https:///x"})), "catalog.url: it is no http"),
            (rest(json!({"url": "http://c.internal", "secret": "s"})), "catalog.url: a secret would travel"),
            (rest(json!({"secret": "s", "signing": "glue"})), "catalog.signing: a request is signed"),
            (rest(json!({"region": "eu-central-1"})), "catalog.region: only a signature"),
            (rest(json!({"warehouse": ""})), "catalog.warehouse: it is empty"),
            (rest(json!({"token": "t"})), "unknown field `token`"),
        ];
        for (error, expected) in table {
            assert!(error.contains(expected), "{error} does not say {expected}");
        }
    }
}
