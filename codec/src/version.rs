//! API keys, API versions and version ranges, in Kafka's own notation.

use std::fmt;
use std::str::FromStr;

/// The number of an API on the wire, `request_api_key`: 32 is DescribeConfigs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiKey(pub i16);

/// The version of one API. It has no order of its own: versions are compared by [`VersionRange`] only, so that
/// version arithmetic stays where layouts are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ApiVersion(pub i16);

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A range of versions as definitions write it: `0-4`, `3`, `4+`, `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VersionRange {
    lowest: i16,
    highest: i16,
}

impl VersionRange {
    /// No version at all.
    pub const NONE: VersionRange = VersionRange { lowest: 0, highest: -1 };
    /// Every version.
    pub const ALL: VersionRange = VersionRange { lowest: 0, highest: i16::MAX };

    /// Both ends included; a lowest above the highest is [`VersionRange::NONE`].
    pub fn new(lowest: ApiVersion, highest: ApiVersion) -> VersionRange {
        if lowest.0 > highest.0 {
            return VersionRange::NONE;
        }
        VersionRange { lowest: lowest.0, highest: highest.0 }
    }

    /// Whether `version` is in the range.
    pub fn contains(self, version: ApiVersion) -> bool {
        self.lowest <= version.0 && version.0 <= self.highest
    }

    /// Whether the range holds no version.
    pub fn is_none(self) -> bool {
        self.lowest > self.highest
    }

    /// Whether the range has no upper end, as in `4+`.
    pub fn is_open(self) -> bool {
        self.highest == i16::MAX
    }

    /// The lowest version, unless there is none.
    pub fn lowest(self) -> Option<ApiVersion> {
        (!self.is_none()).then_some(ApiVersion(self.lowest))
    }

    /// The highest version, unless there is none.
    pub fn highest(self) -> Option<ApiVersion> {
        (!self.is_none()).then_some(ApiVersion(self.highest))
    }

    /// The versions in both ranges.
    pub fn intersect(self, other: VersionRange) -> VersionRange {
        VersionRange::new(ApiVersion(self.lowest.max(other.lowest)), ApiVersion(self.highest.min(other.highest)))
    }

    /// Whether every version of `other` is in this range.
    pub fn includes(self, other: VersionRange) -> bool {
        self.intersect(other) == other
    }

    /// Every version of the range, lowest first.
    pub fn iter(self) -> impl Iterator<Item = ApiVersion> {
        (self.lowest..=self.highest).map(ApiVersion)
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_none(), self.is_open()) {
            (true, _) => f.write_str("none"),
            (_, true) => write!(f, "{}+", self.lowest),
            _ if self.lowest == self.highest => write!(f, "{}", self.lowest),
            _ => write!(f, "{}-{}", self.lowest, self.highest),
        }
    }
}

/// A range that is not written in Kafka's notation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRangeError(pub String);

impl fmt::Display for VersionRangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a version range such as \"0-4\", \"3\", \"4+\" or \"none\"", self.0)
    }
}

impl std::error::Error for VersionRangeError {}

impl FromStr for VersionRange {
    type Err = VersionRangeError;

    fn from_str(text: &str) -> Result<VersionRange, VersionRangeError> {
        let bad = || VersionRangeError(text.to_owned());
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse::<i16>().ok()).flatten().ok_or_else(bad)
        };
        if text == "none" {
            return Ok(VersionRange::NONE);
        }
        let (lowest, highest) = if let Some(low) = text.strip_suffix('+') {
            (number(low)?, i16::MAX)
        } else if let Some((low, high)) = text.split_once('-') {
            (number(low)?, number(high)?)
        } else {
            (number(text)?, number(text)?)
        };
        if lowest > highest {
            return Err(bad());
        }
        Ok(VersionRange { lowest, highest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_written_as_kafka_writes_them() {
        for text in ["none", "0", "3", "0-4", "1-4", "4+", "0+"] {
            assert_eq!(text.parse::<VersionRange>().map(|range| range.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "-", "4-3", "a", "1-", "+", "-1", "0..4", "99999", "+1", "1-+2"] {
            assert!(text.parse::<VersionRange>().is_err(), "{text}");
        }
    }

    #[test]
    fn intersection_of_disjoint_ranges_is_none() {
        let (low, high): (VersionRange, VersionRange) =
            (VersionRange::new(ApiVersion(0), ApiVersion(1)), VersionRange::new(ApiVersion(2), ApiVersion(4)));
        assert!(low.intersect(high).is_none());
        assert!(
            VersionRange::ALL.includes(high)
                && !low.includes(high)
                && high.includes(VersionRange::NONE.intersect(high))
        );
    }
}
