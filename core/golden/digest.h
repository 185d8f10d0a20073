// SHA-256 of what results depend on: checkpoints, vocabularies, plugins. Lower-case hex. Reads in pieces, whatever the
// size; safe from any thread.
#pragma once

#include <string>
#include <string_view>

#include "assay/status.h"

namespace assay {

// Of the bytes of a file. Fails with one line naming the path: kNotFound (no such file), kInvalid (a folder or device),
// kInfra (unreadable).
Result<std::string> digest_of_file(const std::string& path);

Result<std::string> digest_of_text(std::string_view text);

// Of a checkpoint: its iteration folder, or of any other folder as a whole. A folder that holds
// latest_checkpointed_iteration.txt stands for the iteration folder that this file names (iter_0000800, release), so
// that older iterations, optimizer states of others and where the folder lies do not matter.
// The digest is over this text, one line a regular file (links to files followed, to folders not), in ascending
// bytewise order of the names:
//   <sha256 of the file's content> <size in bytes> <name relative to the folder>\n
// so that `sha256sum` and `stat` can repeat it. Fails like digest_of_file, and with kInvalid when a folder holds no
// file or the iteration file names no folder.
Result<std::string> digest_of_folder(const std::string& path);

}  // namespace assay
