package io.leat;

/**
 * The topic or the group was deleted while this program used it. Open it anew, or give up.
 *
 * <p>Its codes: {@link ErrorCode#DELETED}, {@link ErrorCode#CLOSED}.
 */
public final class DeletedException extends LeatException {
  private static final long serialVersionUID = 1;

  DeletedException(ErrorCode code, int detail, String message) {
    super(code, detail, message);
  }
}
