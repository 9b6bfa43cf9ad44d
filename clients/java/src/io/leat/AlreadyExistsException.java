package io.leat;

/**
 * A topic of that name exists already.
 *
 * <p>Its codes: {@link ErrorCode#EXISTS}.
 */
public final class AlreadyExistsException extends LeatException {
  private static final long serialVersionUID = 1;

  AlreadyExistsException(ErrorCode code, int detail, String message) {
    super(code, detail, message);
  }
}
