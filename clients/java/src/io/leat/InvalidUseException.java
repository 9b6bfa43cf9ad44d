package io.leat;

/**
 * The call can never succeed like this: an argument, an option, or the kind of topic is wrong. The program or its
 * settings must be changed.
 *
 * <p>Its codes: {@link ErrorCode#INVALID_ARGUMENT}, {@link ErrorCode#UNSUPPORTED}, {@link ErrorCode#NOT_ALLOWED},
 * {@link ErrorCode#FORKED}, {@link ErrorCode#NEEDS_DURABLE}, {@link ErrorCode#NEEDS_TIMESTAMPS}, {@link
 * ErrorCode#NEEDS_GROWING}, {@link ErrorCode#NOT_WITH_OVERWRITE}, {@link ErrorCode#NOT_WITH_DURABLE}.
 */
public final class InvalidUseException extends LeatException {
  private static final long serialVersionUID = 1;

  InvalidUseException(ErrorCode code, int detail, String message) {
    super(code, detail, message);
  }
}
