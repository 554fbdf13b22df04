//! Reads what criterion measured, ranks it beside the bars, and fails where one is not met: called by the script `rank`.

use kafka_conform_benches::describe_configs::{LARGE, bytes, response};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What a ratio is taken of.
#[derive(Clone, Copy)]
enum Beside {
    /// The fastest of the peers.
    BestPeer,
    /// This function of the same group.
    One(&'static str),
}

/// A bar: rows of groups that start so and of this function, or any where it is `""`; greatest ratio; beside which.
type Bar = (&'static str, &'static str, f64, Beside);

const YARDSTICK: &str = "yardstick";

/// The bars. A row is held to each that names it; the first that names it is shown even where others are there.
const BARS: [Bar; 8] = [
    ("describe-configs/decode/", "", 0.4, Beside::BestPeer),
    ("describe-configs/decode/", "", 1.2, Beside::One(YARDSTICK)),
    ("describe-configs/validate/", "", 1.0, Beside::One(YARDSTICK)),
    ("describe-configs/encode/", "ours-from-tree", 1.0, Beside::BestPeer),
    ("describe-configs/encode/", "ours-from-message", 1.0, Beside::BestPeer),
    ("uvarint/", "", 1.1, Beside::BestPeer),
    ("compact-string/decode/", "ours", 0.2, Beside::One("kafka-protocol")),
    ("compact-string/encode/", "", 1.0, Beside::BestPeer),
];

/// Shapes that are printed and held to no bar: varints that no message is made of, and text of other scripts, of which the
/// check that all make of it is most of the time.
const ONLY_PRINTED: [&str; 4] = ["uniform-1-5-byte", "/5-byte", "8-40-multi-byte", "8-40-cyrillic"];

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("usage: rank FOLDER, where criterion wrote what it measured");
        return ExitCode::from(2);
    };
    let groups = match groups(Path::new(&folder)) {
        Ok(groups) if !groups.is_empty() => groups,
        Ok(_) => {
            eprintln!("{folder}: nothing was measured");
            return ExitCode::from(2);
        }
        Err(error) => {
            eprintln!("{folder}: {error}");
            return ExitCode::from(2);
        }
    };
    let (lines, missed) = rank(&groups);
    lines.iter().for_each(|line| println!("{line}"));
    println!("\n{} rows, {missed} over their bar", lines.len() - 1);
    match other_languages(&groups, Path::new(&folder)) {
        Ok(lines) => lines.iter().for_each(|line| println!("{line}")),
        Err(error) => {
            eprintln!("other-languages: {error}");
            return ExitCode::from(2);
        }
    }
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Nanoseconds of each function of each group.
type Groups = BTreeMap<String, BTreeMap<String, f64>>;

/// Reads them all. Of the samples of a function the lower quartile counts: others on the machine only ever make it slower.
fn groups(folder: &Path) -> Result<Groups, Box<dyn std::error::Error>> {
    let mut groups = Groups::new();
    for measured in measured(folder)? {
        let read = |file: &str| -> Result<Value, Box<dyn std::error::Error>> {
            Ok(serde_json::from_str(&std::fs::read_to_string(measured.join(file))?)?)
        };
        let (names, sample) = (read("benchmark.json")?, read("sample.json")?);
        let numbers = |name: &str| sample[name].as_array().into_iter().flatten().filter_map(Value::as_f64);
        let mut times: Vec<f64> = numbers("times").zip(numbers("iters")).map(|(time, count)| time / count).collect();
        times.sort_by(f64::total_cmp);
        let (Some(group), Some(function), Some(time)) =
            (names["group_id"].as_str(), names["function_id"].as_str(), times.get(times.len() / 4))
        else {
            return Err(format!("{}: not what criterion writes", measured.display()).into());
        };
        groups.entry(group.to_owned()).or_default().insert(function.to_owned(), *time);
    }
    Ok(groups)
}

/// The folders of the newest measurement of each function.
fn measured(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(measured(&path)?);
        } else if path.file_name().is_some_and(|name| name == "benchmark.json") && folder.ends_with("new") {
            found.push(folder.to_owned());
        }
    }
    Ok(found)
}

/// One line for each of our functions and what it is held to, and how many are over their bar.
fn rank(groups: &Groups) -> (Vec<String>, usize) {
    let mut lines = vec![line("row", "ours", "beside", "ratio", "bar")];
    let mut missed = 0;
    for (group, functions) in groups {
        for (function, &ours) in functions.iter().filter(|(function, _)| function.starts_with("ours")) {
            let row = if function == "ours" { group.clone() } else { format!("{group} {function}") };
            let bars = BARS
                .iter()
                .filter(|(start, name, ..)| group.starts_with(start) && (name.is_empty() || name == function));
            let mut bars: Vec<(Option<f64>, Beside)> = bars.map(|&(.., bar, beside)| (Some(bar), beside)).collect();
            if bars.is_empty() || ONLY_PRINTED.iter().any(|shape| group.ends_with(shape)) {
                bars = vec![(None, Beside::BestPeer)];
            }
            for (bar, beside) in bars {
                let Some((name, theirs)) = beside_in(functions, beside) else {
                    lines.push(line(&row, &time(ours), "no peer has it", "", ""));
                    continue;
                };
                let ratio = ours / theirs;
                let over = bar.is_some_and(|bar| ratio > bar);
                missed += usize::from(over);
                let bar = bar.map_or(String::new(), |bar| format!("{bar:.2}{}", if over { " OVER" } else { "" }));
                lines.push(line(&row, &time(ours), &format!("{} {name}", time(theirs)), &format!("{ratio:.2}"), &bar));
            }
        }
    }
    (lines, missed)
}

/// Our groups whose large message codecs in other languages are measured on, and what that is called there. They give values,
/// as `decode-typed` does.
const ALSO_ELSEWHERE: [(&str, &str); 3] = [("decode", "decode"), ("decode-typed", "decode"), ("encode", "encode")];

/// Lines of us beside codecs in other languages, for information, where what they do was measured. The script of that name
/// runs them on the very same bytes, in the folder where cargo runs us.
fn other_languages(groups: &Groups, folder: &Path) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let measured = ALSO_ELSEWHERE.iter().filter_map(|(ours, theirs)| {
        let group = format!("describe-configs/{ours}/{}", LARGE.name);
        groups.get(&group).map(|functions| (group, functions, *theirs))
    });
    let measured: Vec<_> = measured.collect();
    if measured.is_empty() {
        return Ok(Vec::new());
    }
    let message = folder.join("message.bin");
    std::fs::write(&message, bytes(&response(LARGE), LARGE.version))?;
    let output = Command::new("./other-languages").arg(message).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let mut lines = vec![String::new(), line("row", "ours", "beside, in other languages", "ratio", "")];
    for said in String::from_utf8(output.stdout)?.lines() {
        if said.starts_with("not-run:") {
            lines.push(said.to_owned());
            continue;
        }
        let [peer, operation, _, theirs, ..] = said.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("it said {said:?}").into());
        };
        let theirs: f64 = theirs.parse()?;
        for (group, functions, _) in measured.iter().filter(|(.., name)| *name == operation) {
            for (function, &ours) in functions.iter().filter(|(function, _)| function.starts_with("ours")) {
                let row = if function == "ours" { group.clone() } else { format!("{group} {function}") };
                let ratio = format!("{:.2}", ours / theirs);
                lines.push(line(&row, &time(ours), &format!("{} {peer}", time(theirs)), &ratio, ""));
            }
        }
    }
    Ok(lines)
}

fn beside_in(functions: &BTreeMap<String, f64>, beside: Beside) -> Option<(&str, f64)> {
    let mut peers =
        functions.iter().map(|(name, &time)| (name.as_str(), time)).filter(|(name, _)| !name.starts_with("ours"));
    match beside {
        Beside::One(wanted) => peers.find(|(name, _)| *name == wanted),
        Beside::BestPeer => peers.filter(|(name, _)| *name != YARDSTICK).min_by(|one, other| one.1.total_cmp(&other.1)),
    }
}

fn line(row: &str, ours: &str, beside: &str, ratio: &str, bar: &str) -> String {
    format!("{row:62} {ours:>9}  {beside:26} {ratio:>5}  {bar}").trim_end().to_owned()
}

fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        ..1e3 => format!("{nanoseconds:.0} ns"),
        ..1e6 => format!("{:.2} us", nanoseconds / 1e3),
        _ => format!("{:.2} ms", nanoseconds / 1e6),
    }
}
