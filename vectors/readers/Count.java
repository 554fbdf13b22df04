// Counts what `kafka-conform vectors export` wrote, and its bytes, by result:
// java -cp 'FOLDER_OF_JACKSON_DATABIND/*' Count.java < vectors.jsonl
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HexFormat;
import java.util.TreeMap;

class Count {
    public static void main(String[] args) throws Exception {
        var counts = new TreeMap<String, Integer>();
        var lines = new ObjectMapper().readerFor(JsonNode.class).<JsonNode>readValues(System.in);
        while (lines.hasNext()) {
            // To test a codec: message, version and part say what the bytes (hex) are, value is due.
            JsonNode vector = lines.next();
            byte[] bytes = HexFormat.of().parseHex(vector.get("bytes").asText(""));
            counts.merge(vector.get("result").asText() + " cases", 1, Integer::sum);
            counts.merge(vector.get("result").asText() + " bytes", bytes.length, Integer::sum);
        }
        counts.forEach((name, count) -> System.out.printf("%s: %d%n", name, count));
    }
}
