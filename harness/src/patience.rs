//! How long a peer is waited for in vain before it is given up: one measure for codecs, brokers and clients, whose
//! deadlines differ.

use std::time::Duration;

/// What a peer has left of the time that it may let pass.
#[derive(Clone, Debug)]
pub struct Patience {
    waits_left: u32,
    passed: u32,
}

impl Patience {
    /// Deadlines of [`Patience::WAIT`] or less that a peer may let pass within a run: two and a half minutes.
    pub const WAITS: u32 = 30;
    /// A longer deadline counts as the number of these that it takes.
    pub const WAIT: Duration = Duration::from_secs(5);

    /// Nothing was waited for yet.
    pub fn new() -> Patience {
        Patience { waits_left: Patience::WAITS, passed: 0 }
    }

    /// A deadline passed without an answer.
    pub fn passed(&mut self, deadline: Duration) {
        let waits = deadline.as_millis().div_ceil(Patience::WAIT.as_millis()).max(1);
        self.waits_left = self.waits_left.saturating_sub(u32::try_from(waits).unwrap_or(u32::MAX));
        self.passed += 1;
    }

    /// How many deadlines passed.
    pub fn count(&self) -> u32 {
        self.passed
    }

    /// Why nothing more is asked; `None` while something is.
    pub fn at_end(&self) -> Option<String> {
        let passed = self.passed;
        (self.waits_left == 0).then(|| format!("given up after {passed} deadlines that passed without an answer"))
    }
}

impl Default for Patience {
    fn default() -> Patience {
        Patience::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until_end(deadline: Duration) -> u32 {
        let mut patience = Patience::new();
        while patience.at_end().is_none() {
            patience.passed(deadline);
        }
        patience.count()
    }

    #[test]
    fn longer_deadlines_are_waited_for_less_often() {
        // 30 waits of 5 s: 8 of 20 s, since the seventh leaves two.
        for (milliseconds, times) in [(10, 30), (5_000, 30), (5_001, 15), (8_000, 15), (20_000, 8), (1_000_000, 1)] {
            assert_eq!(until_end(Duration::from_millis(milliseconds)), times, "{milliseconds} ms");
        }
    }
}
