package io.leat;

/**
 * What the library reports. Misuse of Java's objects, as of closed ones, is an {@link IllegalStateException} instead;
 * arguments that can never be right are an {@link IllegalArgumentException}.
 */
public final class LeatException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final ErrorCode code;
  private final int detail;

  LeatException(int code, int detail) {
    super(Native.text(Native.describe(code, detail)));
    this.code = ErrorCode.of(code);
    this.detail = detail;
  }

  LeatException(ErrorCode code) {
    this(code.number(), 0);
  }

  /** Which error. */
  public ErrorCode code() {
    return code;
  }

  /** The name of the code that all clients use, for example {@code "timeout"}. */
  public String name() {
    return code.text();
  }

  /** What else is known: an errno, or the most bytes allowed with {@link ErrorCode#TOO_LARGE}; otherwise 0. */
  public int detail() {
    return detail;
  }
}
