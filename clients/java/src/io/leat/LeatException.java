package io.leat;

/**
 * What the library reports. Each family of codes that programs treat alike has a class of its own, so catch for example
 * {@link TimedOutException} or {@link FullException}; this class is all of them. {@link #code} tells the codes of a family
 * apart. The message names the topic or group, its directory, or the option that is wrong.
 *
 * <p>Misuse of Java's objects, as of closed ones, is an {@link IllegalStateException} instead; arguments that can never
 * be right are an {@link IllegalArgumentException}.
 */
public abstract sealed class LeatException extends RuntimeException
    permits AlreadyExistsException, CorruptException, DeletedException, ExpiredException, FullException,
        InUseException, InvalidUseException, LimitException, NotDurableException, NotFoundException,
        NotInFlightException, PermissionException, StorageException, StoppedException, TimedOutException,
        TooLargeException {
  private static final long serialVersionUID = 1;

  /** Which error. */
  private final ErrorCode code;

  /** An errno or a size. */
  private final int detail;

  LeatException(ErrorCode code, int detail, String message) {
    super(message);
    this.code = code;
    this.detail = detail;
  }

  /** The exception of the family to which a code of C belongs. C calls this, too. */
  static LeatException of(int code, int detail) {
    return of(ErrorCode.of(code), detail, Native.text(Native.describe(code, detail)));
  }

  static LeatException of(ErrorCode code) {
    return of(code.number(), 0);
  }

  // A code without a class does not compile.
  static LeatException of(ErrorCode code, int detail, String message) {
    return switch (code) {
      case OK -> throw new IllegalArgumentException("not an error");
      case EXISTS ->
          new AlreadyExistsException(code, detail, message);
      case CORRUPT, WRONG_FORMAT ->
          new CorruptException(code, detail, message);
      case DELETED, CLOSED ->
          new DeletedException(code, detail, message);
      case EXPIRED ->
          new ExpiredException(code, detail, message);
      case FULL, WOULD_DEADLOCK ->
          new FullException(code, detail, message);
      case BUSY ->
          new InUseException(code, detail, message);
      case INVALID_ARGUMENT, UNSUPPORTED, NOT_ALLOWED, FORKED, NEEDS_DURABLE,
          NEEDS_TIMESTAMPS, NEEDS_GROWING, NOT_WITH_OVERWRITE, NOT_WITH_DURABLE ->
          new InvalidUseException(code, detail, message);
      case TOO_MANY, IN_FLIGHT_FULL, REDELIVERY_FULL ->
          new LimitException(code, detail, message);
      case NOT_DURABLE ->
          new NotDurableException(code, detail, message);
      case NOT_FOUND ->
          new NotFoundException(code, detail, message);
      case NOT_IN_FLIGHT, LEASE_LOST, REVOKED ->
          new NotInFlightException(code, detail, message);
      case PERMISSION ->
          new PermissionException(code, detail, message);
      case NO_SPACE, IO_ERROR, READ_ONLY, NO_MEMORY ->
          new StorageException(code, detail, message);
      case STOPPED, INTERRUPTED ->
          new StoppedException(code, detail, message);
      case TIMEOUT ->
          new TimedOutException(code, detail, message);
      case TOO_LARGE, BUFFER_TOO_SMALL ->
          new TooLargeException(code, detail, message);
    };
  }

  /** {@return which error it is} */
  public ErrorCode code() {
    return code;
  }

  /** {@return the name of the code that all clients use, for example {@code "timeout"}} */
  public String name() {
    return code.text();
  }

  /**
   * {@return what else is known: an errno, or the most bytes allowed with {@link ErrorCode#TOO_LARGE}; otherwise 0}
   */
  public int detail() {
    return detail;
  }
}
