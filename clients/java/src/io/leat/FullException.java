package io.leat;

/**
 * The topic is full, and the call may not or cannot wait for room. Nothing was published.
 *
 * <p>Its codes: {@link ErrorCode#FULL}, {@link ErrorCode#WOULD_DEADLOCK}.
 */
public final class FullException extends LeatException {
  private static final long serialVersionUID = 1;

  FullException(ErrorCode code, int detail, String message) {
    super(code, detail, message);
  }
}
