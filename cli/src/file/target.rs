//! A target of the file: every key of the domain's own declaration, and `project`.

use std::fmt;

use lakebell_domain::ids::ProjectCode;
use lakebell_domain::target::TargetSpec;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};

/// A target, whose project is the file's unless it says otherwise.
///
/// The keys are not repeated here: all but `project` go to [`TargetSpec`] as they are read, so that
/// what it refuses keeps its place in the file.
#[derive(Debug)]
pub(super) struct TargetEntry {
    pub(super) project: Option<ProjectCode>,
    pub(super) spec: TargetSpec,
}

impl<'de> Deserialize<'de> for TargetEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = TargetEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a target")
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<TargetEntry, A::Error> {
        let mut project = None;
        let others = Others { access, project: &mut project };
        let spec = TargetSpec::deserialize(MapAccessDeserializer::new(others))?;
        Ok(TargetEntry { project, spec })
    }
}

/// The entries of a map without `project`, which is put aside.
struct Others<'a, A> {
    access: A,
    project: &'a mut Option<ProjectCode>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Others<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let mut seed = seed;
        loop {
            match self.access.next_key_seed(KeySeed(seed))? {
                None => return Ok(None),
                Some(Key::Other(key)) => return Ok(Some(key)),
                Some(Key::Project(unused)) => {
                    *self.project = self.access.next_value()?;
                    seed = unused;
                }
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.access.next_value_seed(seed)
    }
}

/// Reads a key. The inner seed is used inside the reader, which adds the place to what it refuses.
struct KeySeed<K>(K);

enum Key<K, V> {
    /// It is `project`; the seed is still to be used.
    Project(K),
    Other(V),
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for KeySeed<K> {
    type Value = Key<K, K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let key = String::deserialize(deserializer)?;
        if key == "project" {
            return Ok(Key::Project(self.0));
        }
        self.0.deserialize(key.into_deserializer()).map(Key::Other)
    }
}
