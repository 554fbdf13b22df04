//! Names of cases, peers and messages: how ids spell them, and patterns of them.

use anyhow::Context as _;
use globset::{Glob, GlobMatcher};

/// `DescribeConfigs` as `describe-configs`.
pub fn kebab(name: &str) -> String {
    let dash = |(index, letter): (usize, char)| {
        let dash = (letter.is_ascii_uppercase() && index > 0).then_some('-');
        dash.into_iter().chain([letter.to_ascii_lowercase()])
    };
    name.chars().enumerate().flat_map(dash).collect()
}

/// Globs over names; a text without wildcards is a literal, and of a peer the name alone will do.
pub struct Globs(Vec<(String, GlobMatcher)>);

impl Globs {
    /// Compiles them.
    pub fn new(patterns: &[String]) -> anyhow::Result<Globs> {
        let compile = |text: &String| {
            let glob = Glob::new(text).with_context(|| format!("{text:?} is not a glob"))?;
            Ok((text.clone(), glob.compile_matcher()))
        };
        Ok(Globs(patterns.iter().map(compile).collect::<anyhow::Result<_>>()?))
    }

    /// Whether any matches.
    pub fn matches(&self, name: &str) -> bool {
        let stem = name.split('@').next().unwrap_or(name);
        self.0.iter().any(|(text, glob)| text == name || text == stem || glob.is_match(name))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether a text has wildcards.
pub fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}
