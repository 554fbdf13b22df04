//! Counts the instructions that our operations execute, by valgrind's callgrind, and compares them with those recorded in
//! `instructions.txt`: called by the script `instructions`. Unlike time, they are the same on a busy machine.

use codec::wire::Reader;
use codec::{Anomalies, Tree, View, decode_into, deserialize, encode_into, serialize_into, validate};
use kafka_conform_benches::describe_configs::{LARGE, OLD, Shape};
use kafka_conform_benches::{describe_configs, layout, names, uvarints};
use messages::{DescribeConfigsResponse, Message};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// How far a count may be from the recorded one, as a part of it: more is a failure, less is to be recorded.
const TOLERANCE: f64 = 0.05;

/// Makes glibc copy in the one way that every x86-64 has: it picks by what the processor has, and a copy by `rep movsb` counts
/// once for each byte. Names of several of its versions; elsewhere it is not looked at.
const SAME_COPIES: &str = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512F_Usable,-AVX2,-AVX2_Usable,\
    -AVX_Fast_Unaligned_Load,-ERMS,-FSRM,-SSSE3,-SSE4_1";

/// One call of what is counted. It does its work in full each time and panics where that fails.
type Operation = Box<dyn FnMut()>;

/// What prepares an operation.
type Prepare = fn() -> Operation;

/// All that is counted, by name.
const OPERATIONS: [(&str, Prepare); 9] = [
    ("describe-configs/decode/v4-53kB-ascii", || decode(LARGE)),
    ("describe-configs/decode/v0-11kB-ascii", || decode(OLD)),
    ("describe-configs/validate/v4-53kB-ascii", validate_large),
    ("describe-configs/encode/v4-53kB-ascii/from-message", encode_from_message),
    ("describe-configs/encode/v4-53kB-ascii/from-struct", encode_from_struct),
    ("describe-configs/encode/v4-53kB-ascii/from-tree", encode_from_tree),
    ("describe-configs/encode/v4-53kB-ascii/from-value", encode_from_value),
    ("uvarint/decode/95-5-mix/100000", read_uvarints),
    ("compact-string/decode/8-40-ascii", decode_names),
];

fn decode(shape: Shape) -> Operation {
    let layout = layout(describe_configs::DEFINITION, shape.version);
    decode_reused(layout, describe_configs::bytes(&describe_configs::response(shape), shape.version))
}

fn decode_names() -> Operation {
    decode_reused(layout(names::DEFINITION, 4), names::bytes(&names::names(names::ASCII)))
}

fn decode_reused(layout: codec::Layout, bytes: Vec<u8>) -> Operation {
    let mut tree = Tree::new();
    Box::new(move || {
        let end = decode_into(black_box(&layout), black_box(&bytes), 0, black_box(&mut tree));
        assert_eq!((end, tree.anomaly_count()), (Ok(bytes.len()), 0));
    })
}

/// The layout and the bytes of the large message, and the tree of them.
fn large() -> (codec::Layout, Vec<u8>, Tree) {
    let layout = layout(describe_configs::DEFINITION, LARGE.version);
    let bytes = describe_configs::bytes(&describe_configs::response(LARGE), LARGE.version);
    let mut tree = Tree::new();
    decode_into(&layout, &bytes, 0, &mut tree).expect("a message");
    (layout, bytes, tree)
}

fn validate_large() -> Operation {
    let (layout, bytes, _) = large();
    let mut anomalies = Anomalies::new();
    Box::new(move || {
        let end = validate(black_box(&layout), black_box(&bytes), 0, black_box(&mut anomalies));
        assert_eq!((end, anomalies.count()), (Ok(bytes.len()), 0));
    })
}

fn encode_from_tree() -> Operation {
    let (layout, bytes, tree) = large();
    let mut out = Vec::new();
    Box::new(move || {
        out.clear();
        let view = View::new(black_box(&layout), black_box(&bytes), black_box(&tree));
        encode_into(&layout, view.root(), black_box(&mut out)).expect("a tree that was read");
        assert_eq!(out.len(), bytes.len());
    })
}

fn encode_from_value() -> Operation {
    let (layout, bytes, tree) = large();
    let value = View::new(&layout, &bytes, &tree).value();
    let mut out = Vec::new();
    Box::new(move || {
        out.clear();
        encode_into(black_box(&layout), black_box(&value), black_box(&mut out)).expect("a value that was read");
        assert_eq!(out.len(), bytes.len());
    })
}

fn encode_from_message() -> Operation {
    let (layout, bytes, tree) = large();
    // The message borrows from them.
    let (layout, bytes, tree) = (&*Box::leak(Box::new(layout)), &*bytes.leak(), &*Box::leak(Box::new(tree)));
    let message: DescribeConfigsResponse = deserialize(View::new(layout, bytes, tree)).expect("a message");
    let mut out = Vec::new();
    Box::new(move || {
        out.clear();
        black_box(&message).encode_into(layout.version(), black_box(&mut out)).expect("a message");
        assert_eq!(out.len(), bytes.len());
    })
}

fn encode_from_struct() -> Operation {
    let (layout, bytes, _) = large();
    let response = describe_configs::response(LARGE);
    let mut out = Vec::new();
    Box::new(move || {
        out.clear();
        serialize_into(black_box(&layout), black_box(&response), black_box(&mut out)).expect("a message");
        assert_eq!(out.len(), bytes.len());
    })
}

fn read_uvarints() -> Operation {
    let values = uvarints::values(100_000, uvarints::mostly_short);
    let bytes = uvarints::bytes(&values);
    let sum: u64 = values.iter().copied().map(u64::from).sum();
    Box::new(move || {
        let mut reader = Reader::new(black_box(&bytes));
        let mut read = 0_u64;
        while reader.left() > 0 {
            read += u64::from(reader.uvarint().expect("a varint").value);
        }
        assert_eq!(read, sum);
    })
}

/// Callgrind counts from where this is entered until it is left. What it is called may not change without [`count`].
#[inline(never)]
fn measured(operation: &mut dyn FnMut()) {
    operation();
    // Not a jump into the operation: there has to be something to come back to.
    black_box(());
}

/// Runs the operation twice, counted the second time, when what is reused has its size.
fn run(prepare: Prepare) {
    let mut operation = prepare();
    operation();
    measured(&mut operation);
}

/// The instructions of one call, counted in a process of its own: this program, run by valgrind.
fn count(name: &str) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut profile = std::ffi::OsString::from("--callgrind-out-file=");
    profile.push(program.with_extension("callgrind"));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=instructions::measured*"])
        .arg(profile)
        .arg(&program)
        .args(["--run", name])
        .env("GLIBC_TUNABLES", SAME_COPIES)
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    let counted = log.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    match counted {
        Some(counted @ 1..) if output.status.success() => Ok(counted),
        _ => Err(format!("{name}: valgrind counted nothing\n{log}")),
    }
}

/// The compiler and what it compiles for. Others make other instructions.
fn compiler() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output().map_err(|error| format!("rustc: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let version = said.lines().next().unwrap_or_default();
    let host = said.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    Ok(format!("{version} {host}"))
}

/// What `instructions.txt` holds: a line for the compiler, and one for each operation.
struct Recorded {
    compiler: String,
    counts: BTreeMap<String, u64>,
}

impl Recorded {
    fn parse(text: &str) -> Option<Recorded> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let compiler = lines.next()?.to_owned();
        let row = |line: &str| {
            let (name, count) = line.split_once(' ')?;
            Some((name.to_owned(), count.trim().parse().ok()?))
        };
        Some(Recorded { compiler, counts: lines.map(row).collect::<Option<_>>()? })
    }

    fn text(&self) -> String {
        let mut text =
            format!("# Written by benches/instructions --record: compiler; instructions of each.\n{}\n", self.compiler);
        for (name, count) in &self.counts {
            writeln!(text, "{name} {count}").expect("written");
        }
        text
    }
}

/// Prints a row for each operation; whether none takes more than it may.
fn check(file: &Path) -> Result<bool, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let recorded = Recorded::parse(&text).ok_or(format!("{}: not what --record writes", file.display()))?;
    let compared = compiler()? == recorded.compiler;
    let (mut over, mut under) = (0, 0);
    println!("{:52} {:>10} {:>10} {:>6}", "row", "count", "recorded", "ratio");
    for (name, _) in OPERATIONS {
        let count = count(name)?;
        let Some(&before) = recorded.counts.get(name) else {
            return Err(format!("{name} is not recorded: run benches/instructions --record"));
        };
        let ratio = count as f64 / before as f64;
        let is_over = compared && ratio > 1.0 + TOLERANCE;
        over += u32::from(is_over);
        under += u32::from(compared && ratio < 1.0 - TOLERANCE);
        println!("{name:52} {count:>10} {before:>10} {ratio:>6.3}{}", if is_over { " OVER" } else { "" });
    }
    if !compared {
        println!("recorded with {}, not compared", recorded.compiler);
    }
    if under > 0 {
        println!("{under} take fewer than recorded: run benches/instructions --record, so that they stay so");
    }
    Ok(over == 0)
}

fn record(file: &Path) -> Result<bool, String> {
    let counts = OPERATIONS.iter().map(|(name, _)| Ok(((*name).to_owned(), count(name)?)));
    let recorded = Recorded { compiler: compiler()?, counts: counts.collect::<Result<_, String>>()? };
    let text = recorded.text();
    std::fs::write(file, &text).map_err(|error| format!("{}: {error}", file.display()))?;
    print!("{text}");
    Ok(true)
}

fn main() -> ExitCode {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("instructions.txt");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--check"] => check(&file),
        ["--record"] => record(&file),
        ["--run", wanted] => match OPERATIONS.iter().find(|(name, _)| *name == wanted) {
            Some((_, prepare)) => {
                run(*prepare);
                Ok(true)
            }
            None => Err(format!("{wanted}: no such operation")),
        },
        _ => Err("usage: instructions --check|--record".to_owned()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
