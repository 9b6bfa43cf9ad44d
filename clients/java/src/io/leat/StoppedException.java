package io.leat;

/**
 * Somebody ended the wait: with {@link Handle#stop}, or by interrupting the thread, which stays interrupted.
 * Nothing was published or lost.
 *
 * <p>Its codes: {@link ErrorCode#STOPPED}, {@link ErrorCode#INTERRUPTED}.
 */
public final class StoppedException extends LeatException {
  private static final long serialVersionUID = 1;

  StoppedException(ErrorCode code, int detail, String message) {
    super(code, detail, message);
  }
}
