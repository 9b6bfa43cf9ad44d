package io.leat;

/**
 * There are as many participants, groups or unacknowledged records as the topic or group allows. It succeeds when
 * others have left, or records were acknowledged.
 *
 * <p>Its codes: {@link ErrorCode#TOO_MANY}, {@link ErrorCode#IN_FLIGHT_FULL}, {@link ErrorCode#REDELIVERY_FULL}.
 */
public final class LimitException extends LeatException {
  private static final long serialVersionUID = 1;

  LimitException(ErrorCode code, int detail, String message) {
    super(code, detail, message);
  }
}
