// If this failed, a Java program would take one error for another, or show a sentence that is not
// its own.
package io.leat;

import static io.leat.Tests.check;
import static io.leat.Tests.equal;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

final class ErrorTests {
  void areThoseOfTheList() throws Exception {
    List<String> lines = Files.readAllLines(Path.of(System.getProperty("leat.errors", "spec/errors.csv")));
    equal(lines.size() - 1, ErrorCode.values().length);
    for (ErrorCode code : ErrorCode.values()) {
      String line = lines.get(code.number() + 1);
      check(line.startsWith(code.number() + "," + code.text() + ","));
      if (code == ErrorCode.OK) continue;
      equal(code.text(), Native.text(Native.errorName(code.number())));
      LeatException error = new LeatException(code);
      equal(code.text(), error.name());
      String sentence = line.replaceFirst("[^,]*,[^,]*,", "").replace("\"", "");
      check(error.getMessage().startsWith(sentence));
    }
    check(new LeatException(ErrorCode.PERMISSION.number(), 13).getMessage().length() > 20);
    check(!Topic.version().isEmpty());
  }
}
