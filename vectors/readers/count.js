// Reads every codec vector and counts them by result: node count.js [VECTORS]
const { readdirSync, readFileSync } = require("node:fs");
const root = process.argv[2] ?? "vectors";
const read = (path) => JSON.parse(readFileSync(`${root}/${path}`, "utf8"));
const hex = (text) => Buffer.from(text.replace(/\s/g, ""), "hex");
// Bytes from hex, or from a list of hex and repetitions.
const expand = (parts) =>
  Buffer.concat([parts].flat().map((part) => hex(typeof part === "string" ? part : part.bytes.repeat(part.repeat))));

const results = Object.fromEntries(read("rules.json").map((rule) => [rule.id, rule.result]));
const counts = {};
for (const name of readdirSync(`${root}/codec`).filter((name) => name.endsWith(".json")))
  for (const { rule, versions, bytes = {}, cuts = {} } of read(`codec/${name}`).cases) {
    const [lowest, highest = lowest] = versions.split("-").map(Number);
    const count = (counts[results[rule]] ??= { cases: 0, bytes: 0 });
    for (let version = lowest; version <= highest; version++) {
      const whole = expand(bytes[version] ?? "");
      // Some cases are prefixes of their bytes: "0-12,14" are their lengths.
      const ends = (cuts[version]?.split(",") ?? [`${whole.length}`]).flatMap((range) => {
        const [low, high = low] = range.split("-").map(Number);
        return Array.from({ length: high - low + 1 }, (_, index) => low + index);
      });
      for (const end of ends) {
        // To test a codec: the file's message, version and the case's part say what the first `end` bytes of `whole`
        // are, its value is due.
        count.cases += 1;
        count.bytes += end;
      }
    }
  }
for (const result of Object.keys(counts).sort())
  console.log(`${result}: ${counts[result].cases} cases, ${counts[result].bytes} bytes`);
