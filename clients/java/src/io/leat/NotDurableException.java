package io.leat;

/**
 * The record was published, but is not on stable storage in time. Publishing it again would publish it twice.
 *
 * <p>Its codes: {@link ErrorCode#NOT_DURABLE}.
 */
public final class NotDurableException extends LeatException {
  private static final long serialVersionUID = 1;

  NotDurableException(ErrorCode code, int detail, String message) {
    super(code, detail, message);
  }
}
