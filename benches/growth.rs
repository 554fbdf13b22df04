//! How time grows with the message, from 1 to 100,000 configs: prints it per config, draws it into `growth.svg`, and fails
//! where it is not linear. Called by the script `growth`.

use codec::{Anomalies, Tree, View, decode_into, encode_into, validate};
use kafka_conform_benches::describe_configs::{DEFINITION, LARGE, Shape, bytes, response};
use kafka_conform_benches::layout;
use plotters::prelude::*;
use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How many configs the messages have.
const SIZES: [u32; 6] = [1, 10, 100, 1_000, 10_000, 100_000];
/// Which of the sizes are compared: the last, and the first that what a call costs anyway is lost in.
const LARGEST: usize = SIZES.len() - 1;
const COMPARED: usize = 3;
/// Of each message and operation, time enough to be left alone for once.
const TIME: Duration = Duration::from_millis(400);
/// What is measured, its colour, and how many times as long as among a thousand a config may take in the largest message:
/// more than once, since what no cache holds any more is slower to read, most of all a value of many small texts; what is
/// quadratic would be at 100.
const OPERATIONS: [(&str, RGBColor, f64); 4] = [
    ("decode", RGBColor(0xb0, 0x2a, 0x30), 4.0),
    ("validate", RGBColor(0xd0, 0x7a, 0x00), 4.0),
    ("encode from tree", RGBColor(0x1b, 0x7a, 0x43), 4.0),
    ("encode from value", RGBColor(0x1f, 0x5f, 0xa8), 10.0),
];

fn main() -> ExitCode {
    let rows = SIZES.map(|configs| times(Shape { configs, ..LARGE }));
    println!("{:>7}  {}", "configs", OPERATIONS.map(|(name, ..)| format!("{name:>17}")).join("  "));
    for (configs, row) in SIZES.iter().zip(&rows) {
        println!("{configs:>7}  {}", row.map(|time| format!("{time:>7.1} ns/config")).join("  "));
    }
    if let Err(error) = draw(&rows) {
        eprintln!("growth.svg: {error}");
        return ExitCode::from(2);
    }
    let mut linear = true;
    for (index, (name, _, bar)) in OPERATIONS.iter().enumerate() {
        let ratio = rows[LARGEST][index] / rows[COMPARED][index];
        if ratio > *bar {
            let (most, some) = (SIZES[LARGEST], SIZES[COMPARED]);
            println!("{name} is not linear: a config takes {ratio:.2} times as long among {most} as among {some}");
            linear = false;
        }
    }
    if linear { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Nanoseconds per config of each of the [`OPERATIONS`].
fn times(shape: Shape) -> [f64; OPERATIONS.len()] {
    let layout = layout(DEFINITION, shape.version);
    let bytes = bytes(&response(shape), shape.version);
    let (mut tree, mut anomalies, mut out) = (Tree::new(), Anomalies::new(), Vec::new());
    let decode = fastest(shape, || {
        let end = decode_into(black_box(&layout), black_box(&bytes), 0, black_box(&mut tree));
        assert_eq!((end, tree.anomaly_count()), (Ok(bytes.len()), 0));
    });
    let validate = fastest(shape, || {
        let end = validate(black_box(&layout), black_box(&bytes), 0, black_box(&mut anomalies));
        assert_eq!((end, anomalies.count()), (Ok(bytes.len()), 0));
    });
    let view = View::new(&layout, &bytes, &tree);
    let from_tree = fastest(shape, || {
        out.clear();
        encode_into(black_box(&layout), black_box(view).root(), black_box(&mut out)).expect("a tree that was read");
    });
    assert!(out == bytes);
    let value = view.value();
    let from_value = fastest(shape, || {
        out.clear();
        encode_into(black_box(&layout), black_box(&value), black_box(&mut out)).expect("a value that was read");
    });
    assert!(out == bytes);
    [decode, validate, from_tree, from_value]
}

/// Nanoseconds per config of the fastest of many calls. What is small is called several times in a row, so that the clock
/// counts for nothing.
fn fastest(shape: Shape, mut operation: impl FnMut()) -> f64 {
    let calls = 1_000_u32.div_ceil(shape.configs);
    let mut fastest = Duration::MAX;
    let start = Instant::now();
    // The first time buffers grow to their size.
    operation();
    for repetition in 0.. {
        if repetition >= 5 && start.elapsed() > TIME {
            break;
        }
        let start = Instant::now();
        (0..calls).for_each(|_| operation());
        fastest = fastest.min(start.elapsed());
    }
    fastest.as_nanos() as f64 / f64::from(calls) / f64::from(shape.configs)
}

/// One line for each operation; both axes are logarithmic, and what is linear is level.
fn draw(rows: &[[f64; OPERATIONS.len()]; SIZES.len()]) -> Result<(), Box<dyn Error>> {
    let all = || rows.iter().flatten();
    let lowest = 10_f64.powf(all().copied().fold(f64::MAX, f64::min).log10().floor());
    let highest = 10_f64.powf(all().copied().fold(0.0, f64::max).log10().ceil());
    let root = SVGBackend::new(concat!(env!("CARGO_MANIFEST_DIR"), "/growth.svg"), (760, 440)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption("DescribeConfigsResponse v4: time per config by size of the message", ("sans-serif", 20))
        .margin(12)
        .margin_right(32)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d((1.0..f64::from(SIZES[LARGEST])).log_scale(), (lowest..highest).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("configs in the message")
        .y_desc("ns per config")
        .x_label_formatter(&|configs| format!("{configs:.0}"))
        .y_label_formatter(&|time| format!("{time:.0}"))
        .max_light_lines(0)
        .label_style(("sans-serif", 16))
        .draw()?;
    for (index, (name, color, _)) in OPERATIONS.iter().enumerate() {
        let points = || SIZES.iter().zip(rows).map(|(&size, row)| (f64::from(size), row[index]));
        chart
            .draw_series(LineSeries::new(points(), color.stroke_width(2)))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
        chart.draw_series(points().map(|point| Circle::new(point, 3, color.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .label_font(("sans-serif", 16))
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()?;
    root.present()?;
    Ok(())
}
