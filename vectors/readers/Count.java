// Reads what `kafka-conform vectors export` wrote and counts it by result:
// java -cp 'FOLDER_OF_JACKSON_DATABIND/*' Count.java < vectors.jsonl
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;

class Count {
    public static void main(String[] args) throws Exception {
        Map<String, Integer> cases = new TreeMap<>(), size = new TreeMap<>();
        var lines = new ObjectMapper().readerFor(JsonNode.class).<JsonNode>readValues(System.in);
        while (lines.hasNext()) {
            // To test a codec: message, version and part say what the bytes (hex) are, value is due.
            JsonNode vector = lines.next();
            String result = vector.get("result").asText();
            byte[] bytes = HexFormat.of().parseHex(vector.get("bytes").asText(""));
            cases.merge(result, 1, Integer::sum);
            size.merge(result, bytes.length, Integer::sum);
        }
        cases.forEach((result, n) -> System.out.printf("%s: %d cases, %d bytes%n", result, n, size.get(result)));
    }
}
