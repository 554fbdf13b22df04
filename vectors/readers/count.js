// Counts the codec vectors and their bytes by result: node count.js [VECTORS]
const { readdirSync, readFileSync } = require("node:fs");
const [root = "vectors"] = process.argv.slice(2);
const read = (path) => JSON.parse(readFileSync(`${root}/${path}`, "utf8"));
const upFrom = (first, count) => Array.from({ length: count }, (_, n) => first + n);
// "0-2,5" as 0, 1, 2, 5.
const numbers = (ranges) =>
  ranges.split(",").flatMap((range) => {
    const [low, high = low] = range.split("-").map(Number);
    return upFrom(low, high - low + 1);
  });
// Hex, each _ of which is a digit of a number that counts up.
const expand = ({ repeat, bytes, from = 0, base = 16 }) => {
  const [start, ...rest] = bytes.split("_");
  const digits = (n) => n.toString(base).padStart(rest.length, "0");
  if (rest.length === 0) return bytes.repeat(repeat);
  return upFrom(from, repeat).map((n) => start + rest.map((hex, place) => digits(n)[place] + hex).join("")).join("");
};

const results = Object.fromEntries(read("rules.json").map((rule) => [rule.id, rule.result]));
const counts = {};
const add = (name, count) => (counts[name] = (counts[name] ?? 0) + count);
for (const file of readdirSync(`${root}/codec`).map((name) => read(`codec/${name}`)))
  for (const { rule, versions, bytes = {}, cuts = {} } of file.cases)
    for (const version of numbers(versions)) {
      const parts = [bytes[version] ?? ""].flat().map((part) => (typeof part === "string" ? part : expand(part)));
      const whole = Buffer.from(parts.join("").replaceAll(" ", ""), "hex");
      for (const end of numbers(cuts[version] ?? `${whole.length}`)) {
        // To test a codec: file.message, version and part say what the first `end` bytes of `whole` are, value is due.
        add(`${results[rule]} cases`, 1);
        add(`${results[rule]} bytes`, end);
      }
    }
for (const name of Object.keys(counts).sort()) console.log(`${name}: ${counts[name]}`);
