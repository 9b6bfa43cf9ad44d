package io.leat;

/**
 * The user may not do that to the files of the topic.
 *
 * <p>Its codes: {@link ErrorCode#PERMISSION}.
 */
public final class PermissionException extends LeatException {
  private static final long serialVersionUID = 1;

  PermissionException(ErrorCode code, int detail, String message) {
    super(code, detail, message);
  }
}
