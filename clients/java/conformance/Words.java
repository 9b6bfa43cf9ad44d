import io.leat.From;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The words of a command, and bytes as the line protocol writes them. */
final class Words {
  private final String[] words;

  Words(String line) {
    words = line.split(" ");
  }

  /** The words behind the name that are no options. */
  List<String> names(int from) {
    List<String> names = new ArrayList<>();
    for (int i = from; i < words.length && words[i].indexOf('=') < 0; ++i) names.add(words[i]);
    return names;
  }

  String word(int index) {
    return words[index];
  }

  List<String> options(String name) {
    List<String> found = new ArrayList<>();
    for (String word : words) {
      if (word.startsWith(name + "=")) found.add(word.substring(name.length() + 1));
    }
    return found;
  }

  /** Null if it is not there. */
  String option(String name) {
    List<String> found = options(name);
    return found.isEmpty() ? null : found.get(0);
  }

  boolean isBad() {
    return has("value") && (has("count") || has("prefix"));
  }

  boolean has(String name) {
    return option(name) != null;
  }

  long number(String name, long otherwise) {
    String text = option(name);
    return text == null ? otherwise : Long.parseLong(text);
  }

  boolean flag(String name) {
    return number(name, 0) != 0;
  }

  Duration millis(String name) {
    return Duration.ofMillis(number(name, 0));
  }

  Duration timeout(long otherwiseMs) {
    String text = option("timeout");
    if ("never".equals(text)) return null;
    return Duration.ofMillis(text == null ? otherwiseMs : Long.parseLong(text));
  }

  From from(String name) {
    String text = option(name);
    if (text == null || text.equals("end")) return From.end();
    if (text.equals("beginning")) return From.beginning();
    String[] parts = text.split(":");
    long number = Long.parseLong(parts[1]);
    return switch (parts[0]) {
      case "offset" -> From.offset(number);
      case "last" -> From.last(number);
      case "time" -> From.time(Instant.ofEpochMilli(number));
      default -> throw new IllegalArgumentException(text);
    };
  }

  // ---- Bytes ----------------------------------------------------------------------------------

  /** By `value` or `fill`. */
  byte[] value() {
    String fill = option("fill");
    if (fill == null) return has("value") ? decode(option("value")) : new byte[0];
    String[] parts = fill.split(":");
    byte[] bytes = new byte[Integer.parseInt(parts[0])];
    Arrays.fill(bytes, (byte) Integer.parseInt(parts[1], 16));
    return bytes;
  }

  static byte[] decode(String text) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    for (int i = 0; i < text.length(); ++i) {
      if (text.charAt(i) == '%') {
        bytes.write(Integer.parseInt(text.substring(i + 1, i + 3), 16));
        i += 2;
      } else {
        bytes.write(text.charAt(i));
      }
    }
    return bytes.toByteArray();
  }

  static String encode(byte[] bytes) {
    if (bytes.length > 64) {
      long hash = 0xcbf29ce484222325L;
      for (byte one : bytes) hash = (hash ^ (one & 0xff)) * 0x100000001b3L;
      return String.format("%d*%016x", bytes.length, hash);
    }
    StringBuilder text = new StringBuilder();
    for (byte one : bytes) {
      char letter = (char) (one & 0xff);
      boolean plain = letter < 128 && Character.isLetterOrDigit(letter) || "-_.,/+".indexOf(letter) >= 0;
      text.append(plain ? String.valueOf(letter) : String.format("%%%02X", (int) letter));
    }
    return text.toString();
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
