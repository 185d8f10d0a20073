// Descriptors 0 to 2 of this process.
#pragma once

namespace assay::command {

// Opens /dev/null for reading on each of the descriptors 0 to 2 that is closed, so that no file opened later becomes
// one of them and gets what is printed. What is written to such a descriptor 1 or 2 fails. To be called before anything
// is opened; where /dev/null cannot be opened, nothing happens.
void occupy_standard_streams();

}  // namespace assay::command
