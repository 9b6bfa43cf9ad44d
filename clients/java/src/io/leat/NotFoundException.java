package io.leat;

/**
 * There is no such topic, group or directory.
 *
 * <p>Its codes: {@link ErrorCode#NOT_FOUND}.
 */
public final class NotFoundException extends LeatException {
  private static final long serialVersionUID = 1;

  NotFoundException(ErrorCode code, int detail, String message) {
    super(code, detail, message);
  }
}
