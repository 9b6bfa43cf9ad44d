package io.leat;

/**
 * The files are not those of a topic that this version can read, or a check on them failed.
 *
 * <p>Its codes: {@link ErrorCode#CORRUPT}, {@link ErrorCode#WRONG_FORMAT}.
 */
public final class CorruptException extends LeatException {
  private static final long serialVersionUID = 1;

  CorruptException(ErrorCode code, int detail, String message) {
    super(code, detail, message);
  }
}
