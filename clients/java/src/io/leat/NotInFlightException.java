package io.leat;

/**
 * The record or claim is not in this program's hands any more: it was settled before, its lease ran out, or the
 * claim was revoked. Somebody else may get the record.
 *
 * <p>Its codes: {@link ErrorCode#NOT_IN_FLIGHT}, {@link ErrorCode#LEASE_LOST}, {@link ErrorCode#REVOKED}.
 */
public final class NotInFlightException extends LeatException {
  private static final long serialVersionUID = 1;

  NotInFlightException(ErrorCode code, int detail, String message) {
    super(code, detail, message);
  }
}
