package io.leat;

/**
 * Retention has deleted the group's next record. Move the group with {@link Group#seek} to go on.
 *
 * <p>Its codes: {@link ErrorCode#EXPIRED}.
 */
public final class ExpiredException extends LeatException {
  private static final long serialVersionUID = 1;

  ExpiredException(ErrorCode code, int detail, String message) {
    super(code, detail, message);
  }
}
