package peers;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;

/** The protocol with run.py over stdin and stdout. */
final class Talk {
  private static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in));

  private Talk() {}

  static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }

  /** Null at the end. */
  static String hear() {
    try {
      return IN.readLine();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  static void awaitGo() {
    if (!"go".equals(hear())) throw new IllegalStateException("nobody said go");
  }

  static void awaitEnd() {
    while (hear() != null) {
    }
  }

  /**
   * Runs the role in a thread that run.py finds by its name, to pin it; ends the process when the role
   * ends, even if the rival still has threads.
   */
  static void runAsRole(Runnable role) {
    Thread thread = new Thread(() -> {
      int code = 0;
      try {
        role.run();
      } catch (Throwable error) {
        System.err.println(error);
        code = 1;
      }
      Runtime.getRuntime().halt(code);  // Does not wait for the rival's threads or files.
    }, "role");
    thread.start();
  }
}
