package io.leat;

/**
 * The record is larger than the topic allows, or than the room for it.
 *
 * <p>Its codes: {@link ErrorCode#TOO_LARGE}, {@link ErrorCode#BUFFER_TOO_SMALL}.
 */
public final class TooLargeException extends LeatException {
  private static final long serialVersionUID = 1;

  TooLargeException(ErrorCode code, int detail, String message) {
    super(code, detail, message);
  }
}
