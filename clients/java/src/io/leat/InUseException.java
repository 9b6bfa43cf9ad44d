package io.leat;

/**
 * Somebody else uses it: an exclusive publisher, a member, an open claim.
 *
 * <p>Its codes: {@link ErrorCode#BUSY}.
 */
public final class InUseException extends LeatException {
  private static final long serialVersionUID = 1;

  InUseException(ErrorCode code, int detail, String message) {
    super(code, detail, message);
  }
}
