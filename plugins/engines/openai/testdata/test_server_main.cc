// The test server as a program: test_server PORT [DIALECT [FAULT [START_DELAY_SECONDS [KEY]]]]. A FAULT "exits" ends it
// at once with a word on stderr; "sleeps" never listens.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "plugins/engines/openai/testdata/test_server.h"

int main(int count, char** words) {
  if (count < 2) return 2;
  const std::string fault = count > 3 ? words[3] : "";
  std::fputs("test server: starting\n", stderr);
  if (fault == "exits") {
    std::fputs("test server: no such model\n", stderr);
    return 3;
  }
  if (count > 4) std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(words[4])));
  if (fault == "sleeps") {
    while (true) ::pause();
  }
  const assay::engines::openai::TestServer server({.dialect = count > 2 ? words[2] : "openai",
                                                   .fault = fault,
                                                   .port = std::atoi(words[1]),
                                                   .key = count > 5 ? words[5] : ""});
  while (true) ::pause();
}
