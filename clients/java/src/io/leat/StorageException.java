package io.leat;

/**
 * The system cannot do it: no memory, no room on disk, or a call to it failed. {@link #detail} is the errno.
 *
 * <p>Its codes: {@link ErrorCode#NO_SPACE}, {@link ErrorCode#IO_ERROR}, {@link ErrorCode#READ_ONLY}, {@link
 * ErrorCode#NO_MEMORY}.
 */
public final class StorageException extends LeatException {
  private static final long serialVersionUID = 1;

  StorageException(ErrorCode code, int detail, String message) {
    super(code, detail, message);
  }
}
