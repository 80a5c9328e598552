//! The licences of all dependencies, of every platform, against the list in `xtask/licenses.txt`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::failure::{During, Failure, Outcome};
use crate::process;
use crate::progress::Progress;
use crate::workspace::Workspace;

/// Read the lists and look at every package that cargo may build.
pub(crate) fn check(workspace: &Workspace, progress: &Progress) -> Outcome {
    let path = workspace.path("xtask/licenses.txt");
    let policy = Policy::read(&fs::read_to_string(&path).during(format!("read {}", path.display()))?)?;
    let mut cargo = workspace.cargo();
    cargo.args(["metadata", "--locked", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&process::output(&mut cargo)?).during("read cargo's metadata")?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |package: &Value, field: &str| package[field].as_str().unwrap_or_default().to_owned();

    // A path dependency, that is a crate of this workspace, has no source.
    let external = packages.iter().filter(|package| !package["source"].is_null());
    let mut seen = BTreeSet::new();
    let mut refused = Vec::new();
    for package in external {
        let (name, license) = (text(package, "name"), text(package, "license"));
        if !policy.allows(&name, &license) {
            let shown = if license.is_empty() { "no licence named" } else { &license };
            refused.push(format!("  {name} {}: {shown}", text(package, "version")));
        }
        seen.insert(name);
    }
    let unused: Vec<_> = policy.crates.iter().map(|(name, _)| name).filter(|name| !seen.contains(*name)).collect();
    if !unused.is_empty() {
        return Err(Failure::new(format!("xtask/licenses.txt names crates that are not used: {unused:?}")));
    }
    if refused.is_empty() {
        progress.say(&format!("{} dependencies, all under allowed licences", seen.len()));
        return Ok(());
    }
    Err(Failure::new(format!(
        "licences that xtask/licenses.txt does not allow (take another crate, or read the licence and add a line):\n{}",
        refused.join("\n")
    )))
}

/// What is allowed.
#[derive(Debug, Default)]
struct Policy {
    licenses: BTreeSet<String>,
    crates: Vec<(String, String)>,
}

impl Policy {
    /// Lines `allow LICENCE` and `crate NAME LICENCE EXPRESSION`, and comments.
    fn read(text: &str) -> Outcome<Self> {
        let mut policy = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.split_once(' ') {
                Some(("allow", license)) => {
                    policy.licenses.insert(license.trim().to_owned());
                }
                Some(("crate", rest)) => {
                    let (name, license) = rest.trim().split_once(' ').unwrap_or((rest, ""));
                    policy.crates.push((name.to_owned(), license.trim().to_owned()));
                }
                _ => return Err(Failure::new(format!("xtask/licenses.txt: `{line}` is neither `allow` nor `crate`"))),
            }
        }
        Ok(policy)
    }

    fn allows(&self, name: &str, expression: &str) -> bool {
        self.crates.iter().any(|(allowed, license)| allowed == name && license == expression)
            || Expression::parse(expression).is_some_and(|expression| expression.holds(&self.licenses))
    }
}

/// An SPDX licence expression.
#[derive(Debug, PartialEq, Eq)]
enum Expression {
    License(String),
    Any(Vec<Expression>),
    All(Vec<Expression>),
}

impl Expression {
    /// `a OR b AND (c WITH d)`; old manifests write `a/b` for OR.
    fn parse(text: &str) -> Option<Self> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let words: Vec<_> = spaced.split_whitespace().collect();
        let mut rest = words.as_slice();
        let expression = Self::any(&mut rest)?;
        rest.is_empty().then_some(expression)
    }

    fn any(words: &mut &[&str]) -> Option<Self> {
        Self::list(words, "OR", Self::all, Self::Any)
    }

    fn all(words: &mut &[&str]) -> Option<Self> {
        Self::list(words, "AND", Self::one, Self::All)
    }

    fn list(
        words: &mut &[&str],
        joint: &str,
        member: fn(&mut &[&str]) -> Option<Self>,
        make: fn(Vec<Self>) -> Self,
    ) -> Option<Self> {
        let mut members = vec![member(words)?];
        while let Some((word, rest)) = words.split_first()
            && *word == joint
        {
            *words = rest;
            members.push(member(words)?);
        }
        if members.len() == 1 { members.pop() } else { Some(make(members)) }
    }

    fn one(words: &mut &[&str]) -> Option<Self> {
        let (first, rest) = words.split_first()?;
        *words = rest;
        match *first {
            "(" => {
                let inner = Self::any(words)?;
                let (close, rest) = words.split_first()?;
                *words = rest;
                (*close == ")").then_some(inner)
            }
            ")" | "AND" | "OR" | "WITH" => None,
            license => {
                if let ["WITH", exception, rest @ ..] = *words {
                    *words = rest;
                    return Some(Self::License(format!("{license} WITH {exception}")));
                }
                Some(Self::License(license.to_owned()))
            }
        }
    }

    fn holds(&self, allowed: &BTreeSet<String>) -> bool {
        match self {
            Self::License(license) => allowed.contains(license),
            Self::Any(members) => members.iter().any(|member| member.holds(allowed)),
            Self::All(members) => members.iter().all(|member| member.holds(allowed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Expression, Policy};

    fn policy() -> Policy {
        let text = "# comment\nallow MIT\nallow Apache-2.0\nallow Apache-2.0 WITH LLVM-exception\ncrate odd Odd-1.0\n";
        Policy::read(text).unwrap()
    }

    #[test]
    fn an_alternative_needs_one_allowed_licence() {
        for expression in ["MIT", "MIT OR GPL-3.0", "GPL-3.0 OR (MIT AND Apache-2.0)", "GPL-2.0/MIT"] {
            assert!(policy().allows("some", expression), "{expression}");
        }
    }

    #[test]
    fn a_conjunction_needs_all_of_them() {
        for expression in ["GPL-3.0", "MIT AND AGPL-3.0", "(MIT OR Apache-2.0) AND AGPL-3.0", "", "MIT OR", "(MIT"] {
            assert!(!policy().allows("some", expression), "{expression}");
        }
    }

    #[test]
    fn an_exception_belongs_to_its_licence() {
        assert!(policy().allows("some", "GPL-3.0 OR Apache-2.0 WITH LLVM-exception"));
        assert!(!policy().allows("some", "MIT WITH Classpath-exception-2.0"));
    }

    #[test]
    fn a_crate_is_allowed_with_the_licence_that_was_read_only() {
        assert!(policy().allows("odd", "Odd-1.0"));
        assert!(!policy().allows("odd", "Odd-2.0"));
        assert!(!policy().allows("other", "Odd-1.0"));
    }

    #[test]
    fn and_binds_more_closely_than_or() {
        let license = |name: &str| Expression::License(name.to_owned());
        let expected = Expression::Any(vec![license("a"), Expression::All(vec![license("b"), license("c")])]);
        assert_eq!(Expression::parse("a OR b AND c"), Some(expected));
    }

    #[test]
    fn an_unknown_line_is_refused() {
        assert!(Policy::read("deny GPL-3.0").is_err());
    }
}
