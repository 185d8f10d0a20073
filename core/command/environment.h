// The environment of this process, as a value.
#pragma once

#include <map>
#include <string>

namespace assay::command {

// Every variable of this process; of a name that is there twice the first value, which is what getenv gives. Not to be
// called while another thread changes the environment.
std::map<std::string, std::string> own_environment();

}  // namespace assay::command
