package io.leat;

/**
 * The time is over before there was anything. Nothing was published or lost.
 *
 * <p>Its codes: {@link ErrorCode#TIMEOUT}.
 */
public final class TimedOutException extends LeatException {
  private static final long serialVersionUID = 1;

  TimedOutException(ErrorCode code, int detail, String message) {
    super(code, detail, message);
  }
}
