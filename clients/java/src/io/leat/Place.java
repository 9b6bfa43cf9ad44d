package io.leat;

import java.nio.file.Path;

/**
 * Where topics are, if not in the default directories. Either may be null.
 *
 * @param directory what is in memory: null: {@code $LEAT_DIR}, else {@code /dev/shm/leat-<uid>}
 * @param dataDirectory what is on disk: null: {@code $LEAT_DATA_DIR}, else {@code $XDG_DATA_HOME/leat}, else
 *     {@code ~/.local/share/leat}
 */
public record Place(Path directory, Path dataDirectory) {
  static final Place DEFAULT = new Place(null, null);

  byte[] directoryBytes() {
    return directory == null ? null : Native.bytes(directory.toString());
  }

  byte[] dataDirectoryBytes() {
    return dataDirectory == null ? null : Native.bytes(dataDirectory.toString());
  }
}
