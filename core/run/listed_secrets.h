// Secrets that options hold.
#pragma once

#include <string>

#include "core/command/redact.h"

namespace assay::run {

// Notes what is secret in options (a JSON text; anything else holds none): members of objects called "environment" or
// "variables" by their names, every text below a member with a secret name (command::is_secret_option) at any depth,
// a member that is to name the variable of a key (`..._variable`) and holds no name,
// values of `headers` (not those of Accept, Content-Type and User-Agent), what lists of words hold as command lines do
// (command::Redactor::add_words), and what stands in URLs.
void add_listed_secrets(const std::string& options, command::Redactor* redactor);

}  // namespace assay::run
