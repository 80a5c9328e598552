//! The routes, as data: the router, the checks of rights, the documents and their tests read the same table.

mod table;

use lakebell_domain::access::Right;

pub use self::table::ROUTES;

use crate::path;

/// A parameter of a path: it stands for one segment, `{assetKey}` for the segments of a decoded
/// key.
const ASSET_KEY: &str = "{assetKey}";
/// Longest subject in a line of audit.
const MAX_SUBJECT_CHARS: usize = 300;

/// What a route does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is described by its row of the table
pub enum Operation {
    RegisterAsset,
    ListAssets,
    ReadAsset,
    ReadAssetState,
    DeleteAsset,
    ObserveAsset,
    AcceptRewrite,
    ReadWithdrawn,
    ReadLineage,
    ListUnregisteredAssets,
    PushEvents,
    ListEvents,
    DeclareDependencies,
    ListDependencies,
    ExplainDependencies,
    DeleteDependencies,
    PauseTarget,
    ResumeTarget,
    FireTarget,
    ResetTarget,
    PassOver,
    ReplayTarget,
    ReplaySpec,
    ReadProjectSwitch,
    SetProjectSwitch,
    ReadGlobalSwitch,
    SetGlobalSwitch,
    AskSensor,
    ListTriggers,
    ReadTrigger,
    ReadExtras,
    RedriveTrigger,
    SkipTrigger,
    DecideTrigger,
    AskAudit,
    ReadAudit,
    Examine,
    ListDeadLetters,
    DrainDeadLetters,
    PutConnection,
    ListConnections,
    DeleteConnection,
    PutWarehouse,
    ListWarehouses,
    DeleteWarehouse,
    CreateToken,
    ListTokens,
    RotateToken,
    RevokeToken,
    ListGrants,
    GiveGrant,
    TakeBackGrant,
    ReadOpenApi,
    PushEventsByPath,
    ReadOutcome,
    ReadQuarantine,
    ListAliases,
    ConfirmAlias,
    PushLineage,
    PushLineageBatch,
    PushQuality,
    PaimonPartitionDone,
    HudiCommit,
    IcebergMetrics,
    HudiCommitByPath,
    IcebergMetricsByPath,
}

impl Operation {
    /// Its name in the lines of audit and in the `OpenAPI` document.
    pub fn name(self) -> String {
        let name = format!("{self:?}");
        name[..1].to_ascii_lowercase() + &name[1..]
    }
}

/// What a caller needs for a route. Each row of the table states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// A token of any right.
    AnyToken,
    /// A token with this right: for the project that the path names, or else for the deployment.
    Right(Right),
    /// A token with this right that stands in the path as `{token}`, for writers that cannot set
    /// headers. It says which project it is for. One that is stale reaches the handler, which finds
    /// it in `Call::caller` and answers as its writer can bear.
    PathToken(Right),
    /// A token with this right of any project or of the deployment: what is sent is from its writer.
    Writer(Right),
}

/// One route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The path with its parameters in braces.
    pub template: &'static str,
    /// What it does.
    pub operation: Operation,
    /// What a caller needs.
    pub needs: Needs,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// Parameters of the query.
    pub query: &'static [&'static str],
    /// The statuses of its answers that are no errors.
    pub statuses: &'static [u16],
}

impl Route {
    const fn new(
        method: &'static str,
        template: &'static str,
        operation: Operation,
        needs: Needs,
        summary: &'static str,
    ) -> Self {
        Self { method, template, operation, needs, summary, query: &[], statuses: &[200] }
    }

    const fn query(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    const fn answers(self, statuses: &'static [u16]) -> Self {
        Self { statuses, ..self }
    }

    /// Whether it changes anything: such a call has a line of audit and may have an idempotency key.
    /// The poll of a waiting task is none: most take nothing, and one that does is recorded with its
    /// trigger under a key of its own.
    pub fn is_write(&self) -> bool {
        // An audit is asked for with the right to read, and is kept.
        let reads = matches!(self.needs, Needs::AnyToken | Needs::Right(Right::Read | Right::Sensor))
            && self.operation != Operation::AskAudit;
        self.method != "GET" && !reads
    }

    /// Whether its path names a project.
    pub fn is_of_project(&self) -> bool {
        self.template.split('/').any(|part| part == "{p}")
    }
}

/// The values of a path's parameters, as they stand in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(&'static str, String)>);

impl Parameters {
    /// The values as they stand, in their order.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, value)| value.as_str())
    }

    /// What the path names, for a line of audit: no more than 300 characters, and no token.
    pub fn subject(&self) -> String {
        let named = self.0.iter().filter(|(name, _)| *name != "token");
        let parts: Vec<String> = named.map(|(name, value)| format!("{name}={value}")).collect();
        parts.join(" ").chars().take(MAX_SUBJECT_CHARS).collect()
    }

    /// A value as it stands in the path.
    pub fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// A value decoded once; as it stands where that gives no text.
    pub fn text(&self, name: &str) -> String {
        let raw = self.raw(name);
        path::decode(raw).unwrap_or_else(|| raw.to_owned())
    }
}

/// Where a request leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// To this route.
    Route(&'static Route, Parameters),
    /// To a path that takes these methods.
    OtherMethods(Vec<&'static str>),
    /// Nowhere.
    Nothing,
}

/// Finds the route of a request.
pub fn find(method: &str, path: &str) -> Found {
    let segments = segments(path);
    let mut others = Vec::new();
    for route in ROUTES {
        match matches(route.template, &segments) {
            Some(parameters) if route.method == method => return Found::Route(route, parameters),
            Some(_) => others.push(route.method),
            None => {}
        }
    }
    if others.is_empty() { Found::Nothing } else { Found::OtherMethods(others) }
}

/// The segments from the first one that routes begin with: a stage or the base path of a custom
/// domain may stand before it.
fn segments(path: &str) -> Vec<&str> {
    let all: Vec<&str> = path.trim_matches('/').split('/').collect();
    let is_root = |segment: &str| ROUTES.iter().any(|route| route.template[1..].split('/').next() == Some(segment));
    let skipped = usize::from(all.len() > 1 && !is_root(all[0]) && is_root(all[1]));
    all[skipped..].to_vec()
}

fn matches(template: &'static str, segments: &[&str]) -> Option<Parameters> {
    let wanted: Vec<&'static str> = template[1..].split('/').collect();
    let (front, back) = match wanted.iter().position(|part| *part == ASSET_KEY) {
        Some(at) => (&wanted[..at], Some(&wanted[at + 1..])),
        None => (wanted.as_slice(), None),
    };
    let mut parameters = Vec::new();
    let Some(back) = back else {
        return (fits(front, segments, &mut parameters)).then_some(Parameters(parameters));
    };
    let key_len = segments.len().checked_sub(front.len() + back.len()).filter(|len| *len > 0)?;
    let (before, rest) = segments.split_at(front.len());
    let (key, after) = rest.split_at(key_len);
    // Several segments are one key only where it came decoded.
    let is_key = key_len == 1 || path::starts_key(key[0]);
    if !is_key || !fits(front, before, &mut parameters) || !fits(back, after, &mut parameters) {
        return None;
    }
    parameters.push(("assetKey", key.join("/")));
    Some(Parameters(parameters))
}

fn fits(wanted: &[&'static str], segments: &[&str], parameters: &mut Vec<(&'static str, String)>) -> bool {
    wanted.len() == segments.len()
        && wanted.iter().zip(segments).all(|(part, segment)| {
            match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                Some(name) => {
                    parameters.push((name, (*segment).to_owned()));
                    !segment.is_empty()
                }
                None => part == segment,
            }
        })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn operation(method: &str, path: &str) -> Option<(Operation, Parameters)> {
        match find(method, path) {
            Found::Route(route, parameters) => Some((route.operation, parameters)),
            _ => None,
        }
    }

    #[test]
    fn every_route_is_found_and_no_two_are_alike() {
        let mut seen = HashSet::new();
        for route in ROUTES {
            assert!(seen.insert((route.method, route.template)), "{route:?}");
            let path = route.template.replace(['{', '}'], "");
            assert_eq!(operation(route.method, &path).unwrap().0, route.operation);
            assert_eq!(operation(route.method, &format!("/v1{path}/")).unwrap().0, route.operation);
        }
        // Tokens are of a project or of the deployment; everything else has one path.
        let operations = ROUTES.iter().map(|route| route.operation).collect::<HashSet<_>>().len();
        assert_eq!(seen.len(), operations + 4);
    }

    #[test]
    fn a_key_is_one_segment_or_came_decoded() {
        for key in ["paimon%3A%2F%2Fdb%2Ft", "paimon://db/t@b", "paimon:/cat/db/t", "paimon:%2F%2Fdb%2Ft"] {
            let (found, parameters) = operation("GET", &format!("/projects/7/assets/{key}/state")).unwrap();
            assert_eq!(found, Operation::ReadAssetState);
            assert_eq!((parameters.raw("assetKey"), parameters.raw("p")), (key, "7"));
            let (found, parameters) = operation("DELETE", &format!("/projects/7/assets/{key}")).unwrap();
            assert_eq!((found, parameters.raw("assetKey")), (Operation::DeleteAsset, key));
        }
        assert_eq!(find("GET", "/projects/7/assets/a/b/state"), Found::Nothing);
    }

    #[test]
    fn other_methods_are_told_from_nothing() {
        assert_eq!(find("PATCH", "/connections/a"), Found::OtherMethods(vec!["PUT", "DELETE"]));
        for nothing in
            ["/", "", "/projects", "/projects//assets", "/projects/1", "/a/b/projects/1/assets", "/warehouses/x"]
        {
            assert_eq!(find("GET", nothing), Found::Nothing, "{nothing}");
        }
    }
}
