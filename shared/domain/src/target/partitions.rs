//! What a declaration says about partitions, and what it is refused for.

use super::spec::{DependencySpec, GroupSpec};
use crate::Invalid;
use crate::policy::PartitionCondition;

impl GroupSpec {
    /// Members that go by partitions are joined on the same keys; windows and partitions do not mix.
    pub(super) fn check_partitions(&self) -> Result<(), Invalid> {
        let mut joined: Option<(usize, Vec<String>)> = None;
        for (at, dependency) in self.dependencies.iter().enumerate() {
            let place = format!("dependencies[{at}]");
            dependency.check_partition().map_err(|invalid| invalid.within(&place))?;
            let Some(condition) = dependency.partition() else { continue };
            if self.dependencies.iter().any(|other| other.every.is_some()) {
                let hint = "use windows or partitions in one group, not both";
                return Err(Invalid::new("partition", "another member has windows", hint).within(&place));
            }
            match &joined {
                None => joined = Some((at, condition.join)),
                Some((_, join)) if *join == condition.join => {}
                Some((first, join)) => {
                    let problem = format!(
                        "it is joined on {} and dependencies[{first}] on {}",
                        condition.join.join(", "),
                        join.join(", ")
                    );
                    return Err(
                        Invalid::new("join", problem, "join all members of a group on the same keys").within(&place)
                    );
                }
            }
        }
        Ok(())
    }
}

impl DependencySpec {
    /// The partitions that it goes by.
    pub(super) fn partition(&self) -> Option<PartitionCondition> {
        let keys = self.partition.as_ref()?.0.clone();
        let is_of_set = |key: &String| self.full_set.as_ref().is_some_and(|set| set.key == *key);
        let join = match &self.join {
            Some(join) => join.0.clone(),
            None => keys.iter().filter(|key| !is_of_set(key)).cloned().collect(),
        };
        Some(PartitionCondition {
            keys,
            join,
            full_set: self.full_set.clone(),
            horizon: self.horizon,
            from: self.partition_from.unwrap_or_default(),
        })
    }

    fn check_partition(&self) -> Result<(), Invalid> {
        let Some(condition) = self.partition() else {
            let named = [
                (self.join.is_some(), "join"),
                (self.full_set.is_some(), "fullSet"),
                (self.horizon.is_some(), "horizon"),
                (self.partition_from.is_some(), "partitionFrom"),
            ];
            let lacks = named.into_iter().find(|(is_named, _)| *is_named);
            return lacks.map_or(Ok(()), |(_, field)| {
                let hint = "name its keys as `partition`, as in dt or [dt, hour]";
                Err(Invalid::new(field, "the dependency names no partition", hint))
            });
        };
        if let Some(key) = condition.join.iter().find(|key| !condition.keys.contains(key)) {
            let problem = format!("`{key}` is no key of its partition ({})", condition.keys.join(", "));
            return Err(Invalid::new("join", problem, "join on keys that every member's partition has"));
        }
        if let Some(set) = &condition.full_set {
            if !condition.keys.contains(&set.key) {
                let problem = format!("`{}` is no key of its partition ({})", set.key, condition.keys.join(", "));
                return Err(Invalid::new("fullSet.key", problem, "add the key to `partition`"));
            }
            if condition.join.contains(&set.key) {
                let problem =
                    format!("`{}` is joined on as well, so that each value would be a set of its own", set.key);
                return Err(Invalid::new("fullSet.key", problem, "leave it out of `join`"));
            }
        }
        if condition.join.is_empty() {
            return Err(Invalid::new(
                "join",
                "no key is left to tell one trigger from another",
                "add a key to `partition`",
            ));
        }
        Ok(())
    }
}
