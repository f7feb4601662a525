// SPDX-License-Identifier: Apache-2.0
import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Readable;

/**
 * Reads messages with Kafka's generated classes, and writes each one again.
 *
 * Standard input, one line per message: its class, its version, its bytes in hexadecimal digits (or a dash for none).
 * Standard output, one line per message: the bytes that Kafka writes for it, and its JSON.
 */
public final class ConvertMessages {
    private ConvertMessages() {
    }

    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            out.println(convert(words[0], Short.parseShort(words[1]), words[2].equals("-") ? "" : words[2]));
        }
        out.flush();
    }

    private static String convert(String name, short version, String hex) throws Exception {
        Class<?> type = Class.forName(name);
        ByteBuffer buffer = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
        Readable readable = new ByteBufferAccessor(buffer);
        var message = (ApiMessage) type.getConstructor(Readable.class, short.class).newInstance(readable, version);
        if (buffer.hasRemaining()) {
            return "left over: " + buffer.remaining();
        }
        ByteBuffer written = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] again = new byte[written.remaining()];
        written.get(again);
        var converter = Class.forName(name + "JsonConverter").getMethod("write", type, short.class, boolean.class);
        var json = (JsonNode) converter.invoke(null, message, version, false);
        return (again.length == 0 ? "-" : HexFormat.of().formatHex(again)) + " " + json;
    }
}
