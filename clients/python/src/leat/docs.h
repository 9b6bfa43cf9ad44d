// Docstrings with signatures, as inspect.signature() reads them, and those of options, which several functions share.
#ifndef LEAT_PYTHON_DOCS_H
#define LEAT_PYTHON_DOCS_H

#include "_leat.h"

#define SIGNED(signature, text) PyDoc_STR(signature "\n--\n\n" text)

// Of Topic.create() and Topic.open_or_create(), with the defaults of LEAT_TOPIC_OPTIONS_INIT.
#define TOPIC_SIGNATURE                                                                                      \
  "(name, /, *, policy='block', capacity_bytes=0, segment_bytes=0, max_capacity_bytes=0, "                   \
  "grow_below_bytes=0, partitions=1, participants=256, retain_all=False, single_writer=False, "              \
  "timestamps=False, delete_when_unused=False, revoke_after=0, evict_after=0, mode=0o600, durable='none', "  \
  "sync_interval=0, file_bytes=67108864, retention_bytes=0, retention=0, file_group=None, directory=None, "  \
  "data_directory=None)"
#define TOPIC_OPTIONS                                                                                        \
  "name: 1 to 200 of the characters A-Z a-z 0-9 . _ -\n"                                                     \
  "policy: what publishing does in a full topic: 'block' waits, 'fail' raises Full, 'overwrite' reuses the\n" \
  "    oldest room, 'grow' adds memory up to a maximum and then waits\n"                                     \
  "capacity_bytes: per partition; 0 is 8 MiB, of durable topics 32 MiB\n"                                    \
  "segment_bytes: 0 is an eighth of the capacity; at most 1 GiB\n"                                           \
  "max_capacity_bytes: policy grow, per partition; 0 is 8 times the capacity\n"                              \
  "grow_below_bytes: policy grow: adds memory when no more than this is free; 0 is a segment\n"              \
  "partitions: 1 to 1024; records of one key are in one partition, in order\n"                               \
  "participants: publishers, subscribers and members at a time, 1 to 4096\n"                                 \
  "retain_all: never reuse room; publishing raises Full at the end\n"                                        \
  "single_writer: every publisher is exclusive\n"                                                            \
  "timestamps: records have the time at which they were published\n"                                         \
  "delete_when_unused: once it was used, delete it when the last process closes it\n"                        \
  "revoke_after: seconds; a claim that is open for longer, while a subscriber waits, is revoked; 0: never\n"  \
  "evict_after: seconds; a gating subscriber that blocks for longer becomes lossy; 0: never\n"               \
  "mode: permission bits of the files; 0o600 is required\n"                                                  \
  "durable: 'none'; 'os': also on disk, at the latest 10 ms later; 'interval': also synced every\n"          \
  "    sync_interval; 'fsync': synced before publishing returns\n"                                           \
  "sync_interval: seconds, 0.001 to 3600\n"                                                                  \
  "file_bytes: durable topics: size of a file with records\n"                                                \
  "retention_bytes, retention: durable topics: keep so many bytes, or seconds, on disk; 0: no limit\n"       \
  "file_group: Unix group of the files; None: the caller's\n"                                                \
  PLACE_OPTIONS
#define PLACE_OPTIONS                                                                                        \
  "directory: of the topics; None: $LEAT_DIR, else /dev/shm/leat-<uid>\n"                                    \
  "data_directory: of durable topics; None: $LEAT_DATA_DIR, else $XDG_DATA_HOME/leat, else\n"                \
  "    ~/.local/share/leat"
#define READER_OPTIONS                                                                                       \
  "spin: seconds that a wait tries again before it sleeps\n"                                                 \
  "patience: seconds that an empty poll pauses after many records; 0: none"

#endif
