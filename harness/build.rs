//! The macro that compiles folders in does not tell cargo of files that are new in them.

fn main() {
    for folder in ["../schemas", "../vectors"] {
        println!("cargo::rerun-if-changed={folder}");
    }
}
